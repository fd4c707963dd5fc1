"""Swarms of tiny batches as one (linger 0 makes a batch of each record): a request costs as much for one record as for
hundreds.

Key, value, headers, timestamp and order of each record stay. What is merged is decided by what waits, never by the
clock: a piece that could go at once is never held back for company."""

from __future__ import annotations

from collections import deque

from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, NONE, CompressionLevels
from lockstep_data_plane.record_batch.concatenate import concatenate
from lockstep_data_plane.record_batch.layout import CODEC_MASK, LOG_APPEND_TIME, scan
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch
from lockstep_data_plane.record_batch.rebuild import PlainRecord, build, read_records

__all__ = ["MERGED_BYTES", "SMALL_BYTES", "next_outgoing"]

SMALL_BYTES = 4096
"""A piece of at most this size is worth merging; larger ones pay for their request."""

MERGED_BYTES = 64 * 1024
"""How large a merged piece grows at most."""


def next_outgoing(
    waiting: deque[OutgoingBatch], limit: int, levels: CompressionLevels = JAVAS_LEVELS
) -> tuple[OutgoingBatch, int]:
    """Take the first piece off `waiting`, merged with the small ones right behind it, as long as all are of one codec,
    one time type and one producer id of ours and their sizes sum up to no more than `limit` bytes; and the sum of the
    sizes taken. Pieces that cannot be decoded are left as they are. That a batch was part of a transaction keeps
    nothing apart: its stamp would not say so either, and its end is known before it is queued."""
    first = waiting.popleft()
    if first.size > SMALL_BYTES or not waiting:
        return first, first.size
    group, total, kind = [first], first.size, _kind(first)
    for piece in waiting:
        total += piece.size
        if piece.size > SMALL_BYTES or total > limit or (_kind(piece), piece.producer_id) != (kind, first.producer_id):
            break
        group.append(piece)
    merged = _merge(group, kind, levels) if len(group) > 1 else None
    if merged is None:
        return first, first.size
    for _ in group[1:]:
        waiting.popleft()
    return merged, sum(piece.size for piece in group)


def _kind(piece: OutgoingBatch) -> int:
    """Codec and time type, from the attributes' lower byte."""
    return piece.data[22] & (CODEC_MASK | LOG_APPEND_TIME)


def _merge(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch | None:
    if kind == NONE and (made := concatenate(group)) is not None:
        return made
    records: list[PlainRecord] = []
    try:
        for piece in group:
            (batch,) = scan(piece.data)
            records.extend(
                record._replace(offset=offset)
                for record, offset in zip(read_records(batch), piece.offsets, strict=True)
            )
    except ValueError:
        return None
    (merged,) = build(records, kind & CODEC_MASK, 2**31 - 1, group[-1].leader_epoch, levels)
    merged.covers, merged.to = group[-1].covers, group[-1].to
    return merged
