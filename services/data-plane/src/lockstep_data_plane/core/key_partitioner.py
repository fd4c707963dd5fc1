"""The spreading of records over the target's partitions by their keys, as Java's producer does it (no I/O, no clock).

It is used with `lockstep.legacy.partitioning=key`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build
from lockstep_state.codecs.murmur2 import partition_for

STICKS_BYTES = 16_384
"""The bytes of records without a key that go into one partition before the next partition has its turn. It is the
default `batch.size` of Java's producer.
"""


class StickyPartition:
    """The partition that takes the records without a key.

    For a while all go into one partition, so that their batches stay whole, then into the next one (KIP-480, KIP-794).
    """

    def __init__(self, begin: int) -> None:
        """Begin with the partition `begin`.

        Each partition of the source begins with another number, so together they use all partitions of the target.
        """
        self._current = begin
        self._bytes = 0

    def current(self, partitions: int) -> int:
        """Return the current partition, if the topic has this number of partitions."""
        return self._current % partitions

    def on_batch(self, size: int) -> None:
        """Note that `size` bytes of one batch went into the current partition.

        Records of one batch stay together, so the next batch is the first that may go elsewhere.
        """
        self._bytes += size
        if self._bytes >= STICKS_BYTES:
            self._current, self._bytes = self._current + 1, 0


class PartitionedRecord(NamedTuple):
    """A record, the partition of the target that it goes to, and the codec that its batch is to be compressed with."""

    target_partition: int
    codec: int
    record: PlainRecord


@dataclass(slots=True)
class BatchGroup:
    """The outgoing batches for several partitions of the target that count together.

    Once all of them are durable, everything up to upstream offset `covers` is decided.
    """

    outgoing_batches: tuple[OutgoingBatch, ...]
    covers: int
    leader_epoch: int

    @property
    def size(self) -> int:
        return sum(outgoing.size for outgoing in self.outgoing_batches)


@dataclass(slots=True)
class KeyPartitioner:
    """The records of consecutive batches that are gathered for one group.

    Everything up to upstream offset `covers` is among them, or was passed over.
    """

    covers: int
    leader_epoch: int = -1
    size: int = 0
    """The bytes of the gathered keys and values."""
    spread: list[PartitionedRecord] = field(default_factory=list)

    def add_records(self, records: Sequence[PlainRecord], codec: int, partitions: int, sticky: StickyPartition) -> None:
        """Add the records of one batch, in order.

        A record with a key goes where Java's producer puts it among `partitions` partitions. Records without one go
        together (`StickyPartition`).
        """
        without, unkeyed = sticky.current(partitions), 0
        for record in records:
            size = len(record.key or b"") + len(record.value or b"")
            if record.key is None:
                target_partition, unkeyed = without, unkeyed + size
            else:
                target_partition = partition_for(record.key, partitions)
            self.size += size
            self.spread.append(PartitionedRecord(target_partition, codec, record))
        sticky.on_batch(unkeyed)

    def cover(self, offset: int, leader_epoch: int) -> None:
        """Note that everything up to this upstream offset was examined."""
        self.covers, self.leader_epoch = max(self.covers, offset), leader_epoch

    def drop_from(self, offset: int) -> None:
        """Leave out the records from this upstream offset on."""
        self.spread = [partitioned for partitioned in self.spread if partitioned.record.offset < offset]
        self.covers = min(self.covers, offset - 1)

    def group(self, limits: TargetLimits) -> BatchGroup:
        """Return the records as batches.

        Records for one partition keep their order. Key, value, headers, timestamp and codec stay.

        Raises:
            RecordTooLarge: The target does not take a record of this size.
        """
        return BatchGroup(tuple(_outgoing_batches(self.spread, limits)), self.covers, self.leader_epoch)


def _outgoing_batches(spread: Iterable[PartitionedRecord], limits: TargetLimits) -> Iterable[OutgoingBatch]:
    by_target: dict[int, list[tuple[int, list[PlainRecord]]]] = {}
    for target_partition, codec, record in spread:
        of_partition = by_target.setdefault(target_partition, [])
        if not of_partition or of_partition[-1][0] != codec:
            of_partition.append((codec, []))
        of_partition[-1][1].append(record)
    for target_partition, of_partition in by_target.items():
        for codec, records in of_partition:
            for outgoing in build(records, codec, limits.max_bytes, -1, limits.levels, limits.split_above):
                outgoing.target_partition = target_partition
                yield outgoing
