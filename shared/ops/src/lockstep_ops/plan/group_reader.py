"""Consumer groups of the source: which get checkpoints, and which can be moved on the target."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_ops.plan.rules.flow_plan import PlannedGroup
from lockstep_ops.plan.shared_cluster import SharedCluster
from lockstep_ops.work_progress import WorkProgress
from lockstep_rules.filters import should_replicate_group
from lockstep_rules.groups.group_selection import (
    CONSUMER_TYPES,
    OTHER_PROTOCOLS,
    Committed,
    GroupMembership,
    consumes_mirrored,
    group_membership,
    is_consumer_group,
)
from lockstep_rules.selection_count import NOT_COUNTED, SelectionCount, count_groups
from lockstep_state.names import OUR_GROUPS
from lockstep_state.offsets import UpstreamOffset

GROUPS_A_STEP = 100


@dataclass(frozen=True, slots=True)
class GroupReading:
    groups: tuple[PlannedGroup, ...] = ()
    remark: str = ""
    count: SelectionCount = NOT_COUNTED
    """Groups that read mirrored topics, and those that the filters select."""


async def read_groups(
    settings: FlowSettings, source: SharedCluster, target: Admin, steps: WorkProgress
) -> GroupReading:
    """Return every group that reads mirrored topics, sorted, and selected groups of other protocols.

    Raises:
        ClusterUnreachable: The source does not answer.
    """
    if not settings.checkpoint.enabled:
        return GroupReading(remark="groups are not translated: emit.checkpoints.enabled is false")
    try:
        listed = await source.list_groups()
    except ClusterUnreachable:
        raise
    except ClusterError as why:
        return GroupReading(remark=f"groups are not known: {why}")
    others, remark = await _other_protocols(settings, source, listed)
    names = sorted(
        group for group, kind in listed.items() if kind in CONSUMER_TYPES and not group.startswith(OUR_GROUPS)
    )
    reading = await _read_readers(settings, source, [name for name in names if name not in others], steps)
    included = [one.group for one in reading if not one.fate]
    fates = await _read_fates(settings, target, included)
    planned = [fates[one.group] if not one.fate else one for one in reading]
    planned += [
        PlannedGroup(group=group, fate="other-protocol", reason=f"it is a {others[group]} group")
        for group in sorted(others)
        if should_replicate_group(group, settings.groups)
    ]
    count = count_groups((listing.group for listing in reading), settings.groups)
    return GroupReading(tuple(sorted(planned, key=lambda group_plan: group_plan.group)), remark, count)


async def _other_protocols(
    settings: FlowSettings, source: SharedCluster, listed: Mapping[str, str]
) -> tuple[Mapping[str, str], str]:
    """Return the groups of protocols that are not replicated, and a remark."""
    client_id = client_settings.client_id(settings, "plan", settings.clients.source_admin)
    try:
        found = await source.group_protocols(client_id)
    except ClusterUnreachable as why:
        return {}, f"share and Streams groups are not known: {why}"
    return {group: protocol for group, protocol in found.items() if protocol in OTHER_PROTOCOLS}, ""


async def _read_readers(
    settings: FlowSettings, source: Admin, names: list[str], steps: WorkProgress
) -> list[PlannedGroup]:
    """Return the groups that read mirrored topics. Those that the filter selects have no fate yet."""
    rule = checkpoint_rule(settings)
    found: list[PlannedGroup] = []
    steps.begin(f"{settings.flow}: reading groups", -(-len(names) // GROUPS_A_STEP))
    for at in range(0, len(names), GROUPS_A_STEP):
        piece = names[at : at + GROUPS_A_STEP]
        for group, answer in zip(piece, await asyncio.gather(*(_offsets(source, one) for one in piece)), strict=True):
            selected = is_consumer_group(group, "", settings.groups)
            if isinstance(answer, ClusterError):
                if selected:
                    found.append(PlannedGroup(group=group, fate="unreadable", reason=str(answer)))
                continue
            committed = [
                Committed(topic, number, UpstreamOffset(offset.offset)) for (topic, number), offset in answer.items()
            ]
            if not consumes_mirrored(committed, rule):
                continue
            left_out = PlannedGroup(group=group, fate="excluded", reason="groups and groups.exclude leave it out")
            found.append(PlannedGroup(group=group, fate="") if selected else left_out)
        steps.advance()
    return found


async def _offsets(source: Admin, group: str) -> Mapping[tuple[str, int], GroupOffset] | ClusterError:
    try:
        return await source.group_offsets(group)
    except ClusterUnreachable:
        raise
    except ClusterError as trouble:
        return trouble


async def _read_fates(settings: FlowSettings, target: Admin, groups: Collection[str]) -> Mapping[str, PlannedGroup]:
    """Return what becomes of each selected group."""
    if not settings.checkpoint.sync_group_offsets:
        return {group: PlannedGroup(group=group, fate="checkpoints") for group in groups}
    described = await target.describe_groups(groups)
    fates = {
        name: PlannedGroup(group=name, fate="unreadable", reason=str(why)) for name, why in described.troubles().items()
    }
    for name, one in described.done.items():
        match group_membership(one.state, one.members):
            case GroupMembership.ABSENT:
                fates[name] = PlannedGroup(group=name, fate="create")
            case GroupMembership.EMPTY:
                fates[name] = PlannedGroup(group=name, fate="sync")
            case GroupMembership.ACTIVE:
                members = ", ".join(one.member_names) or "its members are joining"
                reason = f"it has members on {target.alias}: {members}"
                fates[name] = PlannedGroup(group=name, fate="active", reason=reason)
    return fates
