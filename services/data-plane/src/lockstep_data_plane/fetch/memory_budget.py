"""What a slot has in flight, and what a connection may ask for so that it stays below the cap (no I/O, no clock).

In flight are bytes that are held (fetched and not yet acknowledged) and bytes that are asked for. Three quarters of the
cap are shared: a partition may hold as much of them as is still free. The last quarter is reserved. Each of n
partitions may always hold an eighth of the cap divided by n, and ask for as much again."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

NOBODY_WAITS = -1


class FetchBudget(NamedTuple):
    """What a connection may ask for: of partitions that hold less than `below` bytes, of each at most `each`, and
    `at_most` of all together. `pressed`: so little because most of the cap is taken."""

    below: int
    each: int
    at_most: int
    pressed: bool


class MemoryBudget:
    """The bytes of one slot. What is held and asked for never exceeds the cap, with one exception. A broker answers
    with at least one batch, however large: each connection may bring the excess of that one."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self._held: dict[Hashable, int] = {}
        self._asked: dict[Hashable, int] = {}
        self._used = 0
        self._wakes_at = NOBODY_WAITS

    @property
    def held(self) -> int:
        """Bytes fetched and not yet acknowledged."""
        return self._used - sum(self._asked.values())

    def held_by(self, partition: Hashable) -> int:
        """What it holds of them."""
        return self._held.get(partition, 0)

    def holds(self, partition: Hashable, size: int) -> bool:
        """It holds so much now. Returns whether there is room again for partitions that got less than they wanted."""
        return self._set(self._held, partition, size)

    def expects(self, connection: Hashable, size: int) -> bool:
        """So much is asked for on the connection now, or has come and is not held by its partitions yet. As `holds`."""
        return self._set(self._asked, connection, size)

    def terms(self, *, connections: int, partitions: int, each: int, at_most: int) -> FetchBudget | None:
        """What one of so many connections may ask for now, where so many partitions are fetched; None: nothing. Of each
        partition and of all at most what the last two say.

        If that is less than is usual, a later `holds` or `expects` reports when there is more."""
        a_connections = max(1, self.cap // (2 * max(1, connections)))
        own = max(1, self.cap // (8 * max(1, partitions)))
        each = min(each, a_connections)
        free = self.cap * 3 // 4 - self._used
        if free >= each:
            return FetchBudget(max(free, own + 1), each, min(at_most, a_connections, free), pressed=False)
        left = self.cap - self._used
        if left < own:
            self._wakes_at = max(self._wakes_at, self.cap - own)
            return None
        self._wakes_at = max(self._wakes_at, self.cap * 3 // 4 - each)
        return FetchBudget(own + 1, min(each, own), min(at_most, a_connections, left), pressed=True)

    def _set(self, sizes: dict[Hashable, int], holder: Hashable, size: int) -> bool:
        self._used += size - sizes.get(holder, 0)
        if size:
            sizes[holder] = size
        else:
            sizes.pop(holder, None)
        roomy = self._used <= self._wakes_at
        if roomy:
            self._wakes_at = NOBODY_WAITS
        return roomy
