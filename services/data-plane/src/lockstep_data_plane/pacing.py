"""How much to have under way, by how long a round trip takes (no I/O).

What is under way must cover the round trip: a connection that asks for a megabyte and waits 80 ms for each carries 12
MB a second, whatever the line could. Near brokers are asked exactly as the settings say."""

from __future__ import annotations

__all__ = ["AHEAD", "partition_bytes", "requests_ahead"]

SLOT_BYTES_PER_S = 100_000_000
"""More than one slot copies, so that the way is never what holds it up."""

COVER = 2.0
"""Under way for so many round trips: while one answer is taken apart the next is coming."""

AHEAD = 5
"""Requests a lane has unanswered at most where the broker is near: it answers one of a connection at a time."""

FAR_S = 0.010
FAR_AHEAD = 25


def partition_bytes(configured: int, round_trip_s: float, partitions: int, room: int) -> int:
    """Bytes to ask for of each of so many partitions of a slot that may hold `room` bytes: never less than configured,
    and more only as long as two fetches of all of them fit."""
    needed = int(SLOT_BYTES_PER_S * round_trip_s * COVER) // max(1, partitions)
    return max(configured, min(needed, room // (2 * max(1, partitions))))


def requests_ahead(round_trip_s: float) -> int:
    """Requests to have unanswered on one producing connection. One may carry a single batch, and none of a partition
    goes before the window of the one before allows it, so a far broker needs one for each batch of the window and of
    some partitions."""
    return FAR_AHEAD if round_trip_s >= FAR_S else AHEAD
