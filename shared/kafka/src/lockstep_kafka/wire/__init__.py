"""Kafka's protocol: connections, metadata, codecs of the two hot requests, coordinators of transactions."""
