"""Counters that go on over restarts of what is counted (no I/O, no clock).

A slot counts from 0 each time it starts a partition, and a page's counters must not fall. Each start has a name of its
own (`PartitionProgress.counts_since`, `SlotStatus.run`). So a new count is recognized even if it is already larger than
the last one was.
"""

from collections.abc import Hashable

from lockstep_state.metric import row_metrics
from lockstep_state.rows.state_rows import Row

STARTS_KEPT = 4
"""Starts whose counts may still arrive: the present one, and those that have not noticed yet that they are over."""


class MonotonicCounter:
    """The sum of what was counted since all starts, as far as it was seen.

    A count that is seen twice, late, or between those of another start changes nothing.
    """

    def __init__(self) -> None:
        self.total = 0
        self._values: dict[Hashable, int] = {}

    def start_from(self, start: Hashable, value: int) -> None:
        """Leave out what was counted so far: an earlier leader has shown it."""
        self._values[start] = max(value, self._values.get(start, 0))

    def update(self, start: Hashable, value: int) -> int:
        """Take over a count, and return by how much the total grew."""
        before = self._values.get(start, 0)
        if value <= before:
            return 0
        self._values.pop(start, None)
        self._values[start] = value  # the newest at the end
        while len(self._values) > STARTS_KEPT:
            del self._values[next(iter(self._values))]
        self.total += value - before
        return value - before


class RowCounters:
    """The counters of a row's fields that begin from 0 with each start (`RowMetric.since`)."""

    def __init__(self, row_class: type[Row]) -> None:
        self._counters = {
            name: (declared.since, MonotonicCounter())
            for name, declared in row_metrics(row_class).items()
            if declared.since
        }

    def start_from(self, row: Row) -> None:
        """Leave out what the row has counted so far."""
        for name, (since, counter) in self._counters.items():
            counter.start_from(getattr(row, since), getattr(row, name))

    def update(self, row: Row) -> dict[str, int]:
        """Take over the counts of a row, and return by how much each total grew."""
        return {
            name: counter.update(getattr(row, since), getattr(row, name))
            for name, (since, counter) in self._counters.items()
        }

    def totals(self) -> dict[str, int]:
        """Return the total of each field."""
        return {name: counter.total for name, (_, counter) in self._counters.items()}
