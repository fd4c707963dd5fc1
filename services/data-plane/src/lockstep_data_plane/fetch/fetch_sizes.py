"""The size of fetch requests to a broker (no I/O; time comes from outside).

One connection fetches all partitions that a slot has of a broker. A second one shares the work only while there is
much to fetch. Then one answer is processed while the other is on its way.
"""

from collections import defaultdict
from dataclasses import dataclass

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.core.append_sequence import SLOT_BYTES_PER_S
from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget

COUNTED_S = 0.1
MUCH_BYTES = 1_600_000
"""A connection brings much if it brings at least `MUCH_BYTES` within `COUNTED_S`."""

MUCH_LASTS_S = 10.0
"""Seconds for which the second connection goes on after one of the two last brought much."""

COVER = 2.0
"""Round trips that the bytes in flight cover: the next answer comes in while one is parsed."""


def partition_bytes(configured: int, round_trip_s: float, partitions: int, room: int) -> int:
    """Return the bytes to fetch of each of so many partitions, at least `configured`.

    It is more only as long as two fetches of all partitions fit into `room`, the bytes that the slot may hold.
    """
    needed = int(SLOT_BYTES_PER_S * round_trip_s * COVER) // max(1, partitions)
    return max(configured, min(needed, room // (2 * max(1, partitions))))


@dataclass(slots=True)
class _Load:
    """The bytes that one connection brought lately."""

    since: float = float("-inf")
    size: int = 0
    much_at: float = float("-inf")


class FetchSizes:
    """The size of each request of a slot. `now` is always in seconds of a monotonic clock."""

    def __init__(self, settings: FetchSettings, budget: MemoryBudget) -> None:
        self._settings = settings
        self._budget = budget
        self._loads: dict[tuple[int, int], _Load] = defaultdict(_Load)

    def limits(self, round_trip_s: float, *, connections: int, partitions: int) -> FetchBudget | None:
        """Return what one connection may ask for now, or None for nothing.

        Unless the configuration file sets the size, it grows with the round trip.

        Args:
            round_trip_s: The round-trip time in seconds; 0 if it is not known yet.
            connections: The number of connections that have partitions.
            partitions: The number of partitions that the slot fetches.
        """
        max_partition_bytes = self._settings.max_partition_bytes
        if self._settings.grows:
            max_partition_bytes = partition_bytes(max_partition_bytes, round_trip_s, partitions, self._budget.cap)
        return self._budget.grant(
            connections=connections,
            partitions=partitions,
            max_partition_bytes=max_partition_bytes,
            max_bytes=self._settings.max_bytes,
        )

    def on_fetched(self, connection: tuple[int, int], size: int, now: float) -> None:
        """Count the bytes that an answer brought on the connection, which is the broker's first (0) or second (1)."""
        load = self._loads[connection]
        if now - load.since >= COUNTED_S:
            load.since, load.size = now, 0
        load.size += size
        if load.size >= MUCH_BYTES:
            load.much_at = now

    def count_to_give(self, connection: tuple[int, int], own: int, others: int, now: float) -> int:
        """Return how many of its `own` partitions the connection gives to the other one of its broker.

        A connection that brings much gives half of what it has more. If neither brings much, the second gives all to
        the first.

        Args:
            connection: The broker, and 0 or 1.
            own: The number of partitions of this connection.
            others: The number of partitions of the other connection.
            now: The time in seconds.
        """
        broker, index = connection
        if self._brings_much(connection, now):
            return max(0, own - others) // 2
        return own if index == 1 and not self._brings_much((broker, 0), now) else 0

    def _brings_much(self, connection: tuple[int, int], now: float) -> bool:
        return now - self._loads[connection].much_at < MUCH_LASTS_S
