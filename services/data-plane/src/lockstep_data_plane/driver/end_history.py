"""The times at which ends of the source's logs were first seen, for partitions that are behind (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_rules.offsets.lag import NOT_ASKED, LogRange, copied_upstream
from lockstep_rules.offsets.observed_ends import ObservedEnds
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, SourceEnds


@dataclass(frozen=True, slots=True)
class ObservedPartition:
    """One partition as a check saw it: its rows just before, and what the clusters answered. None: not answered."""

    row: PartitionProgress | None
    source: LogRange | None
    target_end: int | None = NOT_ASKED
    topic: MirroredTopic | None = None

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

    def recall(self, ends: SourceEnds, *, now: float, wall_ms: int) -> None:
        """Take over what an earlier driver saw of the source, before the first check of this one."""
        for tp, (end, since_ms) in ends.by_partition().items():
            if since_ms is not None:
                self._ends[tp] = ("", recalled := ObservedEnds())
                recalled.observe(end, round(now * 1000) - max(0, wall_ms - since_ms), -1)

    def since(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return when an end beyond the record behind `upstream` was first seen; None: it was not.

        The result is in milliseconds of the monotonic clock.
        """
        ends = self._ends.get(tp)
        return None if ends is None else ends[1].since_ms(upstream)
