"""Where released lines go: the released log, a file, Kafka; and profiles of their labels."""
