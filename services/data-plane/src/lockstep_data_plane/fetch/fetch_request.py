"""A fetch request and the result of its answer (no I/O)."""

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
    """The receiver of what is fetched (`slot/slot_loop.py`)."""

    def may_fetch(self, partition: PartitionState) -> bool:
        """Return whether the partition may be fetched now. Its memory is judged elsewhere."""

    def on_fetched(self, delivery: Delivery) -> None:
        """Take what was fetched of one partition. Deliveries of a partition come in order."""

    def on_delivered(self) -> None:
        """Note that all deliveries of an answer have come."""

    def on_fetch_lost(self, partition: PartitionState, why: str) -> None:
        """Note that the partition's fetch failed as a whole. It is not fetched until it is attached again."""


class FetchResult(NamedTuple):
    """The size in bytes and the deliveries of an answer, and the partitions to read from another broker.

    `redirected` has the replica that the leader named. None there means that a replica cannot be read and the leader
    is asked.
    """

    size: int = 0
    deliveries: Sequence[Delivery] = ()
    redirected: Sequence[tuple[PartitionState, int | None]] = ()

    @property
    def batches(self) -> int:
        """The number of batches."""
        return sum(batch.batches for delivery in self.deliveries for batch in delivery.batches)

    @property
    def is_small(self) -> bool:
        """Return whether the answer is small, so that it is delivered before the next request."""
        return self.size <= SMALL_BYTES


NOTHING = FetchResult()


@dataclass(slots=True)
class FetchRequest:
    """A request for at most `each` bytes of each partition in its present incarnation.

    `moved` has the partitions of which batches have come since. If `is_repeatable`, the request has all partitions of
    its connection, and the next request differs only by those that moved.
    """

    asked: dict[TopicPartition, tuple[PartitionState, int]]
    names: Mapping[Any, str]
    by_id: bool
    is_repeatable: bool
    each: int
    moved: list[PartitionState] = field(default_factory=list)
