"""Consumer groups of the source: which get checkpoints, and which can be moved on the target."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_ops.cluster_snapshot import ClusterSnapshot, Unknown, or_unknown
from lockstep_ops.plan.rules.flow_plan import PlannedGroup
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
    settings: FlowSettings, source: ClusterSnapshot, target: ClusterSnapshot, steps: WorkProgress
) -> GroupReading:
    """Return every group that reads mirrored topics, sorted, and selected groups of other protocols.

    Raises:
        ClusterUnreachable: The source does not answer.
    """
    if not settings.checkpoint.enabled:
        return GroupReading(remark="groups are not translated: emit.checkpoints.enabled is false")
    listed_groups = await or_unknown(source.list_groups())
    if isinstance(listed_groups, Unknown):
        return GroupReading(remark=f"groups are not known: {listed_groups}")
    protocols, remark = await source.group_protocols(), ""
    if isinstance(protocols, Unknown):
        protocols, remark = {}, f"share and Streams groups are not known: {protocols}"
    others = {group: protocol for group, protocol in protocols.items() if protocol in OTHER_PROTOCOLS}
    names = sorted(
        group
        for group, kind in listed_groups.items()
        if kind in CONSUMER_TYPES and not group.startswith(OUR_GROUPS) and group not in others
    )
    readers = await _read_readers(settings, source, names, steps)
    fates = await _read_fates(settings, target, [reader.group for reader in readers if not reader.fate])
    planned = [reader if reader.fate else fates[reader.group] for reader in readers]
    planned += [
        PlannedGroup(group=group, fate="other-protocol", reason=f"it is a {others[group]} group")
        for group in sorted(others)
        if should_replicate_group(group, settings.groups)
    ]
    count = count_groups((reader.group for reader in readers), settings.groups)
    return GroupReading(tuple(sorted(planned, key=lambda planned_group: planned_group.group)), remark, count)


async def _read_readers(
    settings: FlowSettings, source: ClusterSnapshot, names: list[str], steps: WorkProgress
) -> list[PlannedGroup]:
    """Return the groups that read mirrored topics. Those that the filter selects have no fate yet."""
    rule = checkpoint_rule(settings)
    readers: list[PlannedGroup] = []
    steps.begin(f"{settings.flow}: reading groups", -(-len(names) // GROUPS_A_STEP))
    for start in range(0, len(names), GROUPS_A_STEP):
        piece = names[start : start + GROUPS_A_STEP]
        answers = await asyncio.gather(*(or_unknown(source.group_offsets(group)) for group in piece))
        for group, offsets in zip(piece, answers, strict=True):
            selected = is_consumer_group(group, "", settings.groups)
            if isinstance(offsets, Unknown):
                if selected:
                    readers.append(PlannedGroup(group=group, fate="unreadable", reason=str(offsets)))
                continue
            committed = [
                Committed(topic, number, UpstreamOffset(offset.offset)) for (topic, number), offset in offsets.items()
            ]
            if not consumes_mirrored(committed, rule):
                continue
            left_out = PlannedGroup(group=group, fate="excluded", reason="groups and groups.exclude leave it out")
            readers.append(PlannedGroup(group=group, fate="") if selected else left_out)
        steps.advance()
    return readers


async def _read_fates(
    settings: FlowSettings, target: ClusterSnapshot, groups: Collection[str]
) -> Mapping[str, PlannedGroup]:
    """Return what becomes of each selected group."""
    if not settings.checkpoint.sync_group_offsets:
        return {group: PlannedGroup(group=group, fate="checkpoints") for group in groups}
    described = await target.describe_groups(groups)
    fates = {
        group: PlannedGroup(group=group, fate="unreadable", reason=str(trouble))
        for group, trouble in described.troubles().items()
    }
    for group, description in described.done.items():
        match group_membership(description.state, description.members):
            case GroupMembership.ABSENT:
                fates[group] = PlannedGroup(group=group, fate="create")
            case GroupMembership.EMPTY:
                fates[group] = PlannedGroup(group=group, fate="sync")
            case GroupMembership.ACTIVE:
                members = ", ".join(description.member_names) or "its members are joining"
                reason = f"it has members on {target.alias}: {members}"
                fates[group] = PlannedGroup(group=group, fate="active", reason=reason)
    return fates
