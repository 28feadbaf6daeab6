"""Kafka in and out: topics as source and sink, with offsets and output in one transaction."""
