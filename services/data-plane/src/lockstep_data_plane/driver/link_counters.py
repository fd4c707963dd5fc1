"""The bytes that all slots of a flow sent and received, over their restarts (no I/O, no clock)."""

from collections import defaultdict
from collections.abc import Mapping

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
