"""The merge of small batches, such as those that a producer with linger 0 makes of each record.

A request costs as much for one record as for hundreds, and a slot's work on a batch as much as on a group. Key, value,
headers, timestamp and order of each record stay. Only batches that wait anyway are merged: no clock decides, and a
batch that could go at once is never held back.

Compiled code has found groups (`scan_groups`). Without it each batch comes by itself, and is merged when it waits.
"""

from collections import deque

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import CompressionLevels
from lockstep_data_plane.record_batch.compiled_rebuild import join_batches
from lockstep_data_plane.record_batch.layout import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    LOG_APPEND_TIME,
    MERGED_BYTES,
    SMALL_BYTES,
    OutgoingBatch,
    as_outgoing,
    scan,
)
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build, read_records

MERGED_UNPACKED = 1024 * 1024
"""The largest uncompressed size of what is merged. To unpack more costs more than the request that it saves."""


def next_outgoing(waiting: deque[OutgoingBatch], limits: TargetLimits) -> tuple[OutgoingBatch, int]:
    """Remove the first batch from `waiting`, merged with small ones behind it, and return it with the size removed.

    The first batch is a group, or has at most `SMALL_BYTES`.

    Merged batches have one codec, one timestamp type and one producer id of the flow. Together they have at most
    `MERGED_BYTES`, or what the target takes. What cannot be merged is sent as it is, and a group is then split.

    Batches of transactions are merged as well: the stamp does not name the source's transaction, and its end is known
    before a batch is queued.
    """
    first = waiting.popleft()
    size = len(first.data)
    if first.batches == 1 and not waiting:
        return first, size
    group, total, kind, limit = [first], size, _kind(first), min(MERGED_BYTES, limits.largest_split)
    for outgoing in waiting:
        added = len(outgoing.data)
        if (
            (outgoing.batches == 1 and added > SMALL_BYTES)
            or total + added > limit
            or outgoing.producer_id != first.producer_id
            or _kind(outgoing) != kind
        ):
            break
        total += added
        group.append(outgoing)
    merged = _merge(group, kind, limits.levels) if (first.batches > 1 and size <= limit) or len(group) > 1 else None
    if merged is not None:
        for _ in group[1:]:
            waiting.popleft()
        return merged, total
    if first.batches > 1:
        waiting.extendleft(reversed(_split_group(first)))
        first = waiting.popleft()
    return first, len(first.data)


def _kind(outgoing: OutgoingBatch) -> int:
    """Return codec and timestamp type, from the attributes' lower byte."""
    return outgoing.data[ATTRIBUTES_AT] & (CODEC_MASK | LOG_APPEND_TIME)


def _merge(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch | None:
    try:
        made = join_batches(group, kind & CODEC_MASK, levels, MERGED_UNPACKED)
        return _merge_decoded(group, kind, levels) if made is None else made
    except Exception:  # noqa: BLE001  # each batch is right as it is, and merging only saves requests
        return None


def _merge_decoded(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch:
    """Return the records of all batches as one batch, after decoding them.

    Raises CorruptRecordError, also if they take more than `MERGED_UNPACKED` bytes uncompressed.
    """
    records: list[PlainRecord] = []
    bytes_left = MERGED_UNPACKED
    for outgoing in group:
        decoded: list[PlainRecord] = []
        for batch in scan(outgoing.data):
            batch_records = list(read_records(batch, bytes_left))
            bytes_left -= sum(map(_content_bytes, batch_records))
            decoded += batch_records
        offsets = list(outgoing.offsets)
        if [record.offset for record in decoded] != offsets:  # it was rebuilt
            decoded = [record._replace(offset=offset) for record, offset in zip(decoded, offsets, strict=True)]
        records += decoded
    (merged,) = build(records, kind & CODEC_MASK, 2**31 - 1, group[-1].leader_epoch, levels)
    merged.covers, merged.target_partition = group[-1].covers, group[-1].target_partition
    return merged


def _content_bytes(record: PlainRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _split_group(group: OutgoingBatch) -> list[OutgoingBatch]:
    """Return each batch of a group by itself."""
    apart = [as_outgoing(batch) for batch in scan(group.data)]
    for outgoing in apart:
        outgoing.producer_id = group.producer_id
    apart[-1].covers, apart[-1].leader_epoch = group.covers, group.leader_epoch
    return apart
