"""Partitions and offsets as every package writes them. No two kinds of offset share a type, so they are never mixed
up."""

from typing import NewType, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""A topic by its name, and the number of a partition of it."""

UpstreamOffset = NewType("UpstreamOffset", int)
"""An offset in the source's log."""

DownstreamOffset = NewType("DownstreamOffset", int)
"""An offset in the target's log."""

SEQUENCES = 2**31
"""Sequences of a producer count modulo this: after 2147483647 comes 0, also inside a batch (`kafka-wire.md` §0)."""
