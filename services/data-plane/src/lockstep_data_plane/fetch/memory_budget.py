"""The limit of what a slot may hold in memory (no I/O, no clock).

Two kinds of bytes count: held bytes, which are fetched and not yet acknowledged, and bytes that are asked for. Three
quarters of the cap are shared: a partition may hold as much of them as is still free. The last quarter is reserved.
Each of n partitions may always hold an eighth of the cap divided by n, and ask for as much again.
"""

from collections.abc import Hashable
from typing import NamedTuple

NEVER = -1


class FetchBudget(NamedTuple):
    """The bytes that a connection may ask for.

    It may ask for partitions that hold less than `below` bytes: at most `max_partition_bytes` of one, and `max_bytes`
    of all. If `is_tight`, this is less than usual because most of the cap is taken.
    """

    below: int
    max_partition_bytes: int
    max_bytes: int
    is_tight: bool


class MemoryBudget:
    """The held and requested bytes of one slot, which together never exceed the cap, with one exception.

    A broker answers with at least one batch, however large. Each connection may bring what this batch exceeds.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self._held: dict[Hashable, int] = {}
        self._requested: dict[Hashable, int] = {}
        self._used = 0
        self._wakes_at = NEVER

    @property
    def held(self) -> int:
        """The bytes that are fetched and not yet acknowledged."""
        return self._used - sum(self._requested.values())

    def held_by(self, partition: Hashable) -> int:
        """Return the bytes that the partition holds."""
        return self._held.get(partition, 0)

    def set_held(self, partition: Hashable, size: int) -> bool:
        """Note how many bytes the partition holds, and return whether a request that got too little can get more."""
        return self._set(self._held, partition, size)

    def reserve(self, connection: Hashable, size: int) -> bool:
        """Note how many bytes are asked for on the connection. Return as `set_held` does."""
        return self._set(self._requested, connection, size)

    def grant(
        self, *, connections: int, partitions: int, max_partition_bytes: int, max_bytes: int
    ) -> FetchBudget | None:
        """Return what one connection may ask for now, or None for nothing.

        After a grant that is less than usual, a later `set_held` or `reserve` returns True once there is more.

        Args:
            connections: The number of connections.
            partitions: The number of partitions that are fetched.
            max_partition_bytes: The most bytes to ask for of one partition.
            max_bytes: The most bytes to ask for of all.
        """
        a_connections = max(1, self.cap // (2 * max(1, connections)))
        own = self._reserved(partitions)
        max_partition_bytes = min(max_partition_bytes, a_connections)
        free = self.cap * 3 // 4 - self._used
        if free >= max_partition_bytes:
            return FetchBudget(
                max(free, own + 1), max_partition_bytes, min(max_bytes, a_connections, free), is_tight=False
            )
        remaining = self.cap - self._used
        if remaining < own:
            self._wakes_at = max(self._wakes_at, self.cap - own)
            return None
        self._wakes_at = max(self._wakes_at, self.cap * 3 // 4 - max_partition_bytes)
        return FetchBudget(
            own + 1, min(max_partition_bytes, own), min(max_bytes, a_connections, remaining), is_tight=True
        )

    def may_take(self, partition: Hashable, partitions: int) -> bool:
        """Return whether the partition, one of `partitions` that are fetched, may have room now.

        `grant` decides for certain, and never allows more.
        """
        return self._held.get(partition, 0) <= max(self.cap * 3 // 4 - self._used - 1, self._reserved(partitions))

    def _reserved(self, partitions: int) -> int:
        return max(1, self.cap // (8 * max(1, partitions)))

    def _set(self, sizes: dict[Hashable, int], key: Hashable, size: int) -> bool:
        self._used += size - sizes.pop(key, 0)
        if size:
            sizes[key] = size
        roomy = self._used <= self._wakes_at
        if roomy:
            self._wakes_at = NEVER
        return roomy
