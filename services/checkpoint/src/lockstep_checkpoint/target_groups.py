"""Reads and commits of groups on the target (`group_sync` decides)."""

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
    """Return the members and offsets of each group, and the errors of the others. Raises ClusterUnreachable."""
    outcome = await admin.describe_groups(groups)
    failed: dict[str, ClusterError] = dict(outcome.troubles())
    memberships = {name: group_membership(group.state, group.members) for name, group in outcome.done.items()}
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
            committed = {tp: entry.offset for tp, entry in offsets.items()}
            states[name] = TargetGroupState(GroupMembership.EMPTY, committed)
    return states, failed


async def commit(admin: Admin, group: str, writes: Iterable[Checkpoint]) -> tuple[str, Reason]:
    """Commit checkpoints for a group of the target.

    A group that got members since it was read is no error: the broker refuses the commit, as it should (KIP-396).

    Returns:
        ("", NO_REASON) if all were committed, else one of `HELD` and the reason.

    Raises:
        ClusterUnreachable: The target does not answer.
    """
    offsets = {write.tp: GroupOffset(write.downstream, write.metadata) for write in writes}
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
    """Return one reason for all errors. If they need one text, `because` has the code of the first, `error` Kafka's."""
    first_trouble = troubles[0].to_reason()
    if len(troubles) == 1 and _code(troubles[0]) != KafkaError.GROUP_ID_NOT_FOUND:
        return first_trouble
    text = "; ".join(dict.fromkeys(map(_sentence, troubles)))
    return ReasonCode.REPORTED.to_reason(
        text=text, because=first_trouble.code, error=first_trouble.detail("error") or ""
    )


def _code(trouble: ClusterError) -> int | None:
    return trouble.code if isinstance(trouble, RequestRefused) else None


def _sentence(trouble: ClusterError) -> str:
    if _code(trouble) == KafkaError.UNKNOWN_MEMBER_ID:
        return "it has members on the target"
    if _code(trouble) == KafkaError.GROUP_ID_NOT_FOUND:  # a commit makes the group where the name is free
        return f"a group of another type, such as a share group, has its name on the target ({trouble})"
    return str(trouble)
