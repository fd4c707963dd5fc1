"""Kafka's protocol: connections, metadata, codecs of the two hot requests, coordinators, reading of logs."""
