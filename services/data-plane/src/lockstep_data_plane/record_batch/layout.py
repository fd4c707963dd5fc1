"""Where the fields of a record batch lie (magic 2, big-endian; `architecture.md` §5 "Batch facts") and how a log is
scanned for batches."""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lockstep_state.errors import RetriableError

PREFIX = struct.Struct(">qi")
"""baseOffset, batchLength: enough to know where the next batch begins."""
HEADER = struct.Struct(">qiibIhiqqqhii")
"""All 61 bytes before the records."""
HEADER_SIZE = HEADER.size
UNCOVERED = struct.Struct(">qiibI")
"""Its first part: baseOffset, batchLength, partitionLeaderEpoch, magic, crc."""
COVERED = struct.Struct(">hiqqqhii")
"""The rest of it, which the CRC covers as it does the records."""
_FIELDS = struct.Struct(">q4xiBIhiqqqhii")
"""The fields of `Batch` behind `data`: all of the header but the length. A magic that is no format is above 2."""
CRC, CRC_AT = struct.Struct(">I"), 17
CRC_FROM = 21
"""The CRC covers everything from the attributes on."""
OLD_HEADER_SIZE = 17
"""Magic 0 and 1: offset, size, crc, magic lie in the first 17 bytes."""
OLD_LEAST_SIZE = 26
"""A message of magic 0 with neither key nor value; no set is shorter."""

SMALL_BYTES = 4096
"""A batch of at most this size is worth merging; larger ones pay for their request."""

LARGEST_OFFSET = 2**63 - 2
"""The largest one a record can have: that of the next record has to be a number of 64 bits too."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20


class CorruptRecordError(RetriableError, ValueError):
    """The bytes of a batch are no records that could be read: a CRC, a length or an offset is wrong."""


class Batch(NamedTuple):
    """A batch and its header. `data` is exactly the batch's bytes. For magic 0 and 1 only `data`, `base_offset`,
    `magic`, and of `attributes` codec and time type are set. Such a message set must be read record by record.

    Or a group: several `batches` that follow each other, as `coalesce.py` finds them. Their timestamps are the
    oldest and the newest. `crc`, `producer_epoch` and `base_sequence` are none."""

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

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


_new = tuple.__new__
"""`Batch._make` counts its fields each time, which is a quarter of a scan."""


GatherGroup = Callable[[memoryview, int], tuple[int, ...] | None]
"""Where the group ends that begins at a byte, and the fields of its `Batch` behind `data`; None: there is none."""


def scan(records: bytes | memoryview, gather: GatherGroup | None = None) -> Iterator[Batch]:
    """The whole batches in what a fetch returned, in order; with `gather`, groups of them as one. A batch cut off at
    the end is left out: the broker sends it again (`architecture.md` §5). Raises CorruptRecordError when a length field
    cannot be one, since nothing behind it can be trusted."""
    view = memoryview(records)
    at, end = 0, len(view)
    while at + OLD_HEADER_SIZE <= end:
        base_offset, length = PREFIX.unpack_from(view, at)
        if length < OLD_HEADER_SIZE - PREFIX.size:
            raise CorruptRecordError(f"a batch at byte {at} says it is {length} bytes long")
        nxt = at + PREFIX.size + length
        if nxt > end:
            return
        magic = view[at + 16]
        if magic < 2:
            if length + PREFIX.size < OLD_LEAST_SIZE:
                raise CorruptRecordError(f"a message set at byte {at} is shorter than its own header")
            attributes = view[at + 17] & (CODEC_MASK | LOG_APPEND_TIME)
            yield Batch(view[at:nxt], base_offset, -1, magic, 0, attributes, 0, -1, -1, -1, -1, -1, 0)
        elif length + PREFIX.size < HEADER_SIZE:
            raise CorruptRecordError(f"a batch at byte {at} is shorter than its own header")
        elif gather is not None and nxt - at <= SMALL_BYTES and nxt < end and (group := gather(view, at)) is not None:
            nxt, *fields = group
            yield _new(Batch, (view[at:nxt], *fields))
        else:
            yield _new(Batch, (view[at:nxt], *_FIELDS.unpack_from(view, at), 1))
        at = nxt
