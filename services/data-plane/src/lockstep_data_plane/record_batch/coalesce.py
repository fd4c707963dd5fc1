"""Swarms of tiny batches as one (linger 0 makes a batch of each record). A request costs as much for one record as for
hundreds, and a slot's work on a batch as much as on a group.

Key, value, headers, timestamp and order of each record stay. The waiting batches decide what is merged, never the
clock. An outgoing batch that could go at once is never held back to be merged.

Compiled code finds groups (`docs/decisions/0072-small-batches-are-judged-in-groups.md`). Without it each batch comes by
itself, and is merged when it waits."""

from collections import deque
from collections.abc import Iterator

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import CompressionLevels
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.copied_records import join_batches
from lockstep_data_plane.record_batch.layout import CODEC_MASK, LOG_APPEND_TIME, SMALL_BYTES, Batch, scan
from lockstep_data_plane.record_batch.outgoing_batch import ATTRIBUTES_AT, OutgoingBatch, as_outgoing
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build, read_records

MERGED_BYTES = 64 * 1024
"""How large a group, or a merged outgoing batch, grows at most."""

MERGED_UNPACKED = 1024 * 1024
"""How large what is merged may be uncompressed. It costs more to unpack than the request that it saves."""


def scan_groups(records: bytes | memoryview, *, any_producer: bool) -> Iterator[Batch]:
    """As `scan`. Batches of at most `SMALL_BYTES` come as one group if the CRC of each is right and no offset is
    missing. They have one codec, one leader epoch, and timestamps of producers. None is a marker or part of a
    transaction. Without `any_producer` they also have one producer id."""
    compiled = find_compiled()
    if compiled is None:
        return scan(records)
    gather = compiled.gather
    return scan(records, lambda view, at: gather(view, at, SMALL_BYTES, MERGED_BYTES, any_producer))


def next_outgoing(waiting: deque[OutgoingBatch], limits: TargetLimits) -> tuple[OutgoingBatch, int]:
    """Remove the first batch from `waiting`, merged with the small ones right behind it. Returns it, and the sum of the
    sizes removed. Merged batches have one codec, one time type and one producer id of ours, and together at most
    `MERGED_BYTES`, or what the target takes. What cannot be merged is sent as it is; a group is then taken apart.
    Batches of transactions are merged as well: the stamp does not name the source's transaction, and its end is known
    before a batch is queued."""
    first = waiting.popleft()
    size = len(first.data)
    if first.batches == 1 and (size > SMALL_BYTES or not waiting):
        return first, size
    group, total, kind, limit = [first], size, _kind(first), min(MERGED_BYTES, limits.largest_split)
    for outgoing in waiting:
        more = len(outgoing.data)
        if (
            (more > SMALL_BYTES and outgoing.batches == 1)
            or total + more > limit
            or outgoing.producer_id != first.producer_id
            or _kind(outgoing) != kind
        ):
            break
        total += more
        group.append(outgoing)
    merged = _merge(group, kind, limits.levels) if len(group) > 1 or (first.batches > 1 and size <= limit) else None
    if merged is not None:
        for _ in group[1:]:
            waiting.popleft()
        return merged, total
    if first.batches > 1:
        waiting.extendleft(reversed(_taken_apart(first)))
        first = waiting.popleft()
    return first, len(first.data)


def _kind(outgoing: OutgoingBatch) -> int:
    """Codec and time type, from the attributes' lower byte."""
    return outgoing.data[ATTRIBUTES_AT] & (CODEC_MASK | LOG_APPEND_TIME)


def _merge(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch | None:
    try:
        made = join_batches(group, kind & CODEC_MASK, levels, MERGED_UNPACKED)
        return _merge_decoded(group, kind, levels) if made is None else made
    except Exception:  # noqa: BLE001  # each batch is right as it is, and merging only saves requests
        return None


def _merge_decoded(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch:
    """Return the records of all batches as one batch. Raises CorruptRecordError, also where they take more than
    `MERGED_UNPACKED` bytes uncompressed."""
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
    merged.covers, merged.to = group[-1].covers, group[-1].to
    return merged


def _content_bytes(record: PlainRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _taken_apart(group: OutgoingBatch) -> list[OutgoingBatch]:
    """Each batch of a group by itself."""
    apart = [as_outgoing(batch) for batch in scan(group.data)]
    for outgoing in apart:
        outgoing.producer_id = group.producer_id
    apart[-1].covers, apart[-1].leader_epoch = group.covers, group.leader_epoch
    return apart
