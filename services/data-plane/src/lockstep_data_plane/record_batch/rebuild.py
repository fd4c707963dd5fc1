"""The rebuild of a batch of any format that cannot pass unchanged, by decoding its records (`batches.md`).

Key, value, headers, timestamp and order of each record stay. Offsets within the batch, its boundaries and its
compression frame do not.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from lockstep_data_plane.record_batch import pure_python_codec
from lockstep_data_plane.record_batch.classify import NO_LIMIT, TargetLimits
from lockstep_data_plane.record_batch.codecs import (
    HARD_LEVELS,
    JAVAS_LEVELS,
    NONE,
    UNPACKED_AT_MOST,
    CompressionLevels,
    compress,
    decompress,
)
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.compiled_rebuild import copy_records
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    CRC,
    CRC_AT,
    CRC_FROM,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    PREFIX,
    Batch,
    CorruptRecordError,
    GappedOffsets,
    OutgoingBatch,
    expected_crc,
)
from lockstep_data_plane.record_batch.message_set import read_messages
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_rules.record_rules import RecordRules
from lockstep_state.errors import NeedsDecision

_LENGTH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMPS = struct.Struct(">qq")

RECORD_BYTES = 128
"""The least memory of a record's object: a batch may have millions of records, of seven bytes each."""


class RecordTooLarge(NeedsDecision):
    """The error of a single record that is larger than the target takes. `record` has its upstream offset."""

    def __init__(self, record: PlainRecord, size: int, limit: int) -> None:
        super().__init__(
            f"the record at offset {record.offset} needs a batch of {size} bytes, "
            f"the target topic takes {limit} (max.message.bytes)"
        )
        self.record = record


def read_records(batch: Batch, at_most: int = UNPACKED_AT_MOST) -> Iterator[PlainRecord]:
    """Return the records of a batch of any magic and codec, in order, with the timestamps that consumers see.

    Under log append time these are the batch's (KIP-32); -1: none.

    Raises:
        CorruptRecordError: Java's consumer would not take the bytes, or they take more than `at_most` bytes
            uncompressed.
    """
    if batch.magic < 2:
        return (PlainRecord(*message, ()) for message in read_messages(batch, at_most))
    return _read(batch, at_most)


def _read(batch: Batch, at_most: int) -> Iterator[PlainRecord]:
    if batch.magic > 2:
        raise CorruptRecordError(f"its format, {batch.magic}, is not known")
    if batch.record_count * RECORD_BYTES > at_most:
        raise CorruptRecordError(f"it has {batch.record_count} records, more than {at_most // RECORD_BYTES}")
    unpacked = decompress(batch.data[HEADER_SIZE:], batch.attributes & CODEC_MASK, at_most)
    if (compiled := find_compiled()) is not None:
        append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
        count, base, last_delta = batch.record_count, batch.base_offset, batch.last_offset_delta
        fields = compiled.read(unpacked, count, base, last_delta, batch.base_timestamp, append_time)
        if fields is not None:
            return map(PlainRecord._make, fields)
    return pure_python_codec.read_plain_records(batch, unpacked)


def rebuild(
    batch: Batch, position: int, limits: TargetLimits, skips: Sequence[tuple[int, int]] = ()
) -> list[OutgoingBatch]:
    """Return the batch's records from `position` on, in as few outgoing batches as the target's limit allows.

    Offsets in `skips` (first, last) are left out. The list is empty if no record is left. The codec stays, unless
    `limits` ask for another (`TargetLimits.choose_codec`). Records are dropped and changed as their rules say. Raises
    RecordTooLarge, and what `read_records` raises.
    """
    if (copied := copy_records(batch, position, limits, skips)) is not None:
        return copied
    records = [
        r
        for r in _ruled(read_records(batch, limits.unpacked_at_most), limits)
        if r.offset >= position and not any(first <= r.offset <= last for first, last in skips)
    ]
    if not records:
        return []
    codec = limits.choose_codec(batch.attributes & CODEC_MASK)
    outgoing_batches = build(records, codec, limits.max_bytes, batch.leader_epoch, limits.levels, limits.split_above)
    outgoing_batches[-1].covers = max(batch.last_offset, outgoing_batches[-1].covers)
    return outgoing_batches


def with_rules(records: Iterable[PlainRecord], rules: RecordRules) -> Iterator[PlainRecord]:
    """Yield the records that rules leave, with the headers that they get."""
    for record in records:
        headers = rules.apply(record.headers, is_tombstone=record.value is None)
        if headers is not None:
            yield record if headers is record.headers else record._replace(headers=headers)


def _ruled(records: Iterator[PlainRecord], limits: TargetLimits) -> Iterator[PlainRecord]:
    if limits.rules is None:
        return records
    plain = list(records)
    if limits.adds_too_much(len(plain)):
        raise CorruptRecordError(
            f"with the headers that lockstep.headers adds, its {len(plain)} records take more than "
            f"{limits.unpacked_at_most} bytes uncompressed"
        )
    return with_rules(plain, limits.rules)


def build(
    records: Sequence[PlainRecord],
    codec: int,
    max_bytes: int,
    leader_epoch: int,
    levels: CompressionLevels = JAVAS_LEVELS,
    split_above: int = NO_LIMIT,
) -> list[OutgoingBatch]:
    """Return the records as outgoing batches of at most `max_bytes` each, halved until they fit.

    No batch of several records is larger than `split_above`. A single record above either is compressed harder, since
    its producer may have done so. Raises RecordTooLarge for a single one above `max_bytes`.
    """
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
    except (UnicodeEncodeError, OverflowError):  # the builder takes UTF-8 names only, and not the largest time
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


def next_offset(batch: Batch) -> int:
    """Return the offset after the last record of a batch."""
    if batch.magic < 2:  # its header says nothing of the offsets inside
        try:
            return max((record.offset for record in read_records(batch)), default=batch.base_offset) + 1
        except CorruptRecordError:  # the offset of a message that wraps others is that of the last one
            return batch.base_offset + 1
    return batch.last_offset + 1
