"""Whether a group's offsets on the target may be moved to its checkpoints (`mm2.md` §3.7, made conditional).

MirrorMaker 2 writes every checkpoint of a group it did not find EMPTY, and so can rewind a group that turns empty
between its two jobs. Here a group is written only when two looks in a row found it without members and with the same
offsets, and then only forwards. The broker's own refusal (UNKNOWN_MEMBER_ID for a group with members) guards the moment
between the look and the write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from lockstep_checkpoint.plan import TargetPartition
from lockstep_protocol.records import Checkpoint

__all__ = ["GroupSync", "Look", "Membership", "after", "plan_group_sync"]


class Membership(Enum):
    """What a look at the target found of a group."""

    ABSENT = "absent"
    EMPTY = "empty"
    ACTIVE = "active"
    """It has members, or is on its way there."""


@dataclass(frozen=True, slots=True)
class Look:
    """A group on the target at one moment. An offset of None is one that was reset away (some clients commit -1)."""

    membership: Membership
    offsets: Mapping[TargetPartition, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupSync:
    """What to commit on the target in the group's name; where that is nothing and could not be helped, `left_alone`
    says why.
    """

    writes: tuple[Checkpoint, ...] = ()
    left_alone: str = ""


def plan_group_sync(
    checkpoints: Iterable[Checkpoint], before: Look | None, now: Look, partitions: Mapping[str, int]
) -> GroupSync:
    """The checkpoints to commit, given this look and the one before (None: there was none).

    `partitions` are the topics of the target with their number of partitions: a commit for one that is gone would fail
    in every round.
    """
    if now.membership is Membership.ACTIVE:
        return GroupSync(left_alone="it has members on the target")
    if before is None:
        return GroupSync(left_alone="looked at for the first time")
    if before.membership is Membership.ACTIVE:
        return GroupSync(left_alone="it had members on the target a moment ago")
    if before.offsets != now.offsets:
        return GroupSync(left_alone="its offsets on the target changed a moment ago")
    return GroupSync(
        tuple(
            checkpoint
            for checkpoint in checkpoints
            if checkpoint.partition < partitions.get(checkpoint.topic, 0) and _forwards(checkpoint, now)
        )
    )


def after(now: Look, writes: Iterable[Checkpoint]) -> Look:
    """How the group looks once `writes` are committed, unless somebody else touched it: what the next look is held
    against.
    """
    offsets = dict(now.offsets)
    offsets.update({(write.topic, write.partition): write.downstream for write in writes})
    return Look(Membership.EMPTY if offsets else now.membership, offsets)


def _forwards(checkpoint: Checkpoint, now: Look) -> bool:
    offset = now.offsets.get((checkpoint.topic, checkpoint.partition))
    return offset is None or offset < checkpoint.downstream
