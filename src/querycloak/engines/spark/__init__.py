"""Runs methods on Apache Spark: the same objects as on one machine, driven on many (`querycloak.spark`)."""
