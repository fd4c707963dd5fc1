"""Outgoing batches: the upstream offsets of their records, and their stamp (`architecture.md` §5: "Stamp").

The stamp is producer id, epoch, sequence and a new CRC. Offsets ascend, with the gaps that a log cleaner leaves.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import overload

from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    COVERED,
    CRC_FROM,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    UNCOVERED,
    Batch,
)
from lockstep_state.offsets import SEQUENCES

EPOCHS = 32_767
"""The largest producer epoch (int16)."""

ATTRIBUTES_AT = 22
"""The index of the lower byte of a batch's attributes."""

KEPT_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME
"""The attributes that a copy keeps: codec and timestamp type.

With the source's delete horizon (0x40), the target's cleaner would drop tombstones before its consumers saw them. The
broker keeps unknown bits (`kafka-wire.md` §1.1, 1.2).
"""

Stretch = tuple[int, int, int]
"""A stretch of consecutive offsets: the first one, its index among all, and how many."""


@dataclass(slots=True)
class OutgoingBatch:
    """A batch as it is appended, with the upstream offsets that it covers.

    `data` is one magic-2 batch whose offsets have no gaps from its base. Record i came from upstream offset
    `offsets[i]`. When the batch is durable on the target, every upstream offset up to `covers` is decided.
    """

    data: bytes | memoryview
    count: int
    offsets: Sequence[int]
    covers: int
    base_timestamp: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int = -1
    """The producer id of the flow for this batch, set when it is queued."""
    to: int = -1
    """The target's partition, if records are spread over several; -1: the one of the same number."""
    batches: int = 1
    """The number of batches in `data`. More than one are a group, which is merged before it is sent."""

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def codec(self) -> int:
        """Return the codec of the records, from the header's attributes."""
        return self.data[ATTRIBUTES_AT] & CODEC_MASK


def as_outgoing(batch: Batch) -> OutgoingBatch:
    """Return a batch that passes unchanged, or a group, as an outgoing batch."""
    first, count = batch.base_offset, batch.record_count
    return OutgoingBatch(
        batch.data,
        count,
        range(first, first + count),
        first + batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.leader_epoch,
        batches=batch.batches,
    )


def add_sequence(sequence: int, count: int) -> int:
    """Return the sequence `count` records further on. Sequences wrap around."""
    return (sequence + count) % SEQUENCES


class StampedBatch:
    """A batch as it is produced: its 61 bytes of new header, and the records in the fetch response's own memory.

    At hundreds of megabytes a second each copy of the records counts.
    """

    __slots__ = ("parts",)

    def __init__(self, header: bytes, records: memoryview) -> None:
        self.parts = header, records

    def __len__(self) -> int:
        return HEADER_SIZE + len(self.parts[1])

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


def expected_crc(batch: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C that the batch should have."""
    return int(crc32c(memoryview(batch)[CRC_FROM:]))


def header_with_crc(length: int, leader_epoch: int, covered: bytes, records: bytes | memoryview) -> bytes:
    """Return the header of a batch that begins at offset 0, with the CRC of its covered part and the records."""
    return UNCOVERED.pack(0, length, leader_epoch, 2, crc32c(records, crc32c(covered))) + covered


def stamp(
    batch: bytes | memoryview, producer_id: int, producer_epoch: int, base_sequence: int, *, transactional: bool = False
) -> StampedBatch:
    """Return the batch as it is produced, with a new header.

    It has base offset 0, this producer, the kept attributes and, in a transaction, the transactional bit. The CRC of
    the batch must be right, because compiled code computes the new one without reading the records.
    """
    compiled = find_compiled()
    make_header = stamped_header if compiled is None else compiled.stamp
    header = make_header(batch, producer_id, producer_epoch, base_sequence, transactional)
    return StampedBatch(header, memoryview(batch)[HEADER_SIZE:])


def stamped_header(
    batch: bytes | memoryview, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool
) -> bytes:
    """Return the new header, in plain Python."""
    _, length, leader_epoch, _, _, kept, last, first_ms, largest_ms, _, _, _, count = HEADER.unpack_from(batch)
    kept &= KEPT_ATTRIBUTES
    if transactional:
        kept |= TRANSACTIONAL
    covered = COVERED.pack(kept, last, first_ms, largest_ms, producer_id, producer_epoch, base_sequence, count)
    return header_with_crc(length, leader_epoch, covered, memoryview(batch)[HEADER_SIZE:])


_INDEX = itemgetter(1)


@dataclass(frozen=True, slots=True)
class GappedOffsets(Sequence[int]):
    """A sequence of ascending offsets, kept as stretches, because a batch has far fewer of them than records."""

    stretches: tuple[Stretch, ...]

    @classmethod
    def gather(cls, offsets: Iterable[int]) -> "GappedOffsets":
        """Return the sequence of these offsets, which ascend."""
        return cls(tuple(_gather(offsets)))

    @classmethod
    def join(cls, parts: Iterable[Sequence[int]]) -> "GappedOffsets":
        """Return the offsets of several batches, one behind the other."""
        stretches: list[Stretch] = []
        index = 0
        for first, _, count in (stretch for part in parts for stretch in stretches_within(part)):
            if stretches and stretches[-1][0] + stretches[-1][2] == first:
                before, begin, earlier = stretches.pop()
                stretches.append((before, begin, earlier + count))
            else:
                stretches.append((first, index, count))
            index += count
        return cls(tuple(stretches))

    def __len__(self) -> int:
        if not self.stretches:
            return 0
        _, begin, count = self.stretches[-1]
        return begin + count

    def __iter__(self) -> Iterator[int]:
        for first, _, count in self.stretches:
            yield from range(first, first + count)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return tuple(self)[index]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"there are {len(self)} offsets, none has the index {index}")
        first, begin, _ = self.stretches[bisect_right(self.stretches, position, key=_INDEX) - 1]
        return first + position - begin


def _gather(offsets: Iterable[int]) -> list[Stretch]:
    stretches: list[Stretch] = []
    first = begin = index = 0
    following = None
    for offset in offsets:
        if offset != following:
            if index:
                stretches.append((first, begin, index - begin))
            first, begin = offset, index
        following = offset + 1
        index += 1
    if index:
        stretches.append((first, begin, index - begin))
    return stretches


def stretches_within(offsets: Sequence[int]) -> Sequence[Stretch]:
    """Return the stretches of ascending offsets, if possible without reading each of them."""
    if type(offsets) is range and offsets.step == 1:
        return ((offsets.start, 0, len(offsets)),) if offsets else ()
    if isinstance(offsets, GappedOffsets):
        return offsets.stretches
    if offsets and offsets[-1] - offsets[0] + 1 == len(offsets):
        return [(offsets[0], 0, len(offsets))]
    return _gather(offsets)
