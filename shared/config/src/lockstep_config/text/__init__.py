"""Readers from texts to plain values that know their line: properties, YAML, JSON, JAAS, keystores, config providers."""
