"""Rows of the state topic in which the data plane says what it knows of the source. Everybody takes them from
`state_rows`."""

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

    phase: `waiting` (somebody else is in the group; nothing is copied, reason says who it is) | `copying`.
    """

    group: str
    phase: str
    members: tuple[str, ...] = ()
    """Client ids and hosts of the group's members, some of them."""
    partitions: Count = 0
    """Those whose positions are committed."""
    committed_ms: UnixMs = 0
    """When a position was committed last, Unix milliseconds; 0: not yet."""

    def identity(self) -> tuple[str, ...]:
        return ("group",)


@row_kind("source-ends", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEnds(Row):
    """Where the source's logs ended when the driver asked for all of them last. Owner: data plane (the driver).

    A slot writes down the end that it fetched last, and a paused or limited one seldom fetches. If the source is gone,
    this row says what else it had.
    """

    asked_ms: UnixMs = 0
    """When, Unix milliseconds. Of records that the source accepted later, slots alone can know."""
    ends: tuple[tuple[str, PartitionNumber, Offset], ...] = ()
    """As (topic, partition, next offset), of those partitions whose progress said less then; the furthest behind
    first."""
    since_ms: tuple[UnixMs, ...] = ()
    """For each of `ends`, when an end beyond the first record that is missing was first seen, Unix milliseconds. ():
    by releases that do not say it."""
    more: Count = 0
    """So many more are left out, to keep the row small."""
    unanswered: tuple[tuple[str, PartitionNumber, UnixMs], ...] = ()
    """As (topic, partition, time), of those partitions about which the source did not answer. The time is when it was
    asked last and did, Unix milliseconds; 0: never. `ends` has what was known of them before."""

    def identity(self) -> tuple[str, ...]:
        return ("current",)

    def named_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Return the ends of those of these partitions that are named."""
        ends = {(topic, number): end for topic, number, end in self.ends}
        return {tp: ends[tp] for tp in partitions if tp in ends}

    def known_ms(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, UnixMs]:
        """Return up to which moment the end of each of these is known, Unix milliseconds; 0: not known."""
        if self.more:
            return dict.fromkeys(partitions, 0)
        unanswered = {(topic, number): at_ms for topic, number, at_ms in self.unanswered}
        return {tp: unanswered.get(tp, self.asked_ms) for tp in partitions}

    def by_partition(self) -> dict[TopicPartition, tuple[int, int | None]]:
        """Return the end of each partition that is named, and when it was first seen; None: not known."""
        times = self.since_ms if len(self.since_ms) == len(self.ends) else (None,) * len(self.ends)
        return {(topic, number): (end, since) for (topic, number, end), since in zip(self.ends, times, strict=True)}
