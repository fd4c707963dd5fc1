"""The sums of what the slots of a flow count, over their restarts (no I/O, no clock)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from lockstep_data_plane.driver.monotonic_counter import MonotonicCounter
from lockstep_state.rows.state_rows import SlotStatus

Link = tuple[str, str, str]
"""Cluster alias, direction and rack."""


class LinkCounters:
    """The byte counters of one flow's links."""

    def __init__(self) -> None:
        self._counters: dict[tuple[int, Link], MonotonicCounter] = defaultdict(MonotonicCounter)

    def update(self, row: SlotStatus) -> None:
        """Take over the byte counts in the status row of a slot's run."""
        for cluster, direction, rack, count in row.link_bytes:
            self._counters[row.slot, (cluster, direction, rack)].update(row.run, count)

    def totals(self) -> Mapping[Link, int]:
        """Return the bytes of each link."""
        totals: dict[Link, int] = defaultdict(int)
        for (_, link), counter in self._counters.items():
            totals[link] += counter.total
        return totals


class TransformTotals(NamedTuple):
    """The counts of one transform over all slots, and the bytes that wait in their present runs."""

    records_in: int
    records_out: int
    failed: int
    evaluating_ms: int
    held_bytes: int


class TransformCounters:
    """The counters of one flow's transforms."""

    def __init__(self) -> None:
        self._counters: dict[tuple[int, str], tuple[MonotonicCounter, ...]] = {}
        self._held: dict[tuple[int, str], int] = {}
        self.versions: dict[str, str] = {}
        """The version of each transform, as a slot reported it last."""

    def update(self, row: SlotStatus) -> None:
        """Take over the counts in the status row of a slot's run."""
        for name, version, *counts, held_bytes in row.transforms:
            counters = self._counters.setdefault((row.slot, name), tuple(MonotonicCounter() for _ in counts))
            for counter, count in zip(counters, counts, strict=True):
                counter.update(row.run, count)
            self._held[row.slot, name] = held_bytes if row.phase == "started" else 0
            self.versions[name] = version

    def totals(self) -> Mapping[str, TransformTotals]:
        """Return the counts of each transform."""
        totals: dict[str, TransformTotals] = {}
        for (slot, name), counters in self._counters.items():
            own = (*(counter.total for counter in counters), self._held[slot, name])
            before = totals.get(name, TransformTotals(0, 0, 0, 0, 0))
            totals[name] = TransformTotals(*(count + more for count, more in zip(before, own, strict=True)))
        return totals
