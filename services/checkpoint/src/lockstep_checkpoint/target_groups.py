"""Look at groups on the target, and commit for those that may be moved (`group_sync` decides)."""

import asyncio
from collections.abc import Iterable, Sequence

from confluent_kafka import KafkaError

from lockstep_checkpoint.source_groups import read_group_offsets
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, RequestRefused
from lockstep_rules.groups.group_selection import GroupMembership, group_membership
from lockstep_rules.groups.group_sync import IN_USE, REFUSED, TargetGroupState
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


async def read_groups(
    admin: Admin, groups: Iterable[str]
) -> tuple[dict[str, TargetGroupState], dict[str, ClusterError]]:
    """Members and offsets of each group, and why those of others could not be read. Raises ClusterUnreachable."""
    outcome = await admin.describe_groups(groups)
    failed: dict[str, ClusterError] = dict(outcome.troubles())
    memberships = {name: group_membership(one.state, one.members) for name, one in outcome.done.items()}
    states = {
        name: TargetGroupState(membership)
        for name, membership in memberships.items()
        if membership is not GroupMembership.EMPTY
    }
    empty = [name for name, membership in memberships.items() if membership is GroupMembership.EMPTY]
    for name, offsets in zip(
        empty, await asyncio.gather(*(read_group_offsets(admin, name) for name in empty)), strict=True
    ):
        if isinstance(offsets, ClusterError):
            failed[name] = offsets
        else:
            states[name] = TargetGroupState(GroupMembership.EMPTY, {where: at.offset for where, at in offsets.items()})
    return states, failed


async def commit(admin: Admin, group: str, writes: Iterable[Checkpoint]) -> tuple[str, Reason]:
    """Commit the checkpoints in the group's name. Returns ("", NO_REASON) when all went through, else one of
    `HELD` and what was answered about those that did not.

    A group that got members since the look is no error: the broker refuses, and that is as it should be (KIP-396).
    Raises ClusterUnreachable.
    """
    offsets = {(write.topic, write.partition): GroupOffset(write.downstream, write.metadata) for write in writes}
    try:
        outcome = await admin.alter_group_offsets(group, offsets)
    except ClusterUnreachable:
        raise
    except ClusterError as trouble:
        troubles = {trouble}
    else:
        troubles = set(outcome.troubles().values())
    if not troubles:
        return "", NO_REASON
    if all(_code(trouble) == KafkaError.UNKNOWN_MEMBER_ID for trouble in troubles):
        return IN_USE, ReasonCode.TARGET_GROUP_ACTIVE.to_reason()
    return REFUSED, _refusal(sorted(troubles, key=str))


def _refusal(troubles: Sequence[ClusterError]) -> Reason:
    """Return the reason of the only trouble. Of several, or of one that needs other words, `because` has the code of
    the first, and `error` Kafka's."""
    first = troubles[0].to_reason()
    if len(troubles) == 1 and _code(troubles[0]) != KafkaError.GROUP_ID_NOT_FOUND:
        return first
    text = "; ".join(dict.fromkeys(map(_sentence, troubles)))
    return ReasonCode.REPORTED.to_reason(text=text, because=first.code, error=first.detail("error") or "")


def _code(trouble: ClusterError) -> int | None:
    return trouble.code if isinstance(trouble, RequestRefused) else None


def _sentence(trouble: ClusterError) -> str:
    if _code(trouble) == KafkaError.UNKNOWN_MEMBER_ID:
        return "it has members on the target"
    if _code(trouble) == KafkaError.GROUP_ID_NOT_FOUND:  # a commit makes the group where the name is free
        return f"a group of another type, such as a share group, has its name on the target ({trouble})"
    return str(trouble)
