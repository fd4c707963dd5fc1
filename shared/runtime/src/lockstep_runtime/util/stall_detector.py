"""Which partitions have more than their reader was given, and had so for long (no I/O, no clock).

librdkafka can stop fetching a partition for good, without an error. Its leader went away while librdkafka was asking it
whether the log is still the same one (fetch state validate-epoch-wait, librdkafka issue 4492).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep_runtime.util.backoff import Backoff

CHECK_INTERVAL, AT_MOST = 15.0, 240.0
"""Seconds between two checks. A stall is found at the second. If beginning anew does not help, or itself keeps a slow
cluster from answering, each check comes twice as long after the one before."""


class StallDetector:
    """Of one reader. Positions are those of the next record it is to be given."""

    def __init__(self, every: float = CHECK_INTERVAL) -> None:
        self._backoff = Backoff(every, AT_MOST)
        self.every = self._backoff.next()
        """Seconds until the next look."""
        self._known: Mapping[int, int] = {}
        self._behind: Mapping[int, int] = {}

    def unmoved(self, positions: Mapping[int, int]) -> Iterable[int]:
        """Partitions whose end is worth asking for, since the last look brought nothing of them."""
        same = [number for number, at in positions.items() if self._known.get(number) == at]
        self._known = dict(positions)
        return same

    def check(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> list[int]:
        """Those that were behind their `ends` at this position before, and still are."""
        behind = {number: positions[number] for number, end in ends.items() if end > positions[number]}
        stuck = [number for number, at in behind.items() if self._behind.get(number) == at]
        self._behind = behind
        if not stuck:
            self._backoff.reset()
        self.every = self._backoff.next()
        return stuck
