"""The blockers that speak against a switch, before anything is changed (no I/O, no clock)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from lockstep_ops.formatting import name_partitions
from lockstep_ops.switch.switch_options import Allowance
from lockstep_ops.switch.switch_positions import (
    NAMED,
    PartitionLoss,
    count_losses,
    partitions_by_count,
    unknown_losses,
)
from lockstep_ops.switch.switch_steps import Verb
from lockstep_rules.groups.group_prospects import find_obstacle
from lockstep_rules.switch.switch_readiness import name_obstacle
from lockstep_state.reasons.reason import Detail, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, Row

LEFT_TO_STEPS = frozenset({SwitchReason.GROUP_WAITING, SwitchReason.GROUP_IN_USE})
"""Blockers that a step of the switch removes, or judges again when they matter."""

ASKED_AGAIN = frozenset({SwitchReason.GROUPS_STALE})
"""Blockers that a step of a switch with a source reads again."""

NEVER_FORCED = frozenset({SwitchReason.TARGET_UNREACHABLE, SwitchReason.NOTHING_COPIED})
"""Blockers that no option allows."""

SHORT_LIVED = frozenset(
    {
        (SwitchReason.SERVICE_FAILING, ReasonCode.NO_REPLICA.value),
        (SwitchReason.SERVICE_FAILING, ReasonCode.REPLICAS_UNKNOWN.value),
        (SwitchReason.GROUPS_UNKNOWN, ReasonCode.GROUPS_NOT_READ.value),
    }
)
"""Blockers that may be over in some seconds: the reason of a blocker, and the code of its cause."""

SOURCE_REASONS = frozenset(
    {
        SwitchReason.SOURCE_UNREACHABLE,
        SwitchReason.PARTITION_NOT_COPYING,
        SwitchReason.LAG_UNKNOWN,
        SwitchReason.LAG,
        SwitchReason.DELAYED,
        SwitchReason.TOPIC_FAILED,
    }
)
"""Blockers that follow from a source that is gone."""

GROUP_REASONS = frozenset(
    {
        SwitchReason.GROUP_FAILING,
        SwitchReason.GROUP_REFUSED,
        SwitchReason.GROUP_SKIPS,
        SwitchReason.GROUP_CONTESTED,
        SwitchReason.GROUP_STUCK,
        SwitchReason.GROUP_WAITING,
        SwitchReason.GROUP_IN_USE,
    }
)
"""Blockers whose subject is a group."""

PLACE_REASONS = frozenset({SwitchReason.GROUP_CONTESTED, SwitchReason.GROUP_STUCK, SwitchReason.GROUP_WAITING})
"""Blockers of a group that is not at its place on the target."""

LEFT_GROUP_REASONS = GROUP_REASONS - LEFT_TO_STEPS
"""Blockers of a group that no step moves, so that a switch would leave it behind."""

TOPIC_REASONS = frozenset(
    {
        SwitchReason.STOPPED,
        SwitchReason.PAUSED,
        SwitchReason.TOPIC_FAILED,
        SwitchReason.PARTITION_HALTED,
        SwitchReason.PARTITION_NOT_COPYING,
        SwitchReason.LAG_UNKNOWN,
        SwitchReason.LAG,
        SwitchReason.DELAYED,
    }
)
"""Blockers whose subject is a topic, a partition or another scope."""


def blocking(
    blockers: Iterable[Blocker], verb: Verb, *, allows: Collection[Allowance], rewind_groups: bool
) -> tuple[Blocker, ...]:
    """Return the blockers that keep a command from beginning."""
    left_out = set(LEFT_TO_STEPS)
    unneeded = {"acl-sync", "heartbeat"} if verb is Verb.FAILOVER else set()
    left_out |= SOURCE_REASONS if verb is Verb.FAILOVER else ASKED_AGAIN
    needed = SwitchReason.SOURCE_UNREACHABLE if verb is not Verb.FAILOVER else SwitchReason.TARGET_UNREACHABLE
    return tuple(
        blocker
        for blocker in blockers
        if blocker.blocks
        and blocker.reason not in left_out
        and not (blocker.reason is SwitchReason.SERVICE_FAILING and blocker.subject in unneeded)
        and not (rewind_groups and _is_rewound(blocker))
        and (allowance_for(blocker) not in allows or blocker.reason in NEVER_FORCED or blocker.reason is needed)
    )


def _is_rewound(blocker: Blocker) -> bool:
    return blocker.reason is SwitchReason.GROUP_SKIPS and blocker.cause.code == ReasonCode.REWOUND


def allowance_for(blocker: Blocker) -> Allowance:
    """Return the option by which an operator goes on in spite of the blocker."""
    if blocker.reason in LEFT_GROUP_REASONS:
        return Allowance.LEFT_GROUPS
    return Allowance.STALE_GROUPS if blocker.reason is SwitchReason.GROUPS_STALE else Allowance.NOT_READY


def way_back_blockers(blockers: Iterable[Blocker], *, allows: Collection[Allowance]) -> tuple[Blocker, ...]:
    """Return the blockers that keep a failback from beginning.

    The flow back may be stopped, and far behind. Then its rows say little of groups, so step *return* judges them
    again.
    """
    blocking_reasons = {SwitchReason.TARGET_UNREACHABLE, SwitchReason.SOURCE_UNREACHABLE, SwitchReason.SERVICE_FAILING}
    if Allowance.NOT_READY not in allows:
        blocking_reasons |= {SwitchReason.PARTITION_HALTED, SwitchReason.GROUPS_NOT_SYNCED}
    if Allowance.LEFT_GROUPS not in allows:
        blocking_reasons.add(SwitchReason.GROUP_CONTESTED)
    return tuple(blocker for blocker in blockers if blocker.blocks and blocker.reason in blocking_reasons)


def with_obstacles(
    blockers: Iterable[Blocker], rows: Mapping[str, Row], topics: Sequence[str], *, reads_source: bool
) -> Iterator[Blocker]:
    """Yield the blockers; those of a group that is not at its place by what this switch can do about it.

    Args:
        blockers: The blockers.
        rows: The flow's rows.
        topics: The topics that count. Empty: all that the flow mirrors.
        reads_source: See `find_obstacle`.
    """
    targets = {
        row.target_topic
        for row in rows.values()
        if isinstance(row, MirroredTopic) and row.is_selected and (not topics or row.source_topic in topics)
    }
    groups = {row.group: row for row in rows.values() if isinstance(row, GroupStatus)}
    for blocker in blockers:
        group = groups.get(blocker.subject) if blocker.reason in PLACE_REASONS else None
        if group is None:
            yield blocker
        elif (obstacle := find_obstacle(group, targets, reads_source=reads_source)) is not None:
            yield name_obstacle(group.group, *obstacle)
        else:
            yield replace(blocker, reason=SwitchReason.GROUP_WAITING)


def may_end_soon(blockers: Collection[Blocker]) -> bool:
    """Return whether all blockers may be over in some seconds.

    They are services without a replica, as far as the target says, or groups that no round has read yet. When a cluster
    comes back, its services join their groups again, which are empty for some seconds.
    """
    return bool(blockers) and all((blocker.reason, blocker.cause.code) in SHORT_LIVED for blocker in blockers)


def about_topics(blockers: Iterable[Blocker], rows: Mapping[str, Row], topics: Sequence[str]) -> tuple[Blocker, ...]:
    """Return the blockers that are about these topics, or about no single topic or group. Without topics: all."""
    if not topics:
        return tuple(blockers)
    targets = {
        row.target_topic for row in rows.values() if isinstance(row, MirroredTopic) and row.source_topic in topics
    }
    groups = {
        row.group: bool(row.more_waiting or row.more_behind or row.more_ahead)
        or any(topic in targets for topic, *_ in (*row.positions, *row.waiting, *row.behind, *row.ahead))
        or not (row.positions or row.waiting)
        for row in rows.values()
        if isinstance(row, GroupStatus)
    }
    return tuple(blocker for blocker in blockers if _is_about(blocker, topics, groups))


def _is_about(blocker: Blocker, topics: Sequence[str], groups: Mapping[str, bool]) -> bool:
    if blocker.reason in GROUP_REASONS:
        return groups.get(blocker.subject, True)
    if blocker.reason in TOPIC_REASONS:
        name = blocker.subject.removeprefix("topic:").removeprefix("partition:")
        return name in topics or name.rpartition("-")[0] in topics or ":" in name
    return True


def unknown_topics(rows: Mapping[str, Row], topics: Sequence[str]) -> list[str]:
    """Return the topics of these that the flow does not mirror, so that they cannot be switched."""
    mirrored = {row.source_topic for row in rows.values() if isinstance(row, MirroredTopic) and row.phase == "mirrored"}
    return [name for name in topics if name not in mirrored]


def failover_refusals(
    losses: Sequence[PartitionLoss], allowed: int, *, source: str, source_answers: bool, allows: Collection[Allowance]
) -> Iterator[Reason]:
    """Yield the refusals that speak against giving up the source."""
    if source_answers and Allowance.NOT_READY not in allows:
        yield RefusalCode.SOURCE_ANSWERS.to_reason(source=source, option=Allowance.NOT_READY.option)
    if (unknown := unknown_losses(losses)) and Allowance.UNKNOWN_LOSS not in allows:
        yield RefusalCode.LOSS_UNKNOWN.to_reason(
            partitions=name_partitions(unknown, NAMED), option=Allowance.UNKNOWN_LOSS.option
        )
    counts = count_losses(losses)
    lost = sum(counts.values())
    details: dict[str, Detail] = {"lost": lost, "source": source, "partitions": partitions_by_count(counts)}
    if lost > max(0, allowed):
        code = RefusalCode.LOSS_NOT_ALLOWED if allowed < 0 else RefusalCode.LOSS_BEYOND_ALLOWED
        yield code.to_reason(**details, allowed=allowed)
