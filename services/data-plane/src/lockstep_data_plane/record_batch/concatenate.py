"""Batches of one uncompressed record each as one batch, their keys, values and headers copied as they lie.

What `rebuild.build` makes of the same records, byte for byte, without taking them apart: swarms of single records are
where that counts."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep_data_plane.record_batch.layout import CRC, CRC_AT, HEADER_SIZE
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch
from lockstep_data_plane.record_batch.pure_python_codec import unstamped
from lockstep_data_plane.record_batch.stamp import expected_crc
from lockstep_data_plane.record_batch.varint import zigzag

PLAIN = b"\0\0\0"
"""A record's attributes, and how far its timestamp and offset are from the batch's: none, as in any batch of one."""


def concatenate(group: Sequence[OutgoingBatch]) -> OutgoingBatch | None:
    """Uncompressed batches of one record each, with the producer's timestamps, as one. None where a batch is not what
    its header says, where its record has more than key, value and headers, or where it is larger than 8 KiB."""
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
