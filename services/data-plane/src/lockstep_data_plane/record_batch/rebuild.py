"""Read the records of a batch of any format. Build it anew from them if it cannot pass unchanged (the table of
`architecture.md` §5).

Key, value, headers, timestamp and order of each record stay; offsets within the batch, boundaries and compression frame
do not."""

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatch

from lockstep_data_plane.record_batch import pure_python_codec
from lockstep_data_plane.record_batch.classify import NO_LIMIT, TargetLimits
from lockstep_data_plane.record_batch.codecs import (
    HARD_LEVELS,
    JAVAS_LEVELS,
    LZ4,
    NONE,
    UNREADABLE,
    CompressionLevels,
    compress,
)
from lockstep_data_plane.record_batch.copied_records import copy_records
from lockstep_data_plane.record_batch.gapped_offsets import GappedOffsets
from lockstep_data_plane.record_batch.layout import CODEC_MASK, CRC, CRC_AT, CRC_FROM, HEADER_SIZE, PREFIX, Batch, scan
from lockstep_data_plane.record_batch.message_set import decompress_old_lz4, is_intact, wrapped_value
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch, expected_crc
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_protocol.errors import NeedsDecision, RetriableError

_LENGTH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMPS = struct.Struct(">qq")


class CorruptRecordError(RetriableError, ValueError):
    """The bytes of a batch are no records: a CRC or a length is wrong."""


class RecordTooLarge(NeedsDecision):
    """A single record is larger than the target takes; `record` is it, with its upstream offset."""

    def __init__(self, record: PlainRecord, size: int, limit: int) -> None:
        super().__init__(
            f"the record at offset {record.offset} needs a batch of {size} bytes, "
            f"the target topic takes {limit} (max.message.bytes)"
        )
        self.record = record


def read_records(batch: Batch) -> Iterator[PlainRecord]:
    """The records of a batch of any magic and codec, in order, with the timestamps that consumers see. (KIP-32: under
    log append time the batch's; -1: none.) Raises ValueError when the bytes are no records, CorruptRecordError where
    Kafka's own checks find that."""
    try:
        yield from _read(batch)
    except CorruptRecordException as exc:
        raise CorruptRecordError(str(exc)) from exc


def _read(batch: Batch) -> Iterator[PlainRecord]:
    read_so_far = 0
    try:
        for r in _messages(batch) if batch.magic < 2 else DefaultRecordBatch(bytes(batch.data)):
            yield PlainRecord(r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value, r.headers)
            read_so_far += 1
    except UnicodeDecodeError:
        yield from islice(pure_python_codec.read_plain_records(batch), read_so_far, None)
    except CorruptRecordException:
        raise
    except UNREADABLE as exc:
        raise ValueError(f"its records cannot be decompressed ({exc})") from exc


def rebuild(
    batch: Batch, position: int, limits: TargetLimits, skips: Sequence[tuple[int, int]] = ()
) -> list[OutgoingBatch]:
    """The batch's records from `position` on, without the offsets of `skips` (first, last). They are in as few outgoing
    batches as the target's limit allows; empty when there are none.

    The codec stays, unless `limits` ask for another (`TargetLimits.choose_codec`). Raises RecordTooLarge, and what
    `read_records` raises.
    """
    if (copied := copy_records(batch, position, limits, skips)) is not None:
        return copied
    records = [
        r
        for r in read_records(batch)
        if r.offset >= position and not any(first <= r.offset <= last for first, last in skips)
    ]
    if not records:
        return []
    codec = limits.choose_codec(batch.attributes & CODEC_MASK)
    outgoing_batches = build(records, codec, limits.max_bytes, batch.leader_epoch, limits.levels, limits.split_above)
    outgoing_batches[-1].covers = max(batch.last_offset, outgoing_batches[-1].covers)
    return outgoing_batches


def build(
    records: Sequence[PlainRecord],
    codec: int,
    max_bytes: int,
    leader_epoch: int,
    levels: CompressionLevels = JAVAS_LEVELS,
    split_above: int = NO_LIMIT,
) -> list[OutgoingBatch]:
    """Records as outgoing batches of at most `max_bytes` each, halved until they fit, and none of several records is
    larger than `split_above`. A single one above either is compressed harder, since its producer may have done so.
    Raises RecordTooLarge for a single one above `max_bytes`."""
    data = _encode(records, codec, levels)
    if len(data) > min(max_bytes, split_above):
        if len(records) > 1:
            middle = len(records) // 2
            halves = records[:middle], records[middle:]
            return [
                outgoing
                for half in halves
                for outgoing in build(half, codec, max_bytes, leader_epoch, levels, split_above)
            ]
        data = min(data, _encode(records, codec, HARD_LEVELS), key=len)
        if len(data) > max_bytes:
            raise RecordTooLarge(records[0], len(data), max_bytes)
    return [
        OutgoingBatch(
            data,
            len(records),
            GappedOffsets.gather(r.offset for r in records),
            records[-1].offset,
            min(r.timestamp for r in records),
            max(r.timestamp for r in records),
            leader_epoch,
        )
    ]


def _encode(records: Sequence[PlainRecord], codec: int, levels: CompressionLevels) -> bytes:
    try:
        data = _uncompressed(records)
    except UnicodeEncodeError:
        data = pure_python_codec.encode(records)
    if codec != NONE:
        data[HEADER_SIZE:] = compress(bytes(data[HEADER_SIZE:]), codec, levels)
        _LENGTH.pack_into(data, 8, len(data) - PREFIX.size)
        _ATTRIBUTES.pack_into(data, CRC_FROM, codec)
    CRC.pack_into(data, CRC_AT, expected_crc(data))
    return bytes(data)


def _uncompressed(records: Sequence[PlainRecord]) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=NONE,
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
    return data


def _messages(batch: Batch) -> Iterator[Any]:
    """The messages of a set of format 0 or 1, which segments from before Kafka 0.11 still hold (KIP-31, KIP-32), as
    aiokafka's records. Raises CorruptRecordException for a wrong CRC, ValueError and AssertionError for bytes that are
    no messages, and what the codecs raise."""
    if not is_intact(batch):
        raise CorruptRecordException("its CRC does not match its bytes")
    if batch.magic == 0 and batch.attributes & CODEC_MASK == LZ4:
        # aiokafka does not read it; once out of its frame, each message is a set of its own.
        for inner in scan(decompress_old_lz4(wrapped_value(batch))):
            yield from LegacyRecordBatch(bytes(inner.data), 0)
        return
    yield from LegacyRecordBatch(bytes(batch.data), batch.magic)
