"""Kafka's messages as bytes: those that kio knows, and our own codecs for the requests of every record (no I/O)."""
