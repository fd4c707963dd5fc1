"""The comparison of a batch of the target with one of the source without reading records (no I/O).

The stamp is all that Lockstep changes of a batch that passes (`architecture.md` §5, "Stamp"). It is base offset,
leader epoch, some attributes, producer id, epoch and sequence, and the CRC.
"""

from enum import Enum

from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.layout import (
    CONTROL,
    CRC_FROM,
    KEPT_ATTRIBUTES,
    LOG_APPEND_TIME,
    Batch,
    expected_crc,
)

_PRODUCER_AT, _PRODUCER_ENDS = 43, 57
_BEFORE_THE_PRODUCER = slice(23, _PRODUCER_AT)
"""The bytes of the last offset delta and both timestamps."""
_BEHIND_THE_PRODUCER = slice(_PRODUCER_ENDS, None)
"""The bytes of the record count and the records."""
_ALL_ONES = 0xFFFFFFFF
_ZEROS = memoryview(bytes(1 << 20))


class Depth(Enum):
    """The depth at which a copy is compared."""

    COUNT = "count"
    """The ends of both logs and the offset runs between them. Nothing is fetched."""
    CRC = "crc"
    """The CRC of each batch, without the part of it that comes from Lockstep's stamp."""
    BYTES = "bytes"
    """All bytes of a batch except the stamp, and its CRC."""
    RECORD = "record"
    """Key, value, headers, timestamp and order of each record."""


def is_copy(source: Batch, target: Batch, depth: Depth) -> bool:
    """Return whether the target's batch holds exactly the records of the source's, at this depth.

    False does not mean a difference. Such a batch may be rebuilt, so its records have to be compared.
    """
    if depth is Depth.RECORD or not _may_be_copy(source, target):
        return False
    if depth is Depth.CRC:
        return source.crc ^ target.crc == stamp_difference(source.data, target.data)
    source_bytes, target_bytes = source.data, target.data
    return bytes(source_bytes[_BEFORE_THE_PRODUCER]) == bytes(target_bytes[_BEFORE_THE_PRODUCER]) and (
        # Two copies and one comparison by the C library are faster than two memoryviews byte by byte.
        bytes(source_bytes[_BEHIND_THE_PRODUCER]) == bytes(target_bytes[_BEHIND_THE_PRODUCER])
        and expected_crc(target_bytes) == target.crc
    )


def _may_be_copy(source: Batch, target: Batch) -> bool:
    return (
        source.magic == target.magic == 2
        and len(source.data) == len(target.data)
        and source.record_count == target.record_count == source.last_offset_delta + 1 == target.last_offset_delta + 1
        and (source.attributes ^ target.attributes) & (KEPT_ATTRIBUTES | CONTROL) == 0
        and not target.attributes & LOG_APPEND_TIME
    )


def stamp_difference(source: memoryview, target: memoryview) -> int:
    """Return the exclusive or of the CRCs of two batches of one size that differ only in attributes and producer.

    A CRC is linear: the CRC of an exclusive or is the exclusive or of the CRCs. So only the bytes of the stamp count,
    and their distance from the end of the batch.
    """
    head = bytes(a ^ b for a, b in zip(source[CRC_FROM:_PRODUCER_ENDS], target[CRC_FROM:_PRODUCER_ENDS], strict=True))
    only = head[:2] + bytes(_PRODUCER_AT - CRC_FROM - 2) + head[_PRODUCER_AT - CRC_FROM :]
    # crc32c inverts the register before and after; begun with all ones, it is the plain remainder.
    crc, remaining = crc32c(only, _ALL_ONES), len(source) - _PRODUCER_ENDS
    while remaining > 0:
        crc = crc32c(_ZEROS[:remaining], crc)
        remaining -= len(_ZEROS)
    return crc ^ _ALL_ONES


def is_empty(batch: Batch) -> bool:
    """Return whether the batch has no record. Such are control batches, and batches that compaction has emptied."""
    return bool(batch.attributes & CONTROL) or (batch.magic == 2 and batch.record_count == 0)
