"""What one fetch asks for, and what its answer brings (no I/O)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.fetch.small_batch_pacer import FEW_BYTES
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.wire.fetch_codec import FetchedPartition
from lockstep_data_plane.wire.fetch_session import Wanted
from lockstep_protocol.offsets import TopicPartition


class Delivery(NamedTuple):
    """Batches of one partition, fetched for one incarnation of it."""

    partition: PartitionMachine
    incarnation: int
    fetched: FetchedPartition
    batches: tuple[Batch, ...]


class FetchResult(NamedTuple):
    """What an answer brought: how many bytes and batches of which partitions."""

    size: int
    batches: int
    deliveries: Sequence[Delivery]

    @property
    def little(self) -> bool:
        """Whether it goes on its way before anything else."""
        return self.size <= FEW_BYTES


NOTHING = FetchResult(0, 0, ())

Asked = tuple[PartitionMachine, int, Wanted]
"""A partition, its incarnation, and what was asked of it."""


@dataclass(slots=True)
class FetchRequest:
    """What a fetch asked for, at most `each` bytes of each partition; which of them have moved since, and which had
    before. Where `lasts` is set, all partitions of its shard are in it, and the next question differs by no more than
    those that moved."""

    asked: dict[TopicPartition, Asked]
    names: Mapping[Any, str]
    by_id: bool
    lasts: bool
    each: int
    moved: list[PartitionMachine] = field(default_factory=list)
    moved_before: list[PartitionMachine] = field(default_factory=list)
