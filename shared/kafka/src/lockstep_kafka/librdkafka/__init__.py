"""Creation and replacement of librdkafka's clients, and the producer for control topics."""
