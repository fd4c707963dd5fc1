"""How far behind a partition is: by what its slot said, and what the driver saw of both clusters (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_protocol.lag import NOT_ASKED, WRITES_WITHIN_S, LogRange, behind, copied_upstream, is_of_another_log
from lockstep_protocol.observed_ends import ObservedEnds
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import MirroredTopic, PartitionProgress, SourceEnds

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


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """Hold one look at one partition: its rows just before, and what the clusters said then. None: not answered."""

    row: PartitionProgress | None
    source: LogRange | None
    target_end: int | None = NOT_ASKED
    topic: MirroredTopic | None = None

    @property
    def source_topic_id(self) -> str:
        """Return the id of the topic whose log was seen; "" where none is known."""
        return self.topic.source_topic_id if self.topic is not None else ""


class LagEstimator:
    """Remembers the results of the driver's checks, and when rows came. Times are seconds of a clock that does not go
    back, but for rows, which have Unix milliseconds."""

    def __init__(self) -> None:
        self._seen: Mapping[TopicPartition, ObservedPartition] = {}
        self._checked_at = float("-inf")
        self._asked_at = float("inf")
        self._heard: dict[TopicPartition, tuple[float, PartitionProgress]] = {}
        self._ends: dict[TopicPartition, tuple[str, ObservedEnds]] = {}
        """The ends that were seen of the source's log of each partition that is behind, with its topic's id."""

    def on_row(self, row: PartitionProgress, now: float) -> None:
        """A row has come. One that is only written again, as when a window of figures ends, says nothing new of the
        source, which may be away."""
        tp = (row.topic, row.partition)
        last = self._heard.get(tp)
        if last is None or _moved(row, last[1]) or row.source_end != last[1].source_end:
            self._heard[tp] = (now, row)

    def asks(self, now: float) -> None:
        """The driver begins a look; `look` or `lost` ends it."""
        self._asked_at = now

    def observe(self, seen: Mapping[TopicPartition, ObservedPartition], now: float) -> None:
        """A look at both clusters. What is not among them is forgotten."""
        self._ends = {
            tp: ends for tp, observed in seen.items() if (ends := self._observe(tp, observed, now)) is not None
        }
        self._seen, self._checked_at = seen, now
        self._asked_at = float("inf")
        self._heard = {tp: heard for tp, heard in self._heard.items() if tp in seen}

    def _observe(self, tp: TopicPartition, observed: ObservedPartition, now: float) -> tuple[str, ObservedEnds] | None:
        """Return what to remember of the ends of the partition. None: the target lacks nothing of it."""
        topic_id, ends = self._ends.get(tp, ("", ObservedEnds()))
        if topic_id and observed.source_topic_id not in ("", topic_id):
            ends = ObservedEnds()
        if observed.source is not None:
            upstream = copied_upstream(observed.row, observed.topic)
            copied = observed.source.start - 1 if upstream is None else max(upstream, observed.source.start - 1)
            ends.observe(observed.source.end, round(now * 1000), copied)
        return None if ends.since_ms(-1) is None else (observed.source_topic_id or topic_id, ends)

    def recall(self, ends: SourceEnds, *, now: float, wall_ms: int) -> None:
        """Take over what an earlier driver saw of the source, before the first look of this one."""
        if self._checked_at != float("-inf"):
            return
        for tp, (end, since_ms) in ends.by_partition().items():
            if since_ms is not None:
                self._ends[tp] = ("", recalled := ObservedEnds())
                recalled.observe(end, round(now * 1000) - max(0, wall_ms - since_ms), -1)

    def since_ms(self, tp: TopicPartition, row: PartitionProgress | None, *, now: float, wall_ms: int) -> int:
        """Return when a look first saw an end beyond the oldest record that is missing, Unix milliseconds."""
        since = self._since(tp, -1 if row is None else row.upstream)
        return wall_ms - (0 if since is None else round(now * 1000) - since)

    def _since(self, tp: TopicPartition, upstream: int) -> int | None:
        ends = self._ends.get(tp)
        return None if ends is None else ends[1].since_ms(upstream)

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
        if (since := self._since(tp, -1 if upstream is None else upstream)) is not None:
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
