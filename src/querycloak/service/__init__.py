"""The live service: records in over HTTP, Kafka or a file; what may be shown out again, durable and exact."""
