"""Kafka's APIs and error codes, and librdkafka's, by name and number."""
