"""Clients of Kafka: connections, admin requests, consumer groups, topics, and the wire protocol."""
