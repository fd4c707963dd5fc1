"""Record batches (magic 2, big-endian; `architecture.md` §5 "Batch facts"), as fetched and as appended.

A log is scanned for batches, or groups of small ones. An outgoing batch has the upstream offsets of its records, which
ascend, with the gaps that a log cleaner leaves. Its stamp is producer id, epoch, sequence and a new CRC.
"""

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, overload

from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_state.errors import RetriableError
from lockstep_state.offsets import SEQUENCES

PREFIX = struct.Struct(">qi")
"""The fields baseOffset and batchLength: enough to find the next batch."""
HEADER = struct.Struct(">qiibIhiqqqhii")
"""The header: all 61 bytes before the records."""
HEADER_SIZE = HEADER.size
UNCOVERED = struct.Struct(">qiibI")
"""The first part of the header: baseOffset, batchLength, partitionLeaderEpoch, magic, crc."""
COVERED = struct.Struct(">hiqqqhii")
"""The second part of the header, which the CRC covers as it does the records."""
_BEGIN = struct.Struct(">qi4xB")
"""The fields baseOffset, batchLength and magic, which a batch of each format has in these places."""
_FIELDS = struct.Struct(">q4xiBIhiqqqhii")
"""The fields of `Batch` behind `data`: all of the header but the length. A magic that is no format is above 2."""
CRC, CRC_AT = struct.Struct(">I"), 17
CRC_FROM = 21
"""The first byte that the CRC covers: that of the attributes."""
OLD_HEADER_SIZE = 17
"""The size of offset, size, crc and magic in a message of magic 0 or 1."""
OLD_LEAST_SIZE = 26
"""The size of a message of magic 0 with neither key nor value; no message set is shorter."""

SMALL_BYTES = 4096
"""The largest size of a batch that is worth merging; larger ones pay for their request."""

MERGED_BYTES = 64 * 1024
"""The largest size of a group, and of a merged outgoing batch."""

LARGEST_OFFSET = 2**63 - 2
"""The largest offset that a record can have: the next one has to be a number of 64 bits too."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

EPOCHS = 32_767
"""The largest producer epoch (int16)."""

ATTRIBUTES_AT = 22
"""The index of the lower byte of a batch's attributes."""

KEPT_ATTRIBUTES = CODEC_MASK | LOG_APPEND_TIME
"""The attributes that a copy keeps: codec and timestamp type.

With the source's delete horizon (0x40), the target's cleaner would drop tombstones before its consumers saw them. The
broker keeps unknown bits (`kafka-wire.md` §1.1, 1.2).
"""


class CorruptRecordError(RetriableError, ValueError):
    """The error of bytes that are no records: a CRC, a length or an offset is wrong."""


class Batch(NamedTuple):
    """A batch with its header fields, or a group of small batches that follow each other (`scan_groups`).

    `data` is exactly the bytes. A message set of magic 0 or 1 has only `data`, `base_offset`, `magic`, and codec and
    timestamp type in `attributes`. It must be read record by record.

    A group has more than one in `batches`. Its timestamps are the oldest and the newest one, and its `crc`,
    `producer_epoch` and `base_sequence` mean nothing.

    A batch ends before the next one of its log, whatever its header says. So `last_offset_delta` may be smaller than
    that of a damaged header, and negative if the offsets of both batches contradict each other.
    """

    data: memoryview
    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    batches: int = 1
    following_offset: int = -1
    """The base offset of the next batch in the log; -1: not known. In formats 0 and 1 it is not that of a record."""

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


_new = tuple.__new__
"""The constructor of tuples. `Batch._make` counts its fields each time, which is a quarter of a scan."""


GatherGroup = Callable[[memoryview, int], tuple[int, ...] | None]
"""A finder of the group at an index, which returns the group's end and its `Batch` fields behind `data`, or None."""


def scan(records: bytes | memoryview, gather: GatherGroup | None = None) -> Iterator[Batch]:
    """Yield the whole batches of a fetch response in order; with `gather`, groups of small ones as one.

    A batch that is cut off at the end is left out: the broker sends it again (`architecture.md` §5).

    Raises:
        CorruptRecordError: A length field cannot be right, so nothing behind it can be trusted.
    """
    view = memoryview(records)
    start, end = 0, len(view)
    begin = _find_begin(view, 0)
    while begin is not None:
        base_offset, length, magic = begin
        if length < OLD_HEADER_SIZE - PREFIX.size:
            raise CorruptRecordError(f"a batch at byte {start} says it is {length} bytes long")
        batch_end = start + PREFIX.size + length
        if batch_end > end:
            return
        begin = _find_begin(view, batch_end)
        following = _following_offset(begin)
        if magic < 2:
            if length + PREFIX.size < OLD_LEAST_SIZE:
                raise CorruptRecordError(f"a message set at byte {start} is shorter than its own header")
            attributes = view[start + 17] & (CODEC_MASK | LOG_APPEND_TIME)
            yield Batch(
                view[start:batch_end], base_offset, -1, magic, 0, attributes, 0, -1, -1, -1, -1, -1, 0, 1, following
            )
        elif length + PREFIX.size < HEADER_SIZE:
            raise CorruptRecordError(f"a batch at byte {start} is shorter than its own header")
        elif (
            gather is not None
            and batch_end - start <= SMALL_BYTES
            and batch_end < end
            and (group := _gathered(gather, view, start)) is not None
        ):
            batch_end = start + len(group.data)
            begin = _find_begin(view, batch_end)
            yield group
        else:
            fields = _FIELDS.unpack_from(view, start)
            if 0 <= following <= base_offset + fields[_DELTA]:
                fields = (*fields[:_DELTA], following - 1 - base_offset, *fields[_DELTA + 1 :])
            yield _new(Batch, (view[start:batch_end], *fields, 1, following))
        start = batch_end


_DELTA = Batch._fields.index("last_offset_delta") - 1
"""The index of that field in `_FIELDS`."""


def _find_begin(view: memoryview, start: int) -> tuple[int, int, int] | None:
    """Return base offset, length and magic of the batch there, which may be cut off; None: too little is left of it."""
    return _BEGIN.unpack_from(view, start) if start + OLD_HEADER_SIZE <= len(view) else None


def _following_offset(begin: tuple[int, int, int] | None) -> int:
    """Return the first offset of the batch that begins so; -1: in an old format only its records say it."""
    return -1 if begin is None or begin[2] < 2 else begin[0]


def _gathered(gather: GatherGroup, view: memoryview, start: int) -> Batch | None:
    """Return the group there; None: there is none, or the next batch begins before its end."""
    if (group := gather(view, start)) is None:
        return None
    batch_end, *fields = group
    following = _following_offset(_find_begin(view, batch_end))
    batch: Batch = _new(Batch, (view[start:batch_end], *fields, following))
    return None if 0 <= following <= batch.last_offset else batch


def size_before(records: bytes | memoryview, limit: int) -> int:
    """Return how many bytes of a fetch response are whole batches before an offset.

    A batch that goes beyond the offset ends them. Bytes that are no batches count: `scan` says what is wrong with them.
    """
    view = memoryview(records)
    start, end = 0, len(view)
    while (begin := _find_begin(view, start)) is not None:
        last_offset, length, magic = begin
        if length < OLD_HEADER_SIZE - PREFIX.size or (magic >= 2 and start + HEADER_SIZE > end):
            return end
        batch_end = start + PREFIX.size + length
        if magic >= 2:
            last_offset += _FIELDS.unpack_from(view, start)[_DELTA]
            following = _following_offset(_find_begin(view, batch_end))
            last_offset = last_offset if following < 0 else min(last_offset, following - 1)
        if last_offset >= limit:
            return start
        start = batch_end
    return end


def scan_groups(records: bytes | memoryview, *, any_producer: bool) -> Iterator[Batch]:
    """Yield the batches of a fetch response as `scan` does, with small ones in groups.

    Compiled code finds them. Without it each batch comes by itself. A group that cannot pass unchanged is taken apart,
    so no rule has a second version. Larger batches are not merged when they are sent, so a group of them gains nothing.

    The batches of a group have at most `SMALL_BYTES` each, right CRCs, and no missing offset. They have one codec, one
    leader epoch, and timestamps of producers. None is a marker or part of a transaction. Without `any_producer` they
    also have one producer id.
    """
    compiled = find_compiled()
    if compiled is None:
        return scan(records)
    gather = compiled.gather
    return scan(records, lambda view, start: gather(view, start, SMALL_BYTES, MERGED_BYTES, any_producer))


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
    target_partition: int = -1
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
    def of(cls, stretches: Iterable[tuple[int, int]]) -> "GappedOffsets":
        """Return the sequence of these stretches, each as its first offset and the number of its offsets."""
        parts: list[Stretch] = []
        index = 0
        for first, count in stretches:
            parts.append((first, index, count))
            index += count
        return cls(tuple(parts))

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
