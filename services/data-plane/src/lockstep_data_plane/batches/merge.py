"""Swarms of tiny batches as one (linger 0 makes a batch of each record): a request costs as much for one record as for
hundreds.

Key, value, headers, timestamp and order of each record stay. What is merged is decided by what waits, never by the
clock: a piece that could go at once is never held back for company."""

from __future__ import annotations

from collections import deque

from aiokafka.errors import CorruptRecordException

from lockstep_data_plane.batches.layout import CODEC_MASK, scan
from lockstep_data_plane.batches.piece import Piece
from lockstep_data_plane.batches.rebuild import Record, build, read

__all__ = ["MERGED_BYTES", "SMALL_BYTES", "next_piece"]

SMALL_BYTES = 4096
"""A piece of at most this size is worth merging; larger ones pay for their request."""

MERGED_BYTES = 64 * 1024
"""How large a merged piece grows at most."""


def next_piece(waiting: deque[Piece], limit: int) -> tuple[Piece, int]:
    """Take the first piece off `waiting`, merged with the small ones right behind it, as long as all are of one codec
    and their sizes sum up to no more than `limit` bytes; and the sum of the sizes taken. Pieces that cannot be decoded
    are left as they are."""
    first = waiting.popleft()
    if first.size > SMALL_BYTES or not waiting:
        return first, first.size
    group, total, codec = [first], first.size, _codec(first)
    for piece in waiting:
        total += piece.size
        if piece.size > SMALL_BYTES or total > limit or _codec(piece) != codec:
            break
        group.append(piece)
    merged = _merge(group, codec) if len(group) > 1 else None
    if merged is None:
        return first, first.size
    for _ in group[1:]:
        waiting.popleft()
    return merged, sum(piece.size for piece in group)


def _codec(piece: Piece) -> int:
    return piece.data[22] & CODEC_MASK


def _merge(group: list[Piece], codec: int) -> Piece | None:
    records: list[Record] = []
    try:
        for piece in group:
            (batch,) = scan(piece.data)
            records.extend(
                record._replace(offset=offset) for record, offset in zip(read(batch), piece.offsets, strict=True)
            )
    except (CorruptRecordException, ValueError):
        return None
    (merged,) = build(records, codec, 2**31 - 1, group[-1].leader_epoch)
    merged.covers = group[-1].covers
    return merged
