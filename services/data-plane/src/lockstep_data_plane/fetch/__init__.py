"""Fetching from the source: how much may be in memory, how much to ask of a broker, when to ask again."""
