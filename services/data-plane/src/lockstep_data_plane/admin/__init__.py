"""Positions that operators and consumer groups change: the source connector's offsets, and a legacy flow's group."""
