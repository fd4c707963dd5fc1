"""Whether a group's offsets on the target may be moved to its checkpoints (`mm2-behaviour.md` §3.7, made conditional).

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
"""Why a group of the target is not moved: it has, or had a moment ago, members there; the target does not take it."""

HELD = (IN_USE, REFUSED, AHEAD_ON_TARGET, REWOUND_ON_SOURCE, str(ReasonCode.CONTESTED))


@dataclass(frozen=True, slots=True)
class TargetGroupState:
    """A group on the target at one moment. An offset of None is one that was reset away (some clients commit -1)."""

    membership: GroupMembership
    offsets: Mapping[TopicPartition, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A partition in which the target's group is at `offset`, beyond its checkpoint `place`."""

    where: TopicPartition
    offset: int
    place: int
    state: str
    """AHEAD_ON_TARGET or REWOUND_ON_SOURCE."""

    def __str__(self) -> str:
        topic, partition = self.where
        words = self.state.replace("-", " ")
        return f"{topic}-{partition} is {words}: its offset is {self.offset}, the translated offset is {self.place}"


@dataclass(frozen=True, slots=True)
class GroupSync:
    """What to commit on the target in the group's name. If that is nothing and cannot be helped, `left_alone` has the
    reason. `ahead`: partitions that stay beyond their checkpoints, as far as this round shows. `left_out`: why
    partitions get nothing although they have a checkpoint.
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
    """The checkpoints to commit, given this look and the one before (None: there was none).

    `partitions` are the topics of the target with their number of partitions: a commit for one that is gone would fail
    in every round. `rewound`: what `rewinds` says. `follow`: where the group went back on the source, the target's goes
    back too. `unread`: where the group is on the source only because the opposite flow has put it there. If its offset
    on the target is lower, somebody has set it back there, and it stays. `misplaced`: where the checkpoint is known not
    to be right, with the reason, and the exact place if that is known (`GroupView.misplaced`).
    """
    if now.membership is GroupMembership.ACTIVE:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_ACTIVE.to_reason())
    there = [one for one in checkpoints if one.partition < partitions.get(one.topic, 0)]
    ahead = {one.where: one for one in _ahead(there, now, rewound, misplaced)}
    if before is None:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_FIRST_READ.to_reason(), ahead=tuple(ahead.values()))
    if before.membership is GroupMembership.ACTIVE:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_WAS_ACTIVE.to_reason(), ahead=tuple(ahead.values()))
    if before.offsets != now.offsets:
        return GroupSync(left_alone=ReasonCode.TARGET_GROUP_MOVED.to_reason(), ahead=tuple(ahead.values()))
    left_out = {where: misplaced[where][0] for one in there if (where := (one.topic, one.partition)) in misplaced}
    back = {where for where, one in ahead.items() if follow and one.state == REWOUND_ON_SOURCE} - left_out.keys()
    right = [one for one in there if (one.topic, one.partition) not in left_out]
    writes = tuple(one for one in right if _forwards(one, now, unread) or (one.topic, one.partition) in back)
    return GroupSync(writes, ahead=tuple(one for where, one in ahead.items() if where not in back), left_out=left_out)


def rewinds(
    known: Mapping[TopicPartition, int],
    before: Mapping[TopicPartition, tuple[int, int]],
    written: Mapping[TopicPartition, Checkpoint],
) -> dict[TopicPartition, int]:
    """The checkpoint of each partition before its group went back on the source, until the group has come that far
    again. `known`: the earlier result; `before`: (upstream, downstream) of the checkpoints then.
    """
    found = dict(known)
    for where, (upstream, downstream) in before.items():
        now = written.get(where)
        if now is not None and now.upstream < upstream:
            found[where] = max(found.get(where, 0), downstream)
    return {where: at for where, at in found.items() if where not in written or written[where].downstream < at}


def _highest_places(row: GroupStatus) -> dict[TopicPartition, int]:
    """Where a flow has put a group on its target: the highest offset of each partition that the group may still have
    there. It includes those from which the flow is about to set the group back."""
    highest: dict[TopicPartition, int] = {}
    places = [(topic, number, downstream) for topic, number, _, downstream in row.positions]
    for topic, number, at in (*places, *row.rewound):
        highest[topic, number] = max(at, highest.get((topic, number), -1))
    return highest


def find_unread(
    placed: GroupStatus, checkpoints: Iterable[Checkpoint], copy_name: Callable[[str], str | None]
) -> frozenset[TopicPartition]:
    """The target partitions in which the group has read nothing on the source. It is not beyond the place there at
    which the opposite flow has put it. `placed`: that flow's row of the group, whose places are on the source.
    `copy_name`: the copy there of a topic of the target."""
    known = _highest_places(placed)
    copies = ((one, copy_name(one.topic)) for one in checkpoints)
    return frozenset(
        (one.topic, one.partition)
        for one, copy in copies
        if copy is not None and one.upstream <= known.get((copy, one.partition), -1)
    )


def is_lower(row: GroupStatus | None, before: GroupStatus) -> bool:
    """Whether a flow has put a group at an earlier offset than `before`, in any partition. None: the row is gone."""
    now = {} if row is None else _highest_places(row)
    return any(now.get(where, -1) < at for where, at in _highest_places(before).items())


def find_foremost(left_out: Mapping[TopicPartition, Reason]) -> Reason:
    """Return the reason of one partition that stands for all: a contested one, else one that a switch cannot end, else
    the first in order."""
    reasons = [reason for _, reason in sorted(left_out.items())]
    return min(reasons, key=lambda reason: (reason.code != ReasonCode.CONTESTED, may_settle(reason)))


def with_writes(now: TargetGroupState, writes: Iterable[Checkpoint]) -> TargetGroupState:
    """The expected state of the group once `writes` are committed. The next round compares with it, to see whether
    another client moved the group.
    """
    offsets = dict(now.offsets)
    offsets.update({(write.topic, write.partition): write.downstream for write in writes})
    return TargetGroupState(GroupMembership.EMPTY if offsets else now.membership, offsets)


def _ahead(
    checkpoints: Iterable[Checkpoint],
    now: TargetGroupState,
    rewound: Mapping[TopicPartition, int],
    misplaced: Mapping[TopicPartition, tuple[Reason, int | None]],
) -> Iterator[Ahead]:
    for one in checkpoints:
        where = one.topic, one.partition
        offset, exact = now.offsets.get(where), misplaced.get(where, (NO_REASON, None))[1]
        place = int(one.downstream if exact is None else exact)
        if offset is not None and offset > place:
            state = REWOUND_ON_SOURCE if offset <= rewound.get(where, -1) else AHEAD_ON_TARGET
            yield Ahead(where, offset, place, state)


def _forwards(checkpoint: Checkpoint, now: TargetGroupState, unread: Collection[TopicPartition]) -> bool:
    where = checkpoint.topic, checkpoint.partition
    offset = now.offsets.get(where)
    return offset is None or (offset < checkpoint.downstream and where not in unread)
