"""How far behind a partition is: by what its slot said, and what the driver saw of both clusters (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_data_plane.driver.end_history import EndHistory, ObservedPartition
from lockstep_rules.offsets.lag import WRITES_WITHIN_S, LogRange, behind, copied_upstream, is_of_another_log
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, SourceEnds

FRESH_S = 10.0
"""A slot writes progress each second while records move. Without a check, a row counts for so long. A check whose
answer takes longer has failed: a request may take a minute, and the check before does not describe the present.
"""

CHECK_VALID_S = 90.0
"""Three times as long as the longest time between two checks."""


@dataclass(frozen=True, slots=True)
class Lag:
    """Records that are not on the target. `seconds`: how long the oldest has been in the source's log, as far as that
    was observed."""

    records: int
    seconds: float


class LagEstimator:
    """Remembers the results of the driver's checks, and when rows came. Times are seconds of a clock that does not go
    back, but for rows, which have Unix milliseconds."""

    def __init__(self) -> None:
        self._seen: Mapping[TopicPartition, ObservedPartition] = {}
        self._checked_at = float("-inf")
        self._asked_at = float("inf")
        self._heard: dict[TopicPartition, tuple[float, PartitionProgress]] = {}
        self._history = EndHistory()

    def on_row(self, row: PartitionProgress, now: float) -> None:
        """A row has come. One that is only written again, as when a window of figures ends, says nothing new of the
        source, which may be away."""
        tp = (row.topic, row.partition)
        last = self._heard.get(tp)
        if last is None or _moved(row, last[1]) or row.source_end != last[1].source_end:
            self._heard[tp] = (now, row)

    def asks(self, now: float) -> None:
        """The present look began then; `observe` or `lost` ends it. Infinite: none is without an answer."""
        self._asked_at = now

    def observe(self, seen: Mapping[TopicPartition, ObservedPartition], now: float) -> None:
        """A look at both clusters. What is not among them is forgotten."""
        self._history.observe(seen, now)
        self._seen, self._checked_at = seen, now
        self._asked_at = float("inf")
        self._heard = {tp: heard for tp, heard in self._heard.items() if tp in seen}

    def recall(self, ends: SourceEnds, *, now: float, wall_ms: int) -> None:
        """Take over what an earlier driver saw of the source, before the first look of this one."""
        if self._checked_at == float("-inf"):
            self._history.recall(ends, now=now, wall_ms=wall_ms)

    def lost(self) -> None:
        """The source could not be reached: the result of an earlier check does not describe the present."""
        self._seen, self._asked_at = {}, float("inf")

    def lag(
        self,
        tp: TopicPartition,
        row: PartitionProgress | None,
        topic: MirroredTopic | None,
        *,
        now: float,
        wall_ms: int,
    ) -> Lag | None:
        """Of the partition with this row, its newest. None: unknown."""
        records = self._records(tp, row, topic, now)
        if not records:
            return None if records is None else Lag(0, 0.0)
        upstream = copied_upstream(row, topic)
        ages_ms = [0]
        if row is not None and upstream is not None and row.lag_records:
            ages_ms.append(row.lag_ms + max(0, wall_ms - row.at_ms))
        if (since := self._history.since(tp, -1 if upstream is None else upstream)) is not None:
            ages_ms.append(round(now * 1000) - since)
        return Lag(records, max(ages_ms) / 1000)

    def _records(
        self, tp: TopicPartition, row: PartitionProgress | None, topic: MirroredTopic | None, now: float
    ) -> int | None:
        counts = now - self._checked_at <= CHECK_VALID_S and now - self._asked_at <= FRESH_S
        seen = self._seen.get(tp) if counts else None
        if row is None or is_of_another_log(row, topic):
            return None if seen is None else behind(row, topic, seen.source)
        reported = LogRange(0, row.source_end) if row.source_end >= 0 and row.source_end > row.upstream else None
        if seen is None or seen.source is None:
            return behind(row, topic, reported) if self._age(tp, now) <= FRESH_S else None
        if _moved(row, seen.row):  # the look is older than the row
            source = LogRange(seen.source.start, max(seen.source.end, row.source_end, row.upstream + 1))
            return behind(row, topic, source)
        silent = self._age(tp, now) > WRITES_WITHIN_S
        found = behind(row, topic, seen.source, seen.target_end, silent=silent)
        return None if found is None else max(found, row.lag_records)

    def _age(self, tp: TopicPartition, now: float) -> float:
        """Of what its row says."""
        return now - self._heard[tp][0] if tp in self._heard else float("inf")


def _moved(row: PartitionProgress, then: PartitionProgress | None) -> bool:
    return then is None or (row.upstream, row.downstream) != (then.upstream, then.downstream)
