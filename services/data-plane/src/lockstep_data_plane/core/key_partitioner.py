"""Records of a batch spread over the target's partitions by their keys, as Java's producer spreads them (no I/O, no
clock; `lockstep.legacy.partitioning=key`)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build
from lockstep_state.codecs.murmur2 import partition_for

STICKS_BYTES = 16_384
"""So many bytes of records without a key go into one partition before the next one has its turn: `batch.size` of Java's
producer."""


class StickyPartition:
    """The partition for records without a key. For a while all go into one partition, so that their batches stay whole,
    then into the next one (KIP-480, KIP-794)."""

    def __init__(self, begin: int) -> None:
        """`begin`: the first partition. Each partition of the source begins with another one, so together they use all
        of the target's."""
        self._at = begin
        self._bytes = 0

    def at(self, partitions: int) -> int:
        """The partition, of so many."""
        return self._at % partitions

    def on_batch(self, size: int) -> None:
        """A batch of so many bytes went there, and is not parted: the next one may go elsewhere."""
        self._bytes += size
        if self._bytes >= STICKS_BYTES:
            self._at, self._bytes = self._at + 1, 0


class PartitionedRecord(NamedTuple):
    """A record, the partition of the target that it goes to, and the codec that it came in, or is to go in."""

    to: int
    codec: int
    record: PlainRecord


@dataclass(slots=True)
class BatchGroup:
    """Outgoing batches for several partitions of the target, which count together. Once all of them are durable,
    everything up to upstream offset `covers` is decided."""

    outgoing_batches: tuple[OutgoingBatch, ...]
    covers: int
    leader_epoch: int

    @property
    def size(self) -> int:
        return sum(outgoing.size for outgoing in self.outgoing_batches)


@dataclass(slots=True)
class KeyPartitioner:
    """Records of consecutive batches on their way into a group. Everything up to `covers` is among them, or was passed
    over."""

    covers: int
    leader_epoch: int = -1
    size: int = 0
    """Bytes of keys and values."""
    spread: list[PartitionedRecord] = field(default_factory=list)

    def add_records(self, records: Sequence[PlainRecord], codec: int, partitions: int, sticky: StickyPartition) -> None:
        """The records of one batch, in its order: with a key where Java's producer puts it among so many partitions,
        those without one together (`StickyPartition`)."""
        without, unkeyed = sticky.at(partitions), 0
        for record in records:
            size = len(record.key or b"") + len(record.value or b"")
            if record.key is None:
                to, unkeyed = without, unkeyed + size
            else:
                to = partition_for(record.key, partitions)
            self.size += size
            self.spread.append(PartitionedRecord(to, codec, record))
        sticky.on_batch(unkeyed)

    def cover(self, offset: int, leader_epoch: int) -> None:
        """Everything up to this upstream offset was examined."""
        self.covers, self.leader_epoch = max(self.covers, offset), leader_epoch

    def cut(self, offset: int) -> None:
        """Leave out the records from this upstream offset on."""
        self.spread = [one for one in self.spread if one.record.offset < offset]
        self.covers = min(self.covers, offset - 1)

    def group(self, limits: TargetLimits) -> BatchGroup:
        """The records as batches. Those for one partition keep their order; key, value, headers and timestamp stay, and
        the codec does. Raises RecordTooLarge."""
        return BatchGroup(tuple(_outgoing_batches(self.spread, limits)), self.covers, self.leader_epoch)


def _outgoing_batches(spread: Iterable[PartitionedRecord], limits: TargetLimits) -> Iterable[OutgoingBatch]:
    by_target: dict[int, list[tuple[int, list[PlainRecord]]]] = {}
    for to, codec, record in spread:
        of_partition = by_target.setdefault(to, [])
        if not of_partition or of_partition[-1][0] != codec:
            of_partition.append((codec, []))
        of_partition[-1][1].append(record)
    for to, found in by_target.items():
        for codec, records in found:
            for outgoing in build(records, codec, limits.max_bytes, -1, limits.levels, limits.split_above):
                outgoing.to = to
                yield outgoing
