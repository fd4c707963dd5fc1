"""The lag of each partition in the last quarter of an hour, as this console saw it. Bounded, and lost with its end.

A sample has only the partitions that were behind: most never are. What the data plane wrote of the worst ones
(`lag-worst`) fills the time in which nobody looked.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from lockstep_ops.status.report import PartitionLine
from lockstep_rules.offsets.lag_history import WORST_SAMPLE_MS, recent_lags
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Row, WorstLags

STEP_MS = 10_000
STEPS = 90
"""Samples of 15 minutes."""

Sample = tuple[frozenset[TopicPartition], Mapping[TopicPartition, int | None]]
"""The partitions that there were, and the lag of those that were behind; None: unknown."""


class LagSeries:
    """The samples of a flow by the number of their ten seconds."""

    def __init__(self) -> None:
        self._samples: OrderedDict[int, Sample] = OrderedDict()
        self._partitions: frozenset[TopicPartition] = frozenset()

    def add(self, at_ms: int, lines: Iterable[PartitionLine]) -> None:
        """Take a sample of a report. Of two in the same ten seconds the later one stays."""
        lines = list(lines)
        partitions = frozenset((line.topic, line.partition) for line in lines)
        if partitions != self._partitions:
            self._partitions = partitions
        behind = {(line.topic, line.partition): line.lag_ms for line in lines if line.lag_ms != 0}
        number = at_ms // STEP_MS
        self._samples[number] = self._partitions, behind
        while len(self._samples) > STEPS:
            self._samples.popitem(last=False)

    def spark(
        self, tp: TopicPartition, now_ms: int, by_minute: Mapping[TopicPartition, tuple[int | None, ...]]
    ) -> list[int | None]:
        """Return the lag of a partition each ten seconds, in milliseconds, oldest first. None: unknown, or not seen.

        `by_minute` is what `recent_lags` returns.
        """
        minutes = by_minute.get(tp, ())
        last = now_ms // STEP_MS
        values: list[int | None] = []
        for number in range(last - STEPS + 1, last + 1):
            sample = self._samples.get(number)
            if sample is not None and tp in sample[0]:
                values.append(sample[1].get(tp, 0))
            else:
                minute = len(minutes) - 1 - (now_ms // WORST_SAMPLE_MS - number * STEP_MS // WORST_SAMPLE_MS)
                values.append(minutes[minute] if 0 <= minute < len(minutes) else None)
        return values


def recent_worst(rows: Mapping[str, Row], now_ms: int) -> dict[TopicPartition, tuple[int | None, ...]]:
    """Return what the data plane wrote of the partitions that lagged most in the last quarter of an hour."""
    return recent_lags((row for row in rows.values() if isinstance(row, WorstLags)), now_ms)
