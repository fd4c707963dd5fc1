"""Clients of librdkafka: how one is made and replaced, and the producer for control topics."""
