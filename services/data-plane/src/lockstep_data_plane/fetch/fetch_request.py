"""What one fetch asks for, and what its answer brings (no I/O)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.fetch.fetch_schedule import SMALL_BYTES
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_kafka.messages.fetch_codec import FetchedPartition
from lockstep_state.offsets import TopicPartition


class Delivery(NamedTuple):
    """Batches of one partition, fetched for one incarnation of it."""

    partition: PartitionState
    incarnation: int
    fetched: FetchedPartition
    batches: tuple[Batch, ...]


class FetchHandler(Protocol):
    """Take what is fetched (`slot/slot_loop.py`)."""

    def may_fetch(self, partition: PartitionState) -> bool:
        """Return whether the partition may be fetched now, as far as its room does not decide."""

    def on_fetched(self, delivery: Delivery) -> None:
        """Take what was fetched of one partition. Deliveries of a partition come in order."""

    def on_delivered(self) -> None:
        """Note that all deliveries of an answer have come."""

    def on_fetch_lost(self, partition: PartitionState, why: str) -> None:
        """Note that the partition's fetch failed as a whole. It is out of the fetch until it is attached again."""


class FetchResult(NamedTuple):
    """What an answer brought, in how many bytes, and which partitions are to be read from another broker. That is a
    replica that the leader named. If a replica cannot be read, None says that the leader is to be asked."""

    size: int = 0
    deliveries: Sequence[Delivery] = ()
    redirected: Sequence[tuple[PartitionState, int | None]] = ()

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return sum(batch.batches for delivery in self.deliveries for batch in delivery.batches)

    @property
    def is_small(self) -> bool:
        """Whether it goes on its way before anything else."""
        return self.size <= SMALL_BYTES


NOTHING = FetchResult()


@dataclass(slots=True)
class FetchRequest:
    """A request for at most `each` bytes of each of some partitions in their present incarnations, and the partitions
    that have moved since. If `is_repeatable`, it has all partitions of its connection, and the next request differs
    by those that moved alone."""

    asked: dict[TopicPartition, tuple[PartitionState, int]]
    names: Mapping[Any, str]
    by_id: bool
    is_repeatable: bool
    each: int
    moved: list[PartitionState] = field(default_factory=list)
