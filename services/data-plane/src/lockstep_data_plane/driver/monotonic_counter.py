"""Counts that go on over restarts of what is counted (no I/O, no clock).

A slot counts from 0 each time it starts a partition, and a page's counters must not fall. Each beginning has a name of
its own (`PartitionProgress.counts_since`, `SlotStatus.run`). So a new count is recognized even where it is already
larger than the last one was."""

from collections.abc import Hashable

from lockstep_state.metric import row_metrics
from lockstep_state.rows.state_rows import Row

REMEMBERED = 4
"""Beginnings that may still speak: the present one, and those that do not know yet that they are over."""


class MonotonicCounter:
    """The sum of what was counted since all of its beginnings, as far as it was seen. Seeing a row twice, late or in
    between those of another beginning changes nothing."""

    def __init__(self) -> None:
        self.total = 0
        self._seen: dict[Hashable, int] = {}

    def start_from(self, beginning: Hashable, value: int) -> None:
        """The count of an earlier leader, before our time: it does not count again."""
        self._seen[beginning] = max(value, self._seen.get(beginning, 0))

    def update(self, beginning: Hashable, value: int) -> int:
        """Take over a count. Returns by how much the total grew."""
        before = self._seen.get(beginning, 0)
        if value <= before:
            return 0
        self._seen.pop(beginning, None)
        self._seen[beginning] = value  # the newest at the end
        while len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self.total += value - before
        return value - before


class RowCounters:
    """The counts of a row's fields that begin from 0 again and again (`RowMetric.since`)."""

    def __init__(self, row_class: type[Row]) -> None:
        self._counters = {
            name: (one.since, MonotonicCounter()) for name, one in row_metrics(row_class).items() if one.since
        }

    def start_from(self, row: Row) -> None:
        """The row was written before our time."""
        for name, (since, counter) in self._counters.items():
            counter.start_from(getattr(row, since), getattr(row, name))

    def update(self, row: Row) -> dict[str, int]:
        """Take over the counts of a row. Returns by how much each total grew."""
        return {
            name: counter.update(getattr(row, since), getattr(row, name))
            for name, (since, counter) in self._counters.items()
        }

    def totals(self) -> dict[str, int]:
        """By field."""
        return {name: counter.total for name, (_, counter) in self._counters.items()}
