"""Build a batch anew from its records, where it cannot pass as it lies (the table of design §5).

Key, value, headers, timestamp and order of each record stay; offsets within the batch, boundaries and compression frame
do not."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cramjam
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatch

from lockstep_data_plane.batches.judge import Limits
from lockstep_data_plane.batches.layout import CODEC_MASK, Batch
from lockstep_data_plane.batches.piece import Piece
from lockstep_data_plane.batches.stamp import crc_of

__all__ = ["Record", "RecordTooLarge", "build", "read", "rebuild"]

NO_LIMIT = 2**31 - 1

UNREADABLE = (
    cramjam.DecompressionError,
    UnsupportedCodecError,
    struct.error,
    zlib.error,
    OSError,
    EOFError,
    RuntimeError,
)
"""What aiokafka and its codecs raise for bytes that do not decompress."""

_CRC = struct.Struct(">I")
_TIMESTAMPS = struct.Struct(">qq")


class RecordTooLarge(ValueError):
    """A single record is larger than the target takes; `record` is it, with its upstream offset."""

    def __init__(self, record: Record, size: int, limit: int) -> None:
        super().__init__(
            f"the record at offset {record.offset} needs a batch of {size} bytes, "
            f"the target topic takes {limit} (max.message.bytes)"
        )
        self.record = record


class Record(NamedTuple):
    """One record as a consumer sees it. `timestamp` in ms; -1: none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def read(batch: Batch) -> Iterator[Record]:
    """The records of a batch of any magic and codec, in order, with the timestamps that consumers see (KIP-32: under
    log append time the batch's). Raises ValueError or aiokafka's CorruptRecordException when the bytes are no
    records."""
    data = bytes(batch.data)
    source = LegacyRecordBatch(data, batch.magic) if batch.magic < 2 else DefaultRecordBatch(data)
    if batch.magic < 2 and not source.validate_crc():
        raise CorruptRecordException("its CRC does not match its bytes")
    try:
        for r in source:
            timestamp = -1 if r.timestamp is None else r.timestamp
            yield Record(r.offset, timestamp, r.key, r.value, r.headers)
    except UNREADABLE as exc:
        raise ValueError(f"its records cannot be decompressed ({exc})") from exc


def rebuild(batch: Batch, position: int, limits: Limits, skips: Sequence[tuple[int, int]] = ()) -> list[Piece]:
    """The batch's records from `position` on, without the offsets of `skips` (first, last), in as few pieces as the
    target's limit allows; empty when there are none.

    The codec stays, unless the batch is uncompressed and `limits.codec` asks for one. Raises RecordTooLarge.
    """
    records = [
        r for r in read(batch) if r.offset >= position and not any(first <= r.offset <= last for first, last in skips)
    ]
    if not records:
        return []
    codec = (batch.attributes & CODEC_MASK) or limits.codec
    pieces = build(records, codec, limits.max_bytes, batch.leader_epoch)
    pieces[-1].covers = max(batch.last_offset, pieces[-1].covers)
    return pieces


def build(records: Sequence[Record], codec: int, max_bytes: int, leader_epoch: int) -> list[Piece]:
    """Records as pieces of at most `max_bytes` each, halved until they fit. Raises RecordTooLarge."""
    data = _encode(records, codec)
    if len(data) > max_bytes:
        if len(records) == 1:
            raise RecordTooLarge(records[0], len(data), max_bytes)
        middle = len(records) // 2
        return [
            *build(records[:middle], codec, max_bytes, leader_epoch),
            *build(records[middle:], codec, max_bytes, leader_epoch),
        ]
    return [
        Piece(
            data,
            len(records),
            tuple(r.offset for r in records),
            records[-1].offset,
            min(r.timestamp for r in records),
            max(r.timestamp for r in records),
            leader_epoch,
        )
    ]


def _encode(records: Sequence[Record], codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=NO_LIMIT,
    )
    # The builder takes a first timestamp of -1 for none yet: such a batch is built a millisecond later and set back.
    later = 1 if records[0].timestamp == -1 else 0
    for delta, r in enumerate(records):
        builder.append(delta, r.timestamp + later, r.key, r.value, list(r.headers))
    data = bytearray(builder.build())
    if later:
        base, newest = _TIMESTAMPS.unpack_from(data, 27)
        _TIMESTAMPS.pack_into(data, 27, base - later, newest - later)
        _CRC.pack_into(data, 17, crc_of(data))
    return bytes(data)
