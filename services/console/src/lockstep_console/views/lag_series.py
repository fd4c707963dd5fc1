"""The lag of each partition in the last quarter of an hour, as this console saw it. Bounded, and lost with its end.

A sample takes eight bytes for each partition, and none if no partition was behind: most never are. What the data plane
wrote of the worst ones (`lag-worst`) fills the time in which nobody looked.
"""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from lockstep_ops.status.report import PartitionLine
from lockstep_rules.offsets.lag_history import WORST_SAMPLE_MS, recent_lags
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Row, WorstLags
from lockstep_state.rows.value_types import LARGEST_COUNT

STEP_MS = 10_000
STEPS = 90
"""Samples of 15 minutes."""

UNKNOWN = -1

Sample = tuple[Mapping[TopicPartition, int], "array[int]"]
"""The place of each partition that there was, and the lag at each place. The array is empty if all were 0."""


class LagSeries:
    """The samples of a flow by the number of their ten seconds."""

    def __init__(self) -> None:
        self._samples: OrderedDict[int, Sample] = OrderedDict()
        self._places: dict[TopicPartition, int] = {}
        """Samples of the same partitions share it."""

    def add(self, at_ms: int, lines: Iterable[PartitionLine]) -> None:
        """Take a sample of a report. Of two in the same ten seconds the later one stays."""
        lines = list(lines)
        places = {(line.topic, line.partition): place for place, line in enumerate(lines)}
        if places != self._places:
            self._places = places
        lags = array("q", (UNKNOWN if line.lag_ms is None else min(line.lag_ms, LARGEST_COUNT) for line in lines))
        number = at_ms // STEP_MS
        self._samples[number] = self._places, lags if any(lags) else array("q")
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
            if sample is not None and (place := sample[0].get(tp)) is not None:
                lag_ms = sample[1][place] if sample[1] else 0
                values.append(None if lag_ms == UNKNOWN else lag_ms)
            else:
                minute = len(minutes) - 1 - (now_ms // WORST_SAMPLE_MS - number * STEP_MS // WORST_SAMPLE_MS)
                values.append(minutes[minute] if 0 <= minute < len(minutes) else None)
        return values


def recent_worst(rows: Mapping[str, Row], now_ms: int) -> dict[TopicPartition, tuple[int | None, ...]]:
    """Return what the data plane wrote of the partitions that lagged most in the last quarter of an hour."""
    return recent_lags((row for row in rows.values() if isinstance(row, WorstLags)), now_ms)
