"""The conditions for moving a group on the target to its checkpoints (`mm2-behaviour.md` §3.7, made conditional).

MirrorMaker 2 writes every checkpoint of a group that it did not find EMPTY. So it can rewind a group that turns empty
between its two jobs. Lockstep writes a group only after two rounds in a row found it without members and with the same
offsets, and then only forwards. The broker's own refusal (UNKNOWN_MEMBER_ID for a group with members) guards the moment
between the request and the write.

If the target's group is beyond its checkpoint, a consumer that continues there skips records. There are two causes.
Either the group went back on the source, and the target's group is still where it was translated to before (*rewound on
source*). Or another client moved it (*ahead on target*). `lockstep.groups.on.rewind=follow` sets back the first kind.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockstep_rules.groups.group_prospects import may_settle
from lockstep_rules.groups.group_selection import GroupMembership
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.group_rows import AHEAD_ON_TARGET, REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import GroupStatus

IN_USE, REFUSED = "in-use", "refused"
"""`in-use`: the target's group has members, or had some a moment ago. `refused`: the target does not take the commit.
"""

HELD = (IN_USE, REFUSED, AHEAD_ON_TARGET, REWOUND_ON_SOURCE, str(ReasonCode.CONTESTED))


@dataclass(frozen=True, slots=True)
class TargetGroupState:
    """A group on the target at one moment. An offset of None was reset (some clients commit -1)."""

    membership: GroupMembership
    offsets: Mapping[TopicPartition, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A partition in which the target's group is at `offset`, beyond its checkpoint `translated_offset`."""

    tp: TopicPartition
    offset: int
    translated_offset: int
    state: str
    """AHEAD_ON_TARGET or REWOUND_ON_SOURCE."""

    def __str__(self) -> str:
        topic, partition = self.tp
        words = self.state.replace("-", " ")
        offsets = f"its offset is {self.offset}, the translated offset is {self.translated_offset}"
        return f"{topic}-{partition} is {words}: {offsets}"


@dataclass(frozen=True, slots=True)
class GroupSync:
    """The commits for one group on the target.

    If there are none and another round could change that, `left_alone` has the reason. `ahead` has the partitions that
    stay beyond their checkpoints, as far as this round shows. `left_out` says why partitions with a checkpoint get no
    commit.
    """

    writes: tuple[Checkpoint, ...] = ()
    left_alone: Reason = NO_REASON
    ahead: tuple[Ahead, ...] = ()
    left_out: Mapping[TopicPartition, Reason] = field(default_factory=dict)


def plan_group_sync(
    checkpoints: Iterable[Checkpoint],
    before: TargetGroupState | None,
    now: TargetGroupState,
    partitions: Mapping[str, int],
    rewound: Mapping[TopicPartition, int] = MappingProxyType({}),
    *,
    follow: bool = False,
    unread: Collection[TopicPartition] = (),
    misplaced: Mapping[TopicPartition, tuple[Reason, int | None]] = MappingProxyType({}),
) -> GroupSync:
    """Return the checkpoints to commit, by two rounds in a row.

    Args:
        checkpoints: The checkpoints of the group.
        before: The group in the last round; None: it was not read.
        now: The group in this round.
        partitions: The number of partitions by topic of the target. A commit for a missing one would fail in every
            round.
        rewound: The result of `find_rewinds`.
        follow: Set the target's group back where it went back on the source.
        unread: Partitions in which the reverse flow alone has put the group on the source. If its offset on the target
            is lower, another client has set it back, and it stays.
        misplaced: Partitions whose checkpoint may be wrong, with the reason and the exact offset
            (`GroupView.misplaced`).
    """
    if now.membership is GroupMembership.ACTIVE:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_ACTIVE.to_reason())
    present = [entry for entry in checkpoints if entry.partition < partitions.get(entry.topic, 0)]
    ahead = {entry.tp: entry for entry in _ahead(present, now, rewound, misplaced)}
    if before is None:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_FIRST_READ.to_reason(), ahead=tuple(ahead.values()))
    if before.membership is GroupMembership.ACTIVE:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_WAS_ACTIVE.to_reason(), ahead=tuple(ahead.values()))
    if before.offsets != now.offsets:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_MOVED.to_reason(), ahead=tuple(ahead.values()))
    left_out = {tp: misplaced[tp][0] for entry in present if (tp := entry.tp) in misplaced}
    rewinding = {tp for tp, entry in ahead.items() if follow and entry.state == REWOUND_ON_SOURCE} - left_out.keys()
    right = [entry for entry in present if entry.tp not in left_out]
    writes = tuple(entry for entry in right if _forwards(entry, now, unread) or entry.tp in rewinding)
    return GroupSync(
        writes, ahead=tuple(entry for tp, entry in ahead.items() if tp not in rewinding), left_out=left_out
    )


def find_rewinds(
    earlier: Mapping[TopicPartition, int],
    before: Mapping[TopicPartition, tuple[int, int]],
    written: Mapping[TopicPartition, Checkpoint],
) -> dict[TopicPartition, int]:
    """Return the checkpoints from before the group went back on the source, until it has caught up again.

    `earlier` is the result before. `before` has (upstream, downstream) of the checkpoints at that time.
    """
    marks = dict(earlier)
    for tp, (upstream, downstream) in before.items():
        now = written.get(tp)
        if now is not None and now.upstream < upstream:
            marks[tp] = max(marks.get(tp, 0), downstream)
    return {tp: mark for tp, mark in marks.items() if tp not in written or written[tp].downstream < mark}


def _highest_offsets(row: GroupStatus) -> dict[TopicPartition, int]:
    """Return the highest target offset of each partition that a flow has put the group at.

    It includes the offsets from which the flow is about to set the group back.
    """
    highest: dict[TopicPartition, int] = {}
    offsets = [(topic, number, downstream) for topic, number, _, downstream in row.positions]
    for topic, number, downstream in (*offsets, *row.rewound):
        highest[topic, number] = max(downstream, highest.get((topic, number), -1))
    return highest


def find_unread(
    placed: GroupStatus, checkpoints: Iterable[Checkpoint], copy_name: Callable[[str], str | None]
) -> frozenset[TopicPartition]:
    """Return the target partitions in which the group has read nothing on the source.

    There it is not beyond the offset at which the reverse flow has put it. `placed` is that flow's row of the group,
    with offsets on the source. `copy_name` returns the name on the source of a topic of the target.
    """
    highest = _highest_offsets(placed)
    copies = ((checkpoint, copy_name(checkpoint.topic)) for checkpoint in checkpoints)
    return frozenset(
        checkpoint.tp
        for checkpoint, copy in copies
        if copy is not None and checkpoint.upstream <= highest.get((copy, checkpoint.partition), -1)
    )


def is_lower(row: GroupStatus | None, before: GroupStatus) -> bool:
    """Return whether a flow has put a group at an earlier offset than `before`, in any partition.

    `row` None: the row is gone.
    """
    now = {} if row is None else _highest_offsets(row)
    return any(now.get(tp, -1) < offset for tp, offset in _highest_offsets(before).items())


def find_foremost(left_out: Mapping[TopicPartition, Reason]) -> Reason:
    """Return the reason of the partition that represents the group.

    That is a contested one, else one that a switch cannot end, else the first in order.
    """
    reasons = [reason for _, reason in sorted(left_out.items())]
    return min(reasons, key=lambda reason: (reason.code != ReasonCode.CONTESTED, may_settle(reason)))


def with_writes(now: TargetGroupState, writes: Iterable[Checkpoint]) -> TargetGroupState:
    """Return the expected state of the group once `writes` are committed.

    The next round compares with it, to see whether another client moved the group.
    """
    offsets = dict(now.offsets)
    offsets.update({write.tp: write.downstream for write in writes})
    return TargetGroupState(GroupMembership.EMPTY if offsets else now.membership, offsets)


def _ahead(
    checkpoints: Iterable[Checkpoint],
    now: TargetGroupState,
    rewound: Mapping[TopicPartition, int],
    misplaced: Mapping[TopicPartition, tuple[Reason, int | None]],
) -> Iterator[Ahead]:
    for checkpoint in checkpoints:
        tp = checkpoint.tp
        offset, exact = now.offsets.get(tp), misplaced.get(tp, (NO_REASON, None))[1]
        translated_offset = int(checkpoint.downstream if exact is None else exact)
        if offset is not None and offset > translated_offset:
            state = REWOUND_ON_SOURCE if offset <= rewound.get(tp, -1) else AHEAD_ON_TARGET
            yield Ahead(tp, offset, translated_offset, state)


def _forwards(checkpoint: Checkpoint, now: TargetGroupState, unread: Collection[TopicPartition]) -> bool:
    tp = checkpoint.tp
    offset = now.offsets.get(tp)
    return offset is None or (offset < checkpoint.downstream and tp not in unread)
