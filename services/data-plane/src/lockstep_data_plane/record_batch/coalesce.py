"""Swarms of tiny batches as one (linger 0 makes a batch of each record): a request costs as much for one record as for
hundreds.

Key, value, headers, timestamp and order of each record stay. The waiting batches decide what is merged, never the
clock. An outgoing batch that could go at once is never held back to be merged."""

from collections import deque
from collections.abc import Sequence

from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS, NONE, CompressionLevels
from lockstep_data_plane.record_batch.copied_records import join_batches
from lockstep_data_plane.record_batch.layout import CODEC_MASK, CRC, CRC_AT, HEADER_SIZE, LOG_APPEND_TIME, scan
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch, expected_crc
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord, unstamped
from lockstep_data_plane.record_batch.rebuild import build, read_records
from lockstep_data_plane.record_batch.varint import zigzag

SMALL_BYTES = 4096
"""An outgoing batch of at most this size is worth merging; larger ones pay for their request."""

MERGED_BYTES = 64 * 1024
"""How large a merged outgoing batch grows at most."""

PLAIN = b"\0\0\0"
"""A record's attributes, and how far its timestamp and offset are from the batch's: none, as in any batch of one."""


def next_outgoing(
    waiting: deque[OutgoingBatch], limit: int, levels: CompressionLevels = JAVAS_LEVELS
) -> tuple[OutgoingBatch, int]:
    """Remove the first batch from `waiting`, merged with the small ones right behind it. Returns it, and the sum of the
    sizes removed. Merged batches have one codec, one time type and one producer id of ours, and at most `limit` bytes
    together. Batches that cannot be decoded stay as they are. Batches of transactions are merged as well: the stamp
    does not name the source's transaction, and its end is known before a batch is queued."""
    first = waiting.popleft()
    size = len(first.data)
    if size > SMALL_BYTES or not waiting:
        return first, size
    group, total, kind = [first], size, _kind(first)
    for outgoing in waiting:
        more = len(outgoing.data)
        if (
            more > SMALL_BYTES
            or total + more > limit
            or outgoing.producer_id != first.producer_id
            or _kind(outgoing) != kind
        ):
            break
        total += more
        group.append(outgoing)
    merged = _merge(group, kind, levels) if len(group) > 1 else None
    if merged is None:
        return first, size
    for _ in group[1:]:
        waiting.popleft()
    return merged, total


def _kind(outgoing: OutgoingBatch) -> int:
    """Codec and time type, from the attributes' lower byte."""
    return outgoing.data[22] & (CODEC_MASK | LOG_APPEND_TIME)


def _merge(group: list[OutgoingBatch], kind: int, levels: CompressionLevels) -> OutgoingBatch | None:
    if kind == NONE and (made := concatenate(group)) is not None:
        return made
    if (made := join_batches(group, kind & CODEC_MASK, levels)) is not None:
        return made
    records: list[PlainRecord] = []
    try:
        for outgoing in group:
            (batch,) = scan(outgoing.data)
            there, offsets = list(read_records(batch)), list(outgoing.offsets)
            if [record.offset for record in there] != offsets:  # it was rebuilt
                there = [record._replace(offset=offset) for record, offset in zip(there, offsets, strict=True)]
            records += there
    except ValueError:
        return None
    (merged,) = build(records, kind & CODEC_MASK, 2**31 - 1, group[-1].leader_epoch, levels)
    merged.covers, merged.to = group[-1].covers, group[-1].to
    return merged


def concatenate(group: Sequence[OutgoingBatch]) -> OutgoingBatch | None:
    """Uncompressed batches of one record each, with the producer's timestamps, as one. The result is what `build` makes
    of the same records, byte for byte, without decoding them. None in three cases. A batch is not what its header says,
    its record has more than key, value and headers, or it is larger than 8 KiB."""
    base = newest = oldest = group[0].base_timestamp
    parts: list[bytes | memoryview] = []
    for delta, outgoing in enumerate(group):
        data, timestamp = outgoing.data, outgoing.base_timestamp
        if outgoing.count != 1 or (begin := _begin(data)) is None:
            return None
        rest = data[begin + len(PLAIN) :]
        deltas = zigzag(timestamp - base) + zigzag(delta)
        parts += (zigzag(1 + len(deltas) + len(rest)), b"\0", deltas, rest)
        newest, oldest = max(newest, timestamp), min(oldest, timestamp)
    made, count = unstamped(b"".join(parts), len(group), base, newest), len(group)
    CRC.pack_into(made, CRC_AT, expected_crc(made))
    last = group[-1]
    offsets = tuple(outgoing.offsets[0] for outgoing in group)
    return OutgoingBatch(bytes(made), count, offsets, last.covers, oldest, newest, last.leader_epoch, to=last.to)


def _begin(data: bytes | memoryview) -> int | None:
    """Where the record of a batch of one begins, behind its length of one or two bytes."""
    if len(data) < HEADER_SIZE + 2:
        return None
    length, begin = data[HEADER_SIZE], HEADER_SIZE + 1
    if length >= 0x80:
        length, begin = length & 0x7F | data[begin] << 7, begin + 1
    if length >> 1 != len(data) - begin or data[begin : begin + len(PLAIN)] != PLAIN:
        return None
    return begin
