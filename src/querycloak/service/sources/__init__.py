"""Where records come from besides HTTP: a followed file, Kafka."""
