"""Kafka's messages as bytes: kio's messages, and our own codecs for Fetch and Produce (no I/O)."""
