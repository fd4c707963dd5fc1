"""The layout of a record batch (magic 2, big-endian; `architecture.md` §5 "Batch facts"), and the scan of a log."""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lockstep_state.errors import RetriableError

PREFIX = struct.Struct(">qi")
"""The fields baseOffset and batchLength: enough to find the next batch."""
HEADER = struct.Struct(">qiibIhiqqqhii")
"""The header: all 61 bytes before the records."""
HEADER_SIZE = HEADER.size
UNCOVERED = struct.Struct(">qiibI")
"""The first part of the header: baseOffset, batchLength, partitionLeaderEpoch, magic, crc."""
COVERED = struct.Struct(">hiqqqhii")
"""The second part of the header, which the CRC covers as it does the records."""
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

LARGEST_OFFSET = 2**63 - 2
"""The largest offset that a record can have: the next one has to be a number of 64 bits too."""

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20


class CorruptRecordError(RetriableError, ValueError):
    """The error of bytes that are no records: a CRC, a length or an offset is wrong."""


class Batch(NamedTuple):
    """A batch with its header fields, or a group of small batches that follow each other (`coalesce.py`).

    `data` is exactly the bytes. A message set of magic 0 or 1 has only `data`, `base_offset`, `magic`, and codec and
    timestamp type in `attributes`. It must be read record by record.

    A group has more than one in `batches`. Its timestamps are the oldest and the newest one, and its `crc`,
    `producer_epoch` and `base_sequence` mean nothing.
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
    while start + OLD_HEADER_SIZE <= end:
        base_offset, length = PREFIX.unpack_from(view, start)
        if length < OLD_HEADER_SIZE - PREFIX.size:
            raise CorruptRecordError(f"a batch at byte {start} says it is {length} bytes long")
        batch_end = start + PREFIX.size + length
        if batch_end > end:
            return
        magic = view[start + 16]
        if magic < 2:
            if length + PREFIX.size < OLD_LEAST_SIZE:
                raise CorruptRecordError(f"a message set at byte {start} is shorter than its own header")
            attributes = view[start + 17] & (CODEC_MASK | LOG_APPEND_TIME)
            yield Batch(view[start:batch_end], base_offset, -1, magic, 0, attributes, 0, -1, -1, -1, -1, -1, 0)
        elif length + PREFIX.size < HEADER_SIZE:
            raise CorruptRecordError(f"a batch at byte {start} is shorter than its own header")
        elif (
            gather is not None
            and batch_end - start <= SMALL_BYTES
            and batch_end < end
            and (group := gather(view, start)) is not None
        ):
            batch_end, *fields = group
            yield _new(Batch, (view[start:batch_end], *fields))
        else:
            yield _new(Batch, (view[start:batch_end], *_FIELDS.unpack_from(view, start), 1))
        start = batch_end
