"""The rows of the state topic about consumer groups of the source. Import them from `state_rows`."""

from dataclasses import dataclass

from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, is_known, read_reason
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import Count, Offset, PartitionNumber, UnixMs

AHEAD_ON_TARGET, REWOUND_ON_SOURCE = "ahead-on-target", "rewound-on-source"
"""The states in `GroupStatus.ahead`. Partitions that are `ahead-on-target` come first in it."""


@row_kind("group", "group", owner="checkpoint")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus(Row):
    """The offsets of a consumer group on the target, all partitions in one row. Owner: checkpoint."""

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
    """(target topic, partition, records): at most so many records are read again in the partition; the most first."""
    waiting: tuple[tuple[str, PartitionNumber, str], ...] = ()
    """(target topic, partition, reason) of partitions whose offset is unknown, with sentences for people."""
    more_behind: Count = 0
    """Partitions that are behind and not in the list, for it would be too long."""
    more_waiting: Count = 0
    """The same of partitions that wait."""
    held: str = ""
    """The reason why the target's group is not moved: `in-use` (it has members) | `refused` (the target does not take
    it)."""
    held_reason: str = ""
    """The sentence of `held_cause`, or the sentences of all such causes by partition."""
    ahead: tuple[tuple[str, PartitionNumber, Offset, Offset, str], ...] = ()
    """(target topic, partition, offset of the target's group, its checkpoint, `ahead-on-target` | `rewound-on-source`)
    of partitions in which consumers that move to the target skip records."""
    more_ahead: Count = 0
    """The same as `more_behind` of partitions that are ahead."""
    rewound: tuple[tuple[str, PartitionNumber, Offset], ...] = ()
    """(target topic, partition, downstream): its checkpoint before the group went back on the source."""
    cause: Reason = NO_REASON
    """The reason why it waits or fails. `causes` has those of single partitions."""
    causes: tuple[tuple[str, PartitionNumber, Reason], ...] = ()
    """(target topic, partition, reason) of partitions in `waiting`. An earlier release wrote none of them."""
    held_cause: Reason = NO_REASON
    """The reason why the target's group is not moved. If that is so in some partitions, it is the reason of one of
    them, `contested` first. An earlier release wrote none."""
    read_ms: UnixMs = 0
    """The Unix milliseconds at which the reading of its offsets on the source began that last changed the row; 0:
    unknown. A later reading that changes nothing is in `SourceGroupsStatus.read_ms` alone."""

    @property
    def read_again(self) -> int:
        """The number of records that are read again at most, in all partitions.

        `behind` has the most first, so each partition that is not in the list has at most as many as its last one.
        """
        listed = [records for _, _, records in self.behind]
        return sum(listed) + self.more_behind * (listed[-1] if listed else 0)

    @property
    def is_gone(self) -> bool:
        """The group has nothing on the source any more that the flow translates."""
        return self.cause.code == ReasonCode.GROUP_GONE

    @property
    def is_placed(self) -> bool:
        """Its checkpoints are right, except where its lists say otherwise.

        That is not so for a phase or a code that this release does not know, or for a text alone.
        """
        if self.phase == "failing":
            return self.cause.code == ReasonCode.REPORTED
        return self.phase == "translated" and (not self.cause or is_known(self.cause))

    @property
    def waits(self) -> tuple[tuple[str, int, Reason], ...]:
        """Each partition of `waiting` with its reason, which has the code `unknown` if the row has only a text."""
        coded = {(topic, partition): reason for topic, partition, reason in self.causes}
        return tuple(
            (topic, partition, read_reason(coded.get((topic, partition), NO_REASON), text))
            for topic, partition, text in self.waiting
        )

    @property
    def is_contested(self) -> bool:
        """The target's group is not moved: another flow feeds the same topic, and its records may be skipped."""
        return self.held_cause.code == ReasonCode.CONTESTED

    @property
    def stated_held_cause(self) -> Reason:
        """The reason why the target's group is not moved; its code is `unknown` if the row has only a text."""
        return read_reason(self.held_cause, self.held_reason)

    @property
    def stated_cause(self) -> Reason:
        """The reason why it waits or fails; its code is `unknown` if the row has only a text."""
        return read_reason(self.cause, self.reason)


@row_kind("source-groups", "share", owner="checkpoint")
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroupsStatus(ReasonedRow):
    """The reading of one share of the source's consumer groups. Owner: checkpoint.

    Without such a row it is unknown whether there are groups without a row. phase: `read` | `failing` (they cannot be
    listed or translated; reason says why). A source that does not answer changes neither: what was read counts. Rows of
    groups that have changed come before this one.
    """

    share: Count
    """The commands partition to which the ids of its groups fall."""
    phase: str
    read_ms: UnixMs = 0
    """The Unix milliseconds at which the last reading began that listed the groups of the share and read the offsets of
    each; 0: unknown. What the source accepted later is unknown."""
    unanswered_ms: UnixMs = 0
    """The Unix milliseconds at which the first reading since began that the source has not answered; 0: there is none.
    The row is written again every few seconds then: `at_ms` says up to when there was no answer."""
    unselected: Count = 0
    """Consumer groups of the source if the filters select none of them; 0: some are selected, or there are none."""
    excluded: Count = 0
    """Groups of these that `groups` includes and `groups.exclude` excludes."""
