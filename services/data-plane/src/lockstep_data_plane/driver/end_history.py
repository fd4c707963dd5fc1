"""The times at which ends of the source's logs were first seen, for partitions that are behind (no I/O, no clock)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lockstep_rules.offsets.first_seen import SeenEnd, SeenLog, observe
from lockstep_rules.offsets.lag import NOT_ASKED, LogRange, copied_upstream
from lockstep_rules.offsets.observed_ends import ObservedEnds
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, SeenEnds, SourceEnds


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """One partition as a check saw it: its rows just before, and what the clusters answered. None: not answered."""

    row: PartitionProgress | None
    source: LogRange | None
    target_end: int | None = NOT_ASKED
    topic: MirroredTopic | None = None
    is_whole: bool = True
    """No transaction was open on the source, so that none goes beyond the end."""

    @property
    def source_topic_id(self) -> str:
        """Return the id of the topic whose log was seen; "": it is unknown."""
        return self.topic.source_topic_id if self.topic is not None else ""


class EndHistory:
    """The ends that were seen in several checks. Times are seconds of a monotonic clock.

    The thread that checks the source and the event loop have one each, so neither waits for the other.
    """

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, tuple[str, ObservedEnds]] = {}
        """By partition that is behind, the id of its topic and the ends that were seen of its log."""

    def observe(self, observed_partitions: Mapping[TopicPartition, ObservedPartition], now: float) -> None:
        """Add the result of a check. Partitions that are not among `observed_partitions` are forgotten."""
        self._ends = {
            tp: ends
            for tp, observed in observed_partitions.items()
            if (ends := self._observe(tp, observed, now)) is not None
        }

    def _observe(self, tp: TopicPartition, observed: ObservedPartition, now: float) -> tuple[str, ObservedEnds] | None:
        """Return what to remember of the partition's ends; None: nothing of it is missing on the target."""
        topic_id, ends = self._ends.get(tp, ("", ObservedEnds()))
        if topic_id and observed.source_topic_id not in ("", topic_id):
            ends = ObservedEnds()
        if observed.source is not None:
            upstream = copied_upstream(observed.row, observed.topic)
            copied = observed.source.start - 1 if upstream is None else max(upstream, observed.source.start - 1)
            ends.observe(observed.source.end, round(now * 1000), copied)
        return None if ends.since_ms(-1) is None else (observed.source_topic_id or topic_id, ends)

    def restore(self, ends: SourceEnds, *, now: float, wall_ms: int) -> None:
        """Take over what an earlier driver saw of the source, before the first check of this one."""
        for tp, (end, since_ms) in ends.by_partition().items():
            if since_ms is not None:
                self._ends[tp] = ("", recalled := ObservedEnds())
                recalled.observe(end, round(now * 1000) - max(0, wall_ms - since_ms), -1)

    def first_seen_ms(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return when an end beyond the record behind `upstream` was first seen; None: it was not.

        The result is in milliseconds of the monotonic clock.
        """
        ends = self._ends.get(tp)
        return None if ends is None else ends[1].since_ms(upstream)


class FirstSeen:
    """The times at which records of delayed partitions were first seen, and what of them may be copied.

    Times are Unix milliseconds: they are in rows, and hold over restarts of every process.
    """

    def __init__(self, delay_ms: Callable[[str], int]) -> None:
        """Take the delay of a source topic in milliseconds; 0: it has none."""
        self._delay_ms = delay_ms
        self._rows: dict[TopicPartition, SeenEnds] = {}
        self._written: dict[TopicPartition, SeenEnds] = {}

    def restore(self, rows: Iterable[Row]) -> None:
        """Take over what an earlier driver saw, before the first check of this one."""
        self._written = {(row.topic, row.partition): row for row in rows if isinstance(row, SeenEnds)}
        self._rows = dict(self._written)

    def observe(self, observed_partitions: Mapping[TopicPartition, ObservedPartition], now_ms: int) -> list[SeenEnds]:
        """Add the result of a check, and return the rows that are to be written.

        Args:
            observed_partitions: What the check saw of each partition. One without an answer has seen nothing.
            now_ms: The Unix milliseconds after the last answer.
        """
        due = []
        for tp, observed in observed_partitions.items():
            delay_ms = self._delay_ms(tp[0])
            if not delay_ms or observed.source is None:
                continue
            upstream = copied_upstream(observed.row, observed.topic)
            end = SeenEnd(observed.source.end, now_ms, observed.is_whole)
            log = SeenLog(end, observed.source_topic_id, -1 if upstream is None else upstream)
            row = self._rows.get(tp) or SeenEnds(topic=tp[0], partition=tp[1])
            self._rows[tp] = row = observe(row, log, delay_ms, now_ms)
            if row != self._written.get(tp):
                due.append(row)
        return due

    def mark_written(self, row: SeenEnds) -> None:
        """Note that the state topic has the row."""
        self._written[row.topic, row.partition] = row
