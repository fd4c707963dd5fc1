"""How much a slot may hold in memory (no I/O, no clock).

Bytes count that are held (fetched and not yet acknowledged), and bytes that are asked for. Three quarters of the cap
are shared: a partition may hold as much of them as is still free. The last quarter is reserved. Each of n partitions
may always hold an eighth of the cap divided by n, and ask for as much again.
"""

from collections.abc import Hashable
from typing import NamedTuple

NEVER = -1


class FetchBudget(NamedTuple):
    """What a connection may ask for: of partitions that hold less than `below` bytes, of each at most `each`, and
    `at_most` of all together. `is_tight`: so little because most of the cap is taken.
    """

    below: int
    each: int
    at_most: int
    is_tight: bool


class MemoryBudget:
    """The bytes of one slot. What is held and asked for never exceeds the cap, with one exception. A broker answers
    with at least one batch, however large: each connection may bring the excess of that one.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self._held: dict[Hashable, int] = {}
        self._asked: dict[Hashable, int] = {}
        self._used = 0
        self._wakes_at = NEVER

    @property
    def held(self) -> int:
        """Bytes fetched and not yet acknowledged."""
        return self._used - sum(self._asked.values())

    def held_by(self, partition: Hashable) -> int:
        """What it holds of them."""
        return self._held.get(partition, 0)

    def set_held(self, partition: Hashable, size: int) -> bool:
        """Note that the partition holds so much now. Whether there is room again for those who got less than usual."""
        return self._set(self._held, partition, size)

    def reserve(self, connection: Hashable, size: int) -> bool:
        """Note that so much is asked for on the connection now. Returns as `set_held`."""
        return self._set(self._asked, connection, size)

    def grant(self, *, connections: int, partitions: int, each: int, at_most: int) -> FetchBudget | None:
        """What one of so many connections may ask for now, where so many partitions are fetched; None: nothing. Of each
        partition and of all at most what the last two say.

        Where that is less than usual, a later `set_held` or `reserve` says when there is more.
        """
        a_connections = max(1, self.cap // (2 * max(1, connections)))
        own = self._reserved(partitions)
        each = min(each, a_connections)
        free = self.cap * 3 // 4 - self._used
        if free >= each:
            return FetchBudget(max(free, own + 1), each, min(at_most, a_connections, free), is_tight=False)
        left = self.cap - self._used
        if left < own:
            self._wakes_at = max(self._wakes_at, self.cap - own)
            return None
        self._wakes_at = max(self._wakes_at, self.cap * 3 // 4 - each)
        return FetchBudget(own + 1, min(each, own), min(at_most, a_connections, left), is_tight=True)

    def may_take(self, partition: Hashable, partitions: int) -> bool:
        """Whether the partition, one of so many that are fetched, may have room now: `grant` says so for certain, and
        never more.
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
