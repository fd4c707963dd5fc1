"""Frozen values that services and tools agree on: rows, events, commands, names, reason codes, codecs, schemas."""
