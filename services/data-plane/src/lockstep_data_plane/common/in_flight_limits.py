"""How much to have under way, by how long a round trip takes (no I/O).

The bytes under way must cover the round trip. A connection that asks for a megabyte and waits 80 ms for each carries 12
MB a second, on any line. Near brokers are asked exactly as the settings say."""

SLOT_BYTES_PER_S = 100_000_000
"""More than one slot copies, so that the way is never what holds it up."""

COVER = 2.0
"""Under way for so many round trips: while one answer is taken apart the next is coming."""

AHEAD = 5
"""Requests a connection has unanswered at most where the broker is near: it answers one of a connection at a time."""

WINDOW = 5
"""Batches of a partition unanswered at most where the broker is near, and everywhere where more would only wait."""

FAR_S = 0.010
"""A round trip from which on a broker is far."""

FAR_AHEAD = FAR_WINDOW = 100
"""Requests of a connection, and batches of a partition, unanswered at most where it is."""

LONG_S = 5.0
"""A connection whose answers are so late has enough in flight: it would soon be taken for lost."""


def partition_bytes(configured: int, round_trip_s: float, partitions: int, room: int) -> int:
    """Bytes to ask for of each of so many partitions of a slot that may hold `room` bytes. Never less than configured.
    More only as long as two fetches of all of them fit."""
    needed = int(SLOT_BYTES_PER_S * round_trip_s * COVER) // max(1, partitions)
    return max(configured, min(needed, room // (2 * max(1, partitions))))


def requests_ahead(round_trip_s: float) -> int:
    """Requests to have unanswered on one producing connection. One may carry a single batch, and a partition's next
    request waits until its window allows it. So a far broker needs one request for each batch of the window."""
    return FAR_AHEAD if round_trip_s >= FAR_S else AHEAD


def window(round_trip_s: float, under_way: int, duration_s: float) -> int:
    """Batches of one partition to have unanswered on a producing connection where so many bytes are, and whose last
    answer took so long.

    Producers that send again keep to the five batches that a broker remembers of them. Here nothing is sent again
    (decision 0005), and a broker takes any number of batches whose sequences follow each other. So a far broker gets as
    many as cover the round trip (decision 0041)."""
    far = round_trip_s >= FAR_S and duration_s < LONG_S and under_way < SLOT_BYTES_PER_S * round_trip_s
    return FAR_WINDOW if far else WINDOW
