"""Frozen values that services and tools share: rows, events, commands, names, reason codes, codecs, schemas."""
