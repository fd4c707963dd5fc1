"""The readiness of a flow for its clients to move to the target, and what prevents it. Pure.

Anything unknown prevents a switch. A blocker that does not block is a note: clients can move all the same.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from lockstep_rules.groups.group_prospects import CONTESTS, find_obstacle
from lockstep_rules.groups.group_readings import LEAST_LIMIT_MS
from lockstep_state.commands.command_vocabulary import Connector, Scope, ScopeKind
from lockstep_state.reasons.reason import NO_REASON, Detail, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.group_rows import REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import GroupStatus


@dataclass(frozen=True, slots=True)
class SwitchPartition:
    """A partition that the target should have. `state` is `copying` or another single word."""

    topic: str
    partition: int
    state: str
    lag_records: int | None
    """None: unknown, as in `lag_ms`."""
    lag_ms: int | None
    delay_ms: int = 0
    """The time that its records stay on the source on purpose."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class FailingPart:
    """A part of the flow that fails: a cluster by its side, a service, or a topic."""

    kind: Literal["source", "target", "service", "topic"]
    name: str
    cause: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchLimits:
    """The settings of the file for a switch. With `both_ways` a reverse flow exists, so clients work on both sides."""

    max_lag_ms: int
    syncs_groups: bool
    reads_groups: bool = True
    """The file has a checkpoint service."""
    both_ways: bool = False
    max_groups_age_ms: int = LEAST_LIMIT_MS
    """The greatest permitted age of the reading of the source's groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchFacts:
    """The present facts of a flow.

    `resting` has (scope, `paused` or `stopped`). `members` has the members of groups that have some on the target; it
    may be incomplete.
    """

    partitions: Sequence[SwitchPartition] = ()
    groups: Sequence[GroupStatus] = ()
    groups_unknown: Reason = NO_REASON
    """The reason why not all groups of the source are known; no reason if they are."""
    groups_age_ms: int | None = 0
    """The age of the reading of the source's groups (`GroupReadings.oldest_age_ms`); None: unknown."""
    resting: Sequence[tuple[str, str]] = ()
    failing: Sequence[FailingPart] = ()
    members: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))


IN_USE = "in-use"
NAMED_MEMBERS = 3
_ORDER = {reason: number for number, reason in enumerate(SwitchReason)}
_CLUSTERS = {"source": SwitchReason.SOURCE_UNREACHABLE, "target": SwitchReason.TARGET_UNREACHABLE}
_FAILING = _CLUSTERS | {"service": SwitchReason.SERVICE_FAILING, "topic": SwitchReason.TOPIC_FAILED}
_NOT_MIRRORED = frozenset({"failed", "not begun", "not-begun"})
"""States of a partition without a copy on the target, by the words of the CLI and of the data plane."""
_NOT_NEEDED = frozenset({"heartbeat", str(Scope.for_connector(Connector.HEARTBEAT))})
"""Services that no client depends on."""


def find_blockers(facts: SwitchFacts, limits: SwitchLimits) -> tuple[Blocker, ...]:
    """Return everything that prevents a switch, causes first, then the notes. A partition has one reason at most."""
    blockers = [*_failing(facts), *_resting(facts), *_partitions(facts, limits), *_groups(facts, limits)]
    return tuple(sorted(blockers, key=lambda blocker: (not blocker.blocks, _ORDER[blocker.reason])))


def is_ready(blockers: Iterable[Blocker]) -> bool:
    """Return whether no blocker blocks."""
    return not any(blocker.blocks for blocker in blockers)


def count_by_reason(blockers: Iterable[Blocker]) -> dict[SwitchReason, int]:
    """Count the blockers that block, for every reason."""
    counts = dict.fromkeys(SwitchReason, 0)
    for blocker in blockers:
        counts[blocker.reason] += blocker.blocks
    return counts


def _failing(facts: SwitchFacts) -> Iterator[Blocker]:
    for part in facts.failing:
        needed = part.kind != "service" or part.name not in _NOT_NEEDED
        yield Blocker(_FAILING[part.kind], part.name, blocks=needed, cause=part.cause)


def _resting(facts: SwitchFacts) -> Iterator[Blocker]:
    """Yield the paused and stopped scopes. The desired state of a later release counts as paused."""
    topics = {partition.topic for partition in facts.partitions}
    for scope, desired in facts.resting:
        kind, _, name = scope.partition(":")
        topic = name.rpartition("-")[0] if kind == ScopeKind.PARTITION.value else name
        if kind in (ScopeKind.TOPIC.value, ScopeKind.PARTITION.value) and topic not in topics:
            continue  # the flow does not mirror the topic any more
        reason = SwitchReason.STOPPED if desired == "stopped" else SwitchReason.PAUSED
        yield Blocker.with_details(reason, scope, {"wanted": desired}, blocks=scope not in _NOT_NEEDED)


def _partitions(facts: SwitchFacts, limits: SwitchLimits) -> Iterator[Blocker]:
    away = any(part.kind in _CLUSTERS for part in facts.failing)
    failed = {part.name for part in facts.failing if part.kind == "topic"}
    if not facts.partitions and not away:
        yield Blocker(SwitchReason.NOTHING_COPIED)
    scopes = {scope for scope, _ in facts.resting}
    for partition in facts.partitions:
        if partition.state == "halted":
            yield Blocker(SwitchReason.PARTITION_HALTED, partition.name)
        elif (partition.topic in failed and partition.state in _NOT_MIRRORED) or (
            partition.state != "copying" and _is_within(partition, scopes)
        ):
            continue  # the topic, or the scope, has the reason already
        elif partition.state not in ("copying", "unknown"):
            yield Blocker.with_details(SwitchReason.PARTITION_NOT_COPYING, partition.name, {"state": partition.state})
        elif partition.state == "unknown" or partition.lag_records is None or partition.lag_ms is None:
            if not away:
                yield Blocker(SwitchReason.LAG_UNKNOWN, partition.name)
        elif partition.delay_ms:  # also without lag: what comes last before a switch would be held back too
            delay = {"delay_ms": partition.delay_ms, "lag_records": partition.lag_records}
            yield Blocker.with_details(SwitchReason.DELAYED, partition.name, delay)
        elif partition.lag_ms > limits.max_lag_ms:
            lag = {"lag_ms": partition.lag_ms, "lag_records": partition.lag_records, "max_lag_ms": limits.max_lag_ms}
            yield Blocker.with_details(SwitchReason.LAG, partition.name, lag)


def _is_within(partition: SwitchPartition, scopes: Collection[str]) -> bool:
    """Return whether one of the scopes contains the partition.

    The slot of a partition is unknown, so any slot counts.
    """
    if not scopes:
        return False
    containing = (
        Scope.for_connector(Connector.SOURCE),
        Scope(ScopeKind.TOPIC, partition.topic),
        Scope(ScopeKind.PARTITION, partition.topic, partition.partition),
    )
    return any(str(scope) in scopes for scope in containing) or any(scope.startswith("slot:") for scope in scopes)


def _groups(facts: SwitchFacts, limits: SwitchLimits) -> Iterator[Blocker]:
    if not limits.reads_groups:  # rows of a time when it ran say nothing of today
        yield Blocker.with_details(SwitchReason.GROUPS_NOT_SYNCED, "", {"key": "emit.checkpoints.enabled"})
        return
    if facts.groups_unknown:
        yield Blocker(SwitchReason.GROUPS_UNKNOWN, cause=facts.groups_unknown)
    elif facts.groups_age_ms is None or facts.groups_age_ms > limits.max_groups_age_ms:
        age = {} if facts.groups_age_ms is None else {"age_ms": facts.groups_age_ms}
        yield Blocker.with_details(SwitchReason.GROUPS_STALE, "", {"max_age_ms": limits.max_groups_age_ms, **age})
    present = [row for row in facts.groups if not row.is_gone]
    if present and not limits.syncs_groups:
        details: dict[str, Detail] = {"key": "sync.group.offsets.enabled", "groups": len(present)}
        yield Blocker.with_details(SwitchReason.GROUPS_NOT_SYNCED, "", details)
    for row in present:
        members = facts.members.get(row.group, ())
        in_use = row.held == IN_USE or bool(members)
        if in_use:
            blocks = not limits.both_ways
            yield Blocker.with_details(SwitchReason.GROUP_IN_USE, row.group, _in_use(members), blocks=blocks)
        if row.phase == "failing":
            yield Blocker(SwitchReason.GROUP_FAILING, row.group, cause=row.stated_cause)
        elif not (in_use and limits.both_ways):  # else it works on the target by a position of its own
            yield from _position_blockers(row, limits)


def _position_blockers(row: GroupStatus, limits: SwitchLimits) -> Iterator[Blocker]:
    """Yield what prevents the group from continuing at its checkpoints on the target."""
    if row.held == "refused":
        yield Blocker(SwitchReason.GROUP_REFUSED, row.group, cause=row.stated_held_cause)
    if row.ahead or row.more_ahead:
        are_rewound = bool(row.ahead) and all(state == REWOUND_ON_SOURCE for *_, state in row.ahead)
        cause = (ReasonCode.REWOUND if are_rewound else ReasonCode.AHEAD).to_reason()
        yield Blocker.with_details(SwitchReason.GROUP_SKIPS, row.group, _skips(row), cause=cause)
    waits = len(row.waiting) + row.more_waiting
    if (obstacle := find_obstacle(row)) is not None:
        yield name_obstacle(row.group, *obstacle)
    elif waits or not row.is_placed:
        cause = row.waits[0][2] if row.waiting else row.stated_cause
        details = {"partitions": waits} if waits else {}
        yield Blocker.with_details(SwitchReason.GROUP_WAITING, row.group, details, cause=cause)
    elif limits.syncs_groups and not (row.synced or row.held):
        yield Blocker.with_details(SwitchReason.GROUP_WAITING, row.group, {"written": 0}, cause=row.stated_held_cause)


def name_obstacle(group: str, partition: str, cause: Reason) -> Blocker:
    """Return the blocker of a group that cannot reach its checkpoints during a switch (`find_obstacle`)."""
    reason = SwitchReason.GROUP_CONTESTED if cause.code in CONTESTS else SwitchReason.GROUP_STUCK
    return Blocker.with_details(reason, group, {"partition": partition} if partition else {}, cause=cause)


def _skips(row: GroupStatus) -> dict[str, Detail]:
    if not row.ahead:
        return {"partitions": row.more_ahead}
    topic, number, offset, translated_offset, state = row.ahead[0]
    return {"partition": f"{topic}-{number}", "offset": offset, "place": translated_offset, "state": state}


def _in_use(members: Sequence[str]) -> dict[str, Detail]:
    if not members:
        return {}
    unnamed = len(members) - NAMED_MEMBERS
    return {"members": ", ".join(members[:NAMED_MEMBERS]) + (f" and {unnamed:,} more" if unnamed > 0 else "")}
