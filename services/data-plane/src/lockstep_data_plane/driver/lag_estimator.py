"""The lag of a partition, by its slot's row and by the driver's own checks of both clusters (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_data_plane.driver.end_history import EndHistory, ObservedPartition
from lockstep_rules.offsets.lag import WRITES_WITHIN_S, LogRange, copied_upstream, count_behind, is_of_another_log
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, SourceEnds

FRESH_S = 10.0
"""Seconds for which a row counts without a check. A slot writes progress each second while records move.

A check whose answer takes longer has failed: a request may take a minute, and the check before does not describe the
present.
"""

CHECK_VALID_S = 90.0
"""Seconds for which a check counts: three times as long as the longest time between two checks."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The records of a partition that are not on the target.

    `seconds` is how long the oldest one has been in the source's log, as far as that was observed.
    """

    records: int
    seconds: float


class LagEstimator:
    """The results of the driver's checks and the times at which rows changed.

    Times are seconds of a monotonic clock. Those in rows are Unix milliseconds.
    """

    def __init__(self) -> None:
        self._observed: Mapping[TopicPartition, ObservedPartition] = {}
        self._checked_at = float("-inf")
        self._check_began_at = float("inf")
        self._row_changes: dict[TopicPartition, tuple[float, PartitionProgress]] = {}
        self._history = EndHistory()

    def on_row(self, row: PartitionProgress, now: float) -> None:
        """Note a row, if its progress or its source end has changed.

        A row that only repeats them, as when a window of figures ends, says nothing new of a source that may be away.
        """
        tp = (row.topic, row.partition)
        previous = self._row_changes.get(tp)
        if previous is None or _moved(row, previous[1]) or row.source_end != previous[1].source_end:
            self._row_changes[tp] = (now, row)

    def begin_check(self, now: float) -> None:
        """Note when the check began that has no answer yet; infinite: every check is answered.

        `observe` or `forget_check` ends the check.
        """
        self._check_began_at = now

    def observe(self, observed: Mapping[TopicPartition, ObservedPartition], now: float) -> None:
        """Take over the result of a check of both clusters. Partitions that are not among `observed` are forgotten."""
        self._history.observe(observed, now)
        self._observed, self._checked_at = observed, now
        self._check_began_at = float("inf")
        self._row_changes = {tp: heard for tp, heard in self._row_changes.items() if tp in observed}

    def restore(self, ends: SourceEnds, *, now: float, wall_ms: int) -> None:
        """Take over what an earlier driver saw of the source, before the first check of this one."""
        if self._checked_at == float("-inf"):
            self._history.restore(ends, now=now, wall_ms=wall_ms)

    def forget_check(self) -> None:
        """Forget the last check, because the source could not be reached since."""
        self._observed, self._check_began_at = {}, float("inf")

    def lag(
        self,
        tp: TopicPartition,
        row: PartitionProgress | None,
        topic: MirroredTopic | None,
        *,
        now: float,
        wall_ms: int,
    ) -> Lag | None:
        """Return the lag of a partition; None: it is unknown.

        Args:
            tp: The source partition.
            row: Its newest progress row; None: its copy has not begun.
            topic: The row of its topic; None: the topic is not mirrored.
            now: Seconds of the monotonic clock.
            wall_ms: The present time in Unix milliseconds.
        """
        records = self._records(tp, row, topic, now)
        if not records:
            return None if records is None else Lag(0, 0.0)
        upstream = copied_upstream(row, topic)
        ages_ms = [0]
        if row is not None and upstream is not None and row.lag_records:
            ages_ms.append(row.lag_ms + max(0, wall_ms - row.at_ms))
        if (since := self._history.first_seen_ms(tp, -1 if upstream is None else upstream)) is not None:
            ages_ms.append(round(now * 1000) - since)
        return Lag(records, max(ages_ms) / 1000)

    def _records(
        self, tp: TopicPartition, row: PartitionProgress | None, topic: MirroredTopic | None, now: float
    ) -> int | None:
        counts = now - self._checked_at <= CHECK_VALID_S and now - self._check_began_at <= FRESH_S
        observed = self._observed.get(tp) if counts else None
        if row is None or is_of_another_log(row, topic):
            return None if observed is None else count_behind(row, topic, observed.source)
        reported = LogRange(0, row.source_end) if row.source_end >= 0 and row.source_end > row.upstream else None
        if observed is None or observed.source is None:
            return count_behind(row, topic, reported) if self._age(tp, now) <= FRESH_S else None
        if _moved(row, observed.row):  # the look is older than the row
            source = LogRange(observed.source.start, max(observed.source.end, row.source_end, row.upstream + 1))
            return count_behind(row, topic, source)
        silent = self._age(tp, now) > WRITES_WITHIN_S
        records = count_behind(row, topic, observed.source, observed.target_end, silent=silent)
        return None if records is None else max(records, row.lag_records)

    def _age(self, tp: TopicPartition, now: float) -> float:
        """Return the seconds since the partition's row changed."""
        return now - self._row_changes[tp][0] if tp in self._row_changes else float("inf")


def _moved(row: PartitionProgress, previous: PartitionProgress | None) -> bool:
    return previous is None or (row.upstream, row.downstream) != (previous.upstream, previous.downstream)
