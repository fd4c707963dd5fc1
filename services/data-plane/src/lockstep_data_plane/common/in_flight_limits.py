"""Limits of the bytes, requests and batches in flight, by the round trip to a broker (no I/O).

The bytes in flight must cover the round trip. A connection that asks for a megabyte and waits 80 ms for each carries 12
MB a second on any line. For near brokers the settings hold exactly.
"""

SLOT_BYTES_PER_S = 100_000_000
"""Bytes a second that the limits allow for: more than one slot copies, so that they never slow it down."""

COVER = 2.0
"""Round trips that the bytes in flight cover: the next answer comes in while one is parsed."""

AHEAD = 5
"""Unanswered requests of a connection to a near broker at most: a broker answers one of a connection at a time."""

WINDOW = 5
"""Unanswered batches of a partition at most, for near brokers and wherever more would only wait."""

FAR_S = 0.010
"""Seconds of round trip from which on a broker is far."""

FAR_AHEAD = FAR_WINDOW = 100
"""Unanswered requests of a connection to a far broker at most, and unanswered batches of a partition on it."""

LONG_S = 5.0
"""Seconds that an answer may take before more in flight would make the connection look lost."""


def partition_bytes(configured: int, round_trip_s: float, partitions: int, room: int) -> int:
    """Return the bytes to fetch of each of so many partitions, at least `configured`.

    It is more only as long as two fetches of all partitions fit into `room`, the bytes that the slot may hold.
    """
    needed = int(SLOT_BYTES_PER_S * round_trip_s * COVER) // max(1, partitions)
    return max(configured, min(needed, room // (2 * max(1, partitions))))


def requests_ahead(round_trip_s: float) -> int:
    """Return how many requests a producing connection may have unanswered.

    A request may carry a single batch, and a partition's next one waits until its window allows it. So a far broker
    gets one request for each batch of the window.
    """
    return FAR_AHEAD if round_trip_s >= FAR_S else AHEAD


def window(round_trip_s: float, under_way: int, duration_s: float) -> int:
    """Return how many batches of a partition may be unanswered on a producing connection.

    Producers that send again keep to the five batches that a broker remembers of them. Here nothing is sent again
    (decision 0005), and a broker takes any number of batches whose sequences follow each other. So a far broker gets as
    many as cover the round trip (decision 0041).

    Args:
        round_trip_s: The round trip of the connection.
        under_way: The bytes in flight on it.
        duration_s: The seconds that its last answer took.
    """
    far = round_trip_s >= FAR_S and duration_s < LONG_S and under_way < SLOT_BYTES_PER_S * round_trip_s
    return FAR_WINDOW if far else WINDOW
