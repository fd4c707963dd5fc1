"""Fetches from the source: how much may be in memory, how much to ask of a broker, and when to ask again."""
