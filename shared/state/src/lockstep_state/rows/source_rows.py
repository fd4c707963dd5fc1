"""The rows of the state topic with the data plane's knowledge of the source. Import them from `state_rows`."""

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import Count, Offset, PartitionNumber, UnixMs


@row_kind("legacy", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyGroup(ReasonedRow):
    """The consumer group on the source as which a legacy flow keeps its positions. Owner: data plane (the driver).

    phase: `waiting` (the group has other members; nothing is copied, reason names them) | `copying`.
    """

    group: str
    phase: str
    members: tuple[str, ...] = ()
    """Client ids and hosts of the group's members, some of them."""
    partitions: Count = 0
    """Partitions whose positions are committed."""
    committed_ms: UnixMs = 0
    """The Unix milliseconds when a position was committed last; 0: not yet."""

    def identity(self) -> tuple[str, ...]:
        return ("group",)


@row_kind("source-ends", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEnds(Row):
    """The ends of the source's logs when the driver last asked for all of them. Owner: data plane (the driver).

    A slot writes the end that it fetched last, and a paused or limited one seldom fetches. If the source is gone, this
    row says what else it had.
    """

    asked_ms: UnixMs = 0
    """The Unix milliseconds of the request. Only slots can know of records that the source accepted later."""
    ends: tuple[tuple[str, PartitionNumber, Offset], ...] = ()
    """(topic, partition, next offset) of partitions whose progress said less then; the furthest behind first."""
    since_ms: tuple[UnixMs, ...] = ()
    """The Unix milliseconds when an end beyond the first missing record was first observed, for each of `ends`. (): the
    row is of an earlier release."""
    more: Count = 0
    """Partitions that are left out, to keep the row small."""
    unanswered: tuple[tuple[str, PartitionNumber, UnixMs], ...] = ()
    """(topic, partition, time) of partitions about which the source did not answer. The time is that of the last
    request with an answer, in Unix milliseconds; 0: never. `ends` has their ends known before."""

    def identity(self) -> tuple[str, ...]:
        return ("current",)

    def named_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the ends of these partitions, as far as the row names them."""
        ends = {(topic, number): end for topic, number, end in self.ends}
        return {tp: ends[tp] for tp in partitions if tp in ends}

    def known_ms(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, UnixMs]:
        """Return up to which moment the end of each of these is known, in Unix milliseconds; 0: unknown."""
        if self.more:
            return dict.fromkeys(partitions, 0)
        unanswered = {(topic, number): at_ms for topic, number, at_ms in self.unanswered}
        return {tp: unanswered.get(tp, self.asked_ms) for tp in partitions}

    def by_partition(self) -> dict[TopicPartition, tuple[int, int | None]]:
        """Return the end of each named partition, and when it was first observed; None: unknown."""
        times = self.since_ms if len(self.since_ms) == len(self.ends) else (None,) * len(self.ends)
        return {(topic, number): (end, since) for (topic, number, end), since in zip(self.ends, times, strict=True)}


@row_kind("seen", "topic", "partition", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEnds(Row):
    """The times at which records of a delayed partition were first seen (`lockstep.delay`). Owner: the driver.

    Written when an end is seen that was not there before, and when records are released. A slot copies no record at or
    behind `released`.
    """

    topic: str
    partition: PartitionNumber
    source_topic_id: str = ""
    released: Count = 0
    """The next offset that has not been seen for as long as the delay."""
    ends: tuple[tuple[Count, UnixMs, bool], ...] = ()
    """(next offset, Unix milliseconds of the check that saw it, whether no transaction was open then), ascending. A
    record was first seen at the time of the first end beyond it."""
