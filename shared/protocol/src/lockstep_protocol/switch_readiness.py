"""Whether a flow is ready for its clients to move to the target, and what prevents it. Pure.

`lockstep status`, the data plane's metrics and the switch itself all ask here. What is not known prevents a switch: it
is never taken for ready. A blocker that does not block is a note: clients can move all the same.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from lockstep_protocol.commands.command_vocabulary import Connector, Scope, ScopeKind
from lockstep_protocol.group_prospects import CONTESTS, find_obstacle
from lockstep_protocol.group_readings import LEAST_LIMIT_MS
from lockstep_protocol.reason import NO_REASON, Reason
from lockstep_protocol.reason_catalogue import ReasonCode, format_sentence
from lockstep_protocol.rows.state_rows import GroupStatus
from lockstep_protocol.switch_reason import Blocker, SwitchReason


@dataclass(frozen=True, slots=True)
class SwitchPartition:
    """A partition that the target should have. `state`: what it does now in one word, `copying` or another one."""

    topic: str
    partition: int
    state: str
    lag_records: int | None
    """None: unknown, as of `lag_ms`."""
    lag_ms: int | None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class FailingPart:
    """Something that fails: a cluster by its side, a service, or a topic."""

    kind: Literal["source", "target", "service", "topic"]
    name: str
    cause: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchLimits:
    """What the file says about a switch. `both_ways`: another flow leads back, so that clients work on both sides."""

    max_lag_ms: int
    syncs_groups: bool
    reads_groups: bool = True
    """Whether there is a checkpoint service by the file."""
    both_ways: bool = False
    max_groups_age_ms: int = LEAST_LIMIT_MS
    """How old the reading of the source's groups may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchFacts:
    """What is known about a flow now. `resting`: (scope, `paused` or `stopped`). `members`: of groups that have members
    on the target, by group; not every one is known."""

    partitions: Sequence[SwitchPartition] = ()
    groups: Sequence[GroupStatus] = ()
    groups_unknown: Reason = NO_REASON
    """Why not all groups of the source are known; no reason if they are."""
    groups_age_ms: int | None = 0
    """How old the reading of the source's groups is (`GroupReadings.oldest_age_ms`); None: unknown."""
    resting: Sequence[tuple[str, str]] = ()
    failing: Sequence[FailingPart] = ()
    members: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))


IN_USE = "in-use"
REWOUND_ON_SOURCE = "rewound-on-source"
"""A word of `GroupStatus.ahead`. The list begins with partitions of the other word."""
NAMED_MEMBERS = 3
_ORDER = {reason: number for number, reason in enumerate(SwitchReason)}
_CLUSTERS = {"source": SwitchReason.SOURCE_UNREACHABLE, "target": SwitchReason.TARGET_UNREACHABLE}
_NOT_MIRRORED = frozenset({"failed", "not begun", "not-begun"})
"""States of a partition that has no place on the target, by the words of the CLI and of the data plane."""
_NOT_NEEDED = frozenset({"heartbeat", str(Scope.for_connector(Connector.HEARTBEAT))})
"""Nothing that clients use depends on heartbeats."""


def find_blockers(facts: SwitchFacts, limits: SwitchLimits) -> tuple[Blocker, ...]:
    """Everything that prevents a switch, causes first, and then the notes. A partition has one reason at most."""
    found = [*_failing(facts), *_resting(facts), *_partitions(facts, limits), *_groups(facts, limits)]
    return tuple(sorted(found, key=lambda one: (not one.blocks, _ORDER[one.reason])))


def is_ready(blockers: Iterable[Blocker]) -> bool:
    """Whether nothing of it blocks."""
    return not any(one.blocks for one in blockers)


def count_by_reason(blockers: Iterable[Blocker]) -> dict[SwitchReason, int]:
    """How many block, for every reason there is."""
    counts = dict.fromkeys(SwitchReason, 0)
    for one in blockers:
        counts[one.reason] += one.blocks
    return counts


def _failing(facts: SwitchFacts) -> Iterator[Blocker]:
    for part in facts.failing:
        sentence = format_sentence(part.cause)
        if part.kind == "topic":
            text = f"topic {part.name} fails: {sentence}"
            yield Blocker(SwitchReason.TOPIC_FAILED, part.name, text, cause=part.cause)
        elif part.kind == "service":
            text, needed = f"{part.name} fails: {sentence}", part.name not in _NOT_NEEDED
            yield Blocker(SwitchReason.SERVICE_FAILING, part.name, text, needed, part.cause)
        else:
            text = f"the {part.kind} {part.name} does not answer: {sentence}"
            yield Blocker(_CLUSTERS[part.kind], part.name, text, cause=part.cause)


def _resting(facts: SwitchFacts) -> Iterator[Blocker]:
    """A word of a later release restrains in a way that is not known here: it counts as paused."""
    topics = {one.topic for one in facts.partitions}
    for scope, wanted in facts.resting:
        kind, _, name = scope.partition(":")
        topic = name.rpartition("-")[0] if kind == ScopeKind.PARTITION.value else name
        if kind in (ScopeKind.TOPIC.value, ScopeKind.PARTITION.value) and topic not in topics:
            continue  # the flow does not mirror the topic any more
        reason = SwitchReason.STOPPED if wanted == "stopped" else SwitchReason.PAUSED
        yield Blocker(reason, scope, f"{scope} is {wanted}", scope not in _NOT_NEEDED)


def _partitions(facts: SwitchFacts, limits: SwitchLimits) -> Iterator[Blocker]:
    away = any(part.kind in _CLUSTERS for part in facts.failing)
    failed = {part.name for part in facts.failing if part.kind == "topic"}
    if not facts.partitions and not away:
        yield Blocker(SwitchReason.NOTHING_COPIED, "", "the flow has no partition to copy")
    scopes = {scope for scope, _ in facts.resting}
    for one in facts.partitions:
        if one.state == "halted":
            text = f"partition {one.name} is halted and waits for a decision"
            yield Blocker(SwitchReason.PARTITION_HALTED, one.name, text)
        elif (one.topic in failed and one.state in _NOT_MIRRORED) or (
            one.state != "copying" and _is_within(one, scopes)
        ):
            continue  # the topic, or the scope, has the reason already
        elif one.state not in ("copying", "unknown"):
            text = f"partition {one.name} is not copied now: it is {one.state.replace('-', ' ')}"
            yield Blocker(SwitchReason.PARTITION_NOT_COPYING, one.name, text)
        elif one.state == "unknown" or one.lag_records is None or one.lag_ms is None:
            if not away:
                yield Blocker(
                    SwitchReason.LAG_UNKNOWN, one.name, f"how far partition {one.name} is behind is not known"
                )
        elif one.lag_ms > limits.max_lag_ms:
            limit = f"{limits.max_lag_ms / 1000:g} s are permitted"
            text = f"partition {one.name} is {one.lag_ms / 1000:.1f} s behind ({one.lag_records:,} records), {limit}"
            yield Blocker(SwitchReason.LAG, one.name, text)


def _is_within(one: SwitchPartition, scopes: Collection[str]) -> bool:
    """Whether one of the scopes contains the partition. Which slot has it is not known here."""
    around = (
        Scope.for_connector(Connector.SOURCE),
        Scope(ScopeKind.TOPIC, one.topic),
        Scope(ScopeKind.PARTITION, one.topic, one.partition),
    )
    return any(str(scope) in scopes for scope in around) or any(scope.startswith("slot:") for scope in scopes)


def _groups(facts: SwitchFacts, limits: SwitchLimits) -> Iterator[Blocker]:
    if not limits.reads_groups:  # rows of a time when it ran say nothing of today
        text = "the offsets of groups are not written to the target: emit.checkpoints.enabled is not in effect"
        yield Blocker(SwitchReason.GROUPS_NOT_SYNCED, "", text)
        return
    if facts.groups_unknown:
        text = f"the consumer groups of the source are not known: {format_sentence(facts.groups_unknown)}"
        yield Blocker(SwitchReason.GROUPS_UNKNOWN, "", text, cause=facts.groups_unknown)
    elif facts.groups_age_ms is None or facts.groups_age_ms > limits.max_groups_age_ms:
        yield Blocker(SwitchReason.GROUPS_STALE, "", _stale_groups(facts.groups_age_ms, limits.max_groups_age_ms))
    present = [row for row in facts.groups if not row.is_gone]
    if present and not limits.syncs_groups:
        count = f"{len(present):,} group{'s' if len(present) > 1 else ''}"
        text = f"the offsets of {count} are not written to the target: sync.group.offsets.enabled is not in effect"
        yield Blocker(SwitchReason.GROUPS_NOT_SYNCED, "", text)
    for row in present:
        members = facts.members.get(row.group, ())
        in_use = row.held == IN_USE or bool(members)
        if in_use:
            yield Blocker(SwitchReason.GROUP_IN_USE, row.group, _in_use(row.group, members), not limits.both_ways)
        if row.phase == "failing":
            text = f"group {row.group} fails: {format_sentence(row.why) or 'without a reason'}"
            yield Blocker(SwitchReason.GROUP_FAILING, row.group, text, cause=row.why)
        elif not (in_use and limits.both_ways):  # else it works on the target by a position of its own
            yield from _place(row, limits)


def _stale_groups(age_ms: int | None, limit_ms: int) -> str:
    means = "groups that appeared since are not known, and a group that went on since reads those records again"
    if age_ms is None:
        return f"up to which moment the consumer groups of the source were read is not known: {means}"
    age = f"{age_ms / 1000:,.0f} s of the source's time, {limit_ms / 1000:,.0f} s are permitted"
    return f"the consumer groups of the source were not read for {age}: {means}"


def _place(row: GroupStatus, limits: SwitchLimits) -> Iterator[Blocker]:
    """What prevents that the group goes on at its place on the target."""
    about = f"group {row.group}"
    if row.held == "refused":
        sentence = row.held_reason or "the target does not accept its offsets"
        yield Blocker(SwitchReason.GROUP_REFUSED, row.group, f"{about} is refused: {sentence}", cause=row.why_held)
    if row.ahead or row.more_ahead:
        are_rewound = bool(row.ahead) and all(state == REWOUND_ON_SOURCE for *_, state in row.ahead)
        cause = (ReasonCode.REWOUND if are_rewound else ReasonCode.AHEAD).to_reason()
        yield Blocker(SwitchReason.GROUP_SKIPS, row.group, f"{about} would skip records{_skips(row)}", cause=cause)
    waits = len(row.waiting) + row.more_waiting
    if (obstacle := find_obstacle(row)) is not None:
        yield name_obstacle(row.group, *obstacle)
    elif waits or not row.is_placed:
        cause = row.waits[0][2] if row.waiting else row.why
        where, sentence = f" in {waits:,} partitions" if waits else "", format_sentence(cause)
        text = f"{about} waits{where}{f': {sentence}' if sentence else ''}"
        yield Blocker(SwitchReason.GROUP_WAITING, row.group, text, cause=cause)
    elif limits.syncs_groups and not (row.synced or row.held):
        text = f"{about} waits: {row.held_reason or 'its offsets are not written to the target yet'}"
        yield Blocker(SwitchReason.GROUP_WAITING, row.group, text, cause=row.why_held)


def name_obstacle(group: str, partition: str, cause: Reason) -> Blocker:
    """Return the blocker of a group that cannot come to its place during a switch (`find_obstacle`)."""
    reason = SwitchReason.GROUP_CONTESTED if cause.code in CONTESTS else SwitchReason.GROUP_STUCK
    where, sentence = f"{partition}: " if partition else "", format_sentence(cause) or "its row does not say why"
    return Blocker(reason, group, f"group {group} cannot move: {where}{sentence}", cause=cause)


def _skips(row: GroupStatus) -> str:
    if not row.ahead:
        return f" in {row.more_ahead:,} partitions"
    topic, number, offset, place, state = row.ahead[0]
    return f": {topic}-{number} is {state.replace('-', ' ')}, at {offset} instead of {place}"


def _in_use(group: str, members: Sequence[str]) -> str:
    if not members:
        return f"group {group} has members on the target"
    more = len(members) - NAMED_MEMBERS
    shown = ", ".join(members[:NAMED_MEMBERS]) + (f" and {more:,} more" if more > 0 else "")
    return f"group {group} has members on the target: {shown}"
