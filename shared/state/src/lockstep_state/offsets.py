"""Partitions and offsets. Each kind of offset has a type of its own, so that they cannot be mixed up."""

from typing import NewType, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""The name of a topic, and the number of a partition of it."""

UpstreamOffset = NewType("UpstreamOffset", int)
"""An offset in the source's log."""

DownstreamOffset = NewType("DownstreamOffset", int)
"""An offset in the target's log."""

SEQUENCES = 2**31
"""The modulus of producer sequences: after 2147483647 comes 0, also inside a batch (`kafka-wire.md` §0)."""
