"""Readers from texts to plain values that know their line.

They read properties, YAML, JSON, JAAS, keystores and config providers.
"""
