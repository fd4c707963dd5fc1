"""Offsets of the source connector, listed, altered and reset; a legacy flow's consumer group."""
