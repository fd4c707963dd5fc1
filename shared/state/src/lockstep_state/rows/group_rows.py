"""Rows of the state topic about consumer groups of the source. Everybody takes them from `state_rows`."""

from dataclasses import dataclass

from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, is_known, read_reason
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import Count, Offset, PartitionNumber, UnixMs

AHEAD_ON_TARGET, REWOUND_ON_SOURCE = "ahead-on-target", "rewound-on-source"
"""The words of `GroupStatus.ahead`. Partitions of the first one come first in it."""


@row_kind("group", "group", owner="checkpoint")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus(Row):
    """The position of a consumer group on the target. Owner: checkpoint. One row a group, all its partitions in it."""

    group: str
    phase: str
    """`translated` | `waiting` (reason says for what) | `failing`."""
    reason: str = ""
    """The sentence of `cause`, for people."""
    synced: bool = False
    """Its offsets were written to the target's group of the same name."""
    positions: tuple[tuple[str, PartitionNumber, Offset, Offset], ...] = ()
    """(target topic, partition, upstream, downstream) as last emitted."""
    exact: Count = 0
    """Number of partitions with an exact offset: consumers that move to the target read nothing again there."""
    behind: tuple[tuple[str, PartitionNumber, Count], ...] = ()
    """(target topic, partition, records) of those where at most so many records are read again; the most first."""
    waiting: tuple[tuple[str, PartitionNumber, str], ...] = ()
    """(target topic, partition, why) of those whose place is not known, with sentences for people."""
    more_behind: Count = 0
    """Partitions that are behind and not in the list, for it would be too long."""
    more_waiting: Count = 0
    """The same of those that wait."""
    held: str = ""
    """Why the target's group is not moved: `in-use` (members are there) | `refused` (the target does not take it)."""
    held_reason: str = ""
    """The same for people, or the sentences of `held_cause` and of others like it by partition."""
    ahead: tuple[tuple[str, PartitionNumber, Offset, Offset, str], ...] = ()
    """(target topic, partition, offset of the target's group, its checkpoint, `ahead-on-target` | `rewound-on-source`)
    of those where consumers that move to the target skip records."""
    more_ahead: Count = 0
    """The same as `more_behind` of those that are ahead."""
    rewound: tuple[tuple[str, PartitionNumber, Offset], ...] = ()
    """(target topic, partition, downstream): its checkpoint before the group went back on the source."""
    cause: Reason = NO_REASON
    """Why it waits or fails. `causes` has why single partitions wait."""
    causes: tuple[tuple[str, PartitionNumber, Reason], ...] = ()
    """(target topic, partition, reason) of those in `waiting`. An earlier release wrote none of them."""
    held_cause: Reason = NO_REASON
    """Why the target's group is not moved, or not in all partitions: then a reason of one of them, `contested` first.
    An earlier release wrote none."""
    read_ms: UnixMs = 0
    """When the reading of its offsets on the source began to which the row owes its words, Unix milliseconds; 0: not
    known. A later reading that changes none of them is in `SourceGroupsStatus.read_ms` alone."""

    @property
    def read_again(self) -> int:
        """Return how many records are read again at most, in all partitions. `behind` has the most first, so each that
        is not in the list has at most as many as its last."""
        listed = [records for _, _, records in self.behind]
        return sum(listed) + self.more_behind * (listed[-1] if listed else 0)

    @property
    def is_gone(self) -> bool:
        """Return whether the group has nothing on the source any more that the flow translates."""
        return self.cause.code == ReasonCode.GROUP_GONE

    @property
    def is_placed(self) -> bool:
        """Return whether its checkpoints are right, except where its lists say otherwise. A phase or a code that this
        release does not know, or a text alone, does not say so."""
        if self.phase == "failing":
            return self.cause.code == ReasonCode.REPORTED
        return self.phase == "translated" and (not self.cause or is_known(self.cause))

    @property
    def waits(self) -> tuple[tuple[str, int, Reason], ...]:
        """Return each partition of `waiting` with its reason, which is `unknown` if the row has only a text."""
        coded = {(topic, partition): reason for topic, partition, reason in self.causes}
        return tuple(
            (topic, partition, read_reason(coded.get((topic, partition), NO_REASON), text))
            for topic, partition, text in self.waiting
        )

    @property
    def is_contested(self) -> bool:
        """Return whether it is not moved because another flow feeds the same topic, and records of that one may be
        skipped."""
        return self.held_cause.code == ReasonCode.CONTESTED

    @property
    def why_held(self) -> Reason:
        """Return why the target's group is not moved, which is `unknown` if the row has only a text."""
        return read_reason(self.held_cause, self.held_reason)

    @property
    def why(self) -> Reason:
        """Return why it waits or fails, which is `unknown` if the row has only a text."""
        return read_reason(self.cause, self.reason)


@row_kind("source-groups", "share", owner="checkpoint")
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroupsStatus(ReasonedRow):
    """Say whether the consumer groups of the source are known: one row for each share of them. Owner: checkpoint.
    Without such a row it is not known whether there are groups without a row.

    phase: `read` | `failing` (they cannot be listed or translated; reason says why). A source that does not answer
    changes neither: what was read counts. Rows of groups that have changed come before this one.
    """

    share: Count
    """The commands partition to which the ids of its groups fall."""
    phase: str
    read_ms: UnixMs = 0
    """When the last reading began that listed the groups of the share and read the offsets of each, Unix milliseconds;
    0: not known. What the source accepted later is not known."""
    unanswered_ms: UnixMs = 0
    """When the first reading since began that the source has not answered, Unix milliseconds; 0: there is none. The
    row is written again every few seconds then: `at_ms` says up to when there was no answer."""
    unselected: Count = 0
    """Consumer groups of the source if the filters select none of them; 0: some are selected, or none are there."""
    excluded: Count = 0
    """How many of these `groups.exclude` takes though `groups` includes them."""
