"""Swarms of tiny batches as one (linger 0 makes a batch of each record): a request costs as much for one record as for
hundreds.

Key, value, headers, timestamp and order of each record stay. What is merged is decided by what waits, never by the
clock: an outgoing batch that could go at once is never held back for company."""

from __future__ import annotations

from collections import deque

from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, NONE, CompressionLevels
from lockstep_data_plane.record_batch.concatenate import concatenate
from lockstep_data_plane.record_batch.layout import CODEC_MASK, LOG_APPEND_TIME, scan
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build, read_records

SMALL_BYTES = 4096
"""An outgoing batch of at most this size is worth merging; larger ones pay for their request."""

MERGED_BYTES = 64 * 1024
"""How large a merged outgoing batch grows at most."""


def next_outgoing(
    waiting: deque[OutgoingBatch], limit: int, levels: CompressionLevels = JAVAS_LEVELS
) -> tuple[OutgoingBatch, int]:
    """Remove the first batch from `waiting`, merged with the small ones right behind it. Returns it, and the sum of the
    sizes removed. Merged batches have one codec, one time type and one producer id of ours, and at most `limit` bytes
    together. Batches that cannot be decoded stay as they are. Batches of transactions are merged as well: the stamp
    does not name the source's transaction, and its end is known before a batch is queued."""
    first = waiting.popleft()
    if first.size > SMALL_BYTES or not waiting:
        return first, first.size
    group, total, kind = [first], first.size, _kind(first)
    for outgoing in waiting:
        total += outgoing.size
        if (
            outgoing.size > SMALL_BYTES
            or total > limit
            or (_kind(outgoing), outgoing.producer_id) != (kind, first.producer_id)
        ):
            break
        group.append(outgoing)
    merged = _merge(group, kind, levels) if len(group) > 1 else None
    if merged is None:
        return first, first.size
    for _ in group[1:]:
        waiting.popleft()
    return merged, sum(outgoing.size for outgoing in group)


def _kind(outgoing: OutgoingBatch) -> int:
    """Codec and time type, from the attributes' lower byte."""
    return outgoing.data[22] & (CODEC_MASK | LOG_APPEND_TIME)


def _merge(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch | None:
    if kind == NONE and (made := concatenate(group)) is not None:
        return made
    records: list[PlainRecord] = []
    try:
        for outgoing in group:
            (batch,) = scan(outgoing.data)
            records.extend(
                record._replace(offset=offset)
                for record, offset in zip(read_records(batch), outgoing.offsets, strict=True)
            )
    except ValueError:
        return None
    (merged,) = build(records, kind & CODEC_MASK, 2**31 - 1, group[-1].leader_epoch, levels)
    merged.covers, merged.to = group[-1].covers, group[-1].to
    return merged
