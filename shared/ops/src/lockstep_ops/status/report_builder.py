"""A flow's `Report` from the rows of its state topic. Pure.

Progress is written at least every second while records move, and not at all while they do not. What cannot be seen in
rows comes in beside them: whether anybody runs at all as `replicas`, how far both clusters' logs go as `logs`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from types import MappingProxyType
from typing import TypeVar, cast

from lockstep_config.flow.connector_settings import NOTHING_STATED, StatedPhases
from lockstep_ops.formatting import in_time
from lockstep_ops.status.partition_status import LogOffsets, SlotOwners, find_holds, partition_line
from lockstep_ops.status.readiness import blockers_in
from lockstep_ops.status.report import (
    COPIES,
    NOT_BEGUN,
    AclLine,
    Acting,
    FailableLine,
    GroupLine,
    PartitionLine,
    PausedPart,
    Report,
    ServiceLine,
    SlotLine,
    TopicLine,
    Trouble,
    cluster_lines,
    combine_if_known,
    largest_or_zero,
)
from lockstep_rules.groups.group_readings import GroupReadings
from lockstep_rules.offsets.first_seen import no_delay
from lockstep_rules.selection_count import GROUP_KEYS, TOPIC_KEYS, SelectionCount
from lockstep_rules.switch.switch_readiness import SwitchLimits
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_runtime.state.failing_parts import acl_failure, failure_reason, groups_unknown, topic_failure
from lockstep_runtime.state.leadership import label_service
from lockstep_state.commands.command_vocabulary import SERVICES, Connector, Scope, ScopeKind, service_connector
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence, read_reason
from lockstep_state.rows.group_rows import REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import (
    AclStatus,
    Assignment,
    ClusterCapabilities,
    FlowPulse,
    GroupStatus,
    Leader,
    LegacyGroup,
    MirroredTopic,
    PartitionProgress,
    Restarts,
    Row,
    SlotStatus,
    SourceEnds,
    SourceGroupsStatus,
    progress_by_partition,
)

R = TypeVar("R", bound=Row)

SILENCE_IS_TROUBLE_MS = 60_000
"""The silence after which a slot is in trouble. A frozen one is ended after 30 s, and another one is started."""

NO_MEMBERS: Mapping[str, Sequence[str]] = MappingProxyType({})


def build_report(
    flow: Flow,
    rows: Mapping[str, Row],
    *,
    at_ms: int,
    services: Collection[str] = SERVICES,
    replicas: Mapping[str, int] | None = None,
    replicas_unknown: Collection[str] = (),
    unreadable: Iterable[str] = (),
    states: StatedPhases = NOTHING_STATED,
    logs: LogOffsets | None = None,
    by_key: bool = False,
    limits: SwitchLimits,
    members: Mapping[str, Sequence[str]] = NO_MEMBERS,
    delay_ms: Callable[[str], int] = no_delay,
) -> Report:
    """Build the report of a flow from its rows.

    Args:
        flow: The flow.
        rows: The fold of the state topic, by key.
        at_ms: The moment of the report, in Unix milliseconds.
        services: The services that have work in this flow, by the file.
        replicas: How many replicas of each service run. If one is absent the number is not known.
        replicas_unknown: Services whose number is unknown for another reason than a permission.
        unreadable: Sentences about records that are no rows.
        states: What the file says of connectors.
        logs: What the clusters said. None: they were not asked.
        by_key: Whether keys choose the target's partition.
        limits: What has to hold before a switch.
        members: The members of groups on the target, by group.
        delay_ms: Returns the delay of a source topic in milliseconds, by the file.
    """
    unknown, clusters = frozenset(replicas_unknown), logs or LogOffsets()
    parts = _ReportParts(rows, services, replicas or {}, unknown, states, clusters, at_ms, by_key, delay_ms)
    partitions = tuple(parts.partitions())
    group_rows = parts.of_present_services(GroupStatus)
    not_known = groups_unknown(parts.all(SourceGroupsStatus)) if "checkpoint" in services else NO_REASON
    report = Report(
        flow=str(flow),
        at_ms=at_ms,
        services=tuple(parts.services()),
        topics=tuple(parts.topics(partitions)),
        partitions=partitions,
        slots=tuple(parts.slots()),
        groups=tuple(map(_group, group_rows)),
        acls=parts.acls(),
        clusters=cluster_lines(parts.all(ClusterCapabilities)),
        heartbeat="".join(row.phase for row in parts.of_present_services(FlowPulse)[:1]),
        held_back=tuple(PausedPart(scope, word) for scope, word in parts.wanted.held_back()),
        troubles=(),
        empty_selections=tuple(parts.empty_selections(flow)),
    )
    report = replace(report, troubles=tuple(_troubles(report, parts, unreadable, not_known)))
    blockers = blockers_in(
        report,
        flow,
        groups=group_rows,
        groups_unknown=not_known,
        services=parts.failing_services(),
        groups_age_ms=GroupReadings.from_rows(rows.values()).oldest_age_ms(at_ms, limits.max_groups_age_ms),
        away=parts.logs.troubles,
        members=members,
        limits=limits,
    )
    return replace(report, switch_blockers=blockers)


def _troubles(
    report: Report, parts: "_ReportParts", unreadable: Iterable[str], groups_reason: Reason
) -> Iterator[Trouble]:
    """Yield what fails in the parts of a report, and in what has no line of its own."""
    # A service that fails, or is to rest, is the cause, and shown as such.
    reads_groups = parts.wanted.connector(Connector.CHECKPOINT) is DesiredPhase.RUNNING and not any(
        line.service == "checkpoint" and line.cause for line in report.services
    )
    yield from (Trouble("state topic", sentence) for sentence in unreadable)
    yield from (Trouble(f"cluster {alias}", reason) for alias, reason in parts.logs.troubles.items())
    failing: tuple[tuple[str, FailableLine], ...] = (
        *((line.service, line) for line in report.services if line.cause),
        *((f"topic {line.topic}", line) for line in report.topics if line.cause),
        *((f"partition {line.topic}-{line.partition}", line) for line in report.partitions if line.cause),
        *((f"slot {line.slot}", line) for line in report.slots if line.cause),
        *((f"group {line.group}", line) for line in report.groups if line.cause),
    )
    yield from (Trouble(subject, line.trouble, line.cause.code) for subject, line in failing)
    if groups_reason and reads_groups:
        yield Trouble("groups", format_sentence(groups_reason), groups_reason.code)
    if report.acls and report.acls.cause:
        yield Trouble("ACLs", report.acls.trouble, report.acls.cause.code)
    for pulse in parts.of_present_services(FlowPulse)[:1]:
        if pulse.phase == "failing":
            yield Trouble("heartbeats", pulse.reason, pulse.cause.code)
    for group in parts.all(LegacyGroup):
        if group.phase == "waiting":
            yield Trouble(f"legacy group {group.group}", group.reason, group.cause.code)


@dataclass
class _ReportParts:
    """The parts of a report, each from the rows of its kind."""

    rows: InitVar[Mapping[str, Row]]
    _services: Collection[str]
    _replicas: Mapping[str, int]
    _replicas_unknown: Collection[str]
    states: InitVar[StatedPhases]
    logs: LogOffsets
    _at_ms: int
    _by_key: bool
    delay_ms: InitVar[Callable[[str], int]]

    def __post_init__(self, rows: Mapping[str, Row], states: StatedPhases, delay_ms: Callable[[str], int]) -> None:
        self.wanted = DesiredStateView(rows, states)
        self._holds = find_holds(rows.values(), delay_ms)
        self._by_kind: dict[type[Row], list[Row]] = defaultdict(list)
        for _, row in sorted(rows.items()):
            self._by_kind[type(row)].append(row)

    def all(self, kind: type[R]) -> list[R]:
        return cast(list[R], self._by_kind.get(kind, []))

    def of_present_services(self, kind: type[R]) -> list[R]:
        """Return the rows of this kind, without those of a service that the file has switched off since.

        Such rows say nothing of today.
        """
        return self.all(kind) if kind.owned_by in self._services else []

    def empty_selections(self, flow: Flow) -> Iterable[str]:
        """Return sentences about filters that select nothing of what exists."""
        if self.logs.topic_count.is_nothing and COPIES in self._services:
            yield self.logs.topic_count.sentence("topics", flow.source, TOPIC_KEYS)
        for row in self.of_present_services(SourceGroupsStatus)[:1]:
            groups = SelectionCount(row.unselected, row.excluded)
            if groups.is_nothing:
                yield groups.sentence("groups", flow.source, GROUP_KEYS)

    def services(self) -> Iterable[ServiceLine]:
        for service in SERVICES:
            if service not in self._services:
                continue
            connector = service_connector(service)
            leaders = [
                Acting(row.service, row.instance, row.at_ms)
                for row in self.all(Leader)
                if label_service(row.service) == service
            ]
            word, cause = self.wanted.connector(connector).word, self._failure(service)
            yield ServiceLine(service, connector.value, word, self._replicas.get(service), tuple(leaders), cause)

    def failing_services(self) -> Mapping[str, Reason]:
        """Return why services fail, by name."""
        reasons = {service: self._failure(service) for service in SERVICES if service in self._services}
        return {service: reason for service, reason in reasons.items() if reason}

    def _failure(self, service: str) -> Reason:
        connector = service_connector(service)
        scope = Scope.for_connector(connector)
        if spent := failure_reason(self.all(Restarts), self.wanted, service, "service", (scope,)):
            return spent
        # The data plane may have no replica while it is stopped; others are needed to resume.
        if service == "data-plane" and self.wanted.connector(connector) is DesiredPhase.STOPPED:
            return NO_REASON
        if self._replicas.get(service) == 0:
            return ReasonCode.NO_REPLICA.to_reason()
        return ReasonCode.REPLICAS_UNKNOWN.to_reason() if service in self._replicas_unknown else NO_REASON

    def partitions(self) -> Iterable[PartitionLine]:
        """Yield every partition of selected topics, and none of topics that are gone or no longer selected."""
        progress = progress_by_partition(self.all(PartitionProgress))
        failing = dict(pair for row in self.all(SlotStatus) if row.phase == "started" for pair in row.causes)
        source_ends = {tp: end for ends in self.all(SourceEnds) for tp, end in ends.by_partition().items()}
        slots = SlotOwners.from_rows(self.all(Assignment), self.all(SlotStatus))
        is_something_held_back = any(True for _ in self.wanted.held_back())
        for topic in self._topics():
            is_created_anew = topic.phase == "deleted" and topic.source_topic in self.logs.selected
            if not (topic.is_selected or is_created_anew):
                continue
            present = self.logs.with_present_ids(topic)
            for number in range(max(topic.source_partitions, self.logs.selected.get(topic.source_topic, 0))):
                row = progress.get((topic.source_topic, number))
                slot = slots.by_partition.get((topic.source_topic, number), -1 if row is None else row.slot)
                wanted = DesiredPhase.RUNNING
                if is_something_held_back:
                    wanted = self.wanted.partition(topic.source_topic, number, slot if slot >= 0 else None)
                line = partition_line(
                    present,
                    number,
                    row,
                    wanted=wanted.word,
                    slots=slots,
                    logs=self.logs,
                    at_ms=self._at_ms,
                    end_seen=source_ends.get((topic.source_topic, number)),
                    by_key=self._by_key,
                    hold=self._holds.get((topic.source_topic, number)),
                )
                cause = failing.get(f"{topic.source_topic}-{number}", NO_REASON)
                if cause and line.phase == NOT_BEGUN:
                    line = replace(line, why=format_sentence(cause), cause=line.cause or cause)
                yield line

    def _topics(self) -> list[MirroredTopic]:
        """Return the rows of topics, and a new row for each topic that is selected and has none yet."""
        rows = list(self.all(MirroredTopic))
        new = self.logs.selected.keys() - {row.source_topic for row in rows}
        rows += [MirroredTopic(source_topic=name, target_topic="", phase=NOT_BEGUN) for name in new]
        return sorted(rows, key=lambda row: row.source_topic)

    def topics(self, partitions: Iterable[PartitionLine]) -> Iterable[TopicLine]:
        by_topic: dict[str, list[PartitionLine]] = defaultdict(list)
        for line in partitions:
            by_topic[line.topic].append(line)
        for row in self._topics():
            lines = by_topic[row.source_topic]
            lags, ages = [line.lag_records for line in lines], [line.lag_ms for line in lines]
            yield TopicLine(
                row.source_topic,
                row.target_topic,
                row.phase,
                self.wanted.phase_for(
                    Scope.for_connector(Connector.SOURCE), Scope(ScopeKind.TOPIC, row.source_topic)
                ).word,
                max(row.source_partitions, len(lines)),
                sum(line.phase != NOT_BEGUN for line in lines),
                sum(line.phase == "halted" for line in lines),
                combine_if_known(lags, sum),
                combine_if_known(ages, largest_or_zero),
                topic_failure(row),
                sum(line.passed_over for line in lines),
                row.note,
            )

    def slots(self) -> Iterable[SlotLine]:
        for row in sorted(self.all(SlotStatus), key=lambda row: row.slot):
            number = row.slot
            scope = Scope(ScopeKind.SLOT, number=number)
            scopes = (scope,), (Scope.for_connector(Connector.SOURCE), scope)
            word = self.wanted.slot(number).word
            cause = failure_reason(self.all(Restarts), self.wanted, "data-plane", str(scope), *scopes)
            if not cause and word != "stopped" and row.phase == "started" and row.partitions > row.resting:
                cause = self._silence(row) or _slot_failure(row)
            yield SlotLine(number, row.phase, word, row.partitions, row.resting, row.held_bytes, cause)

    def _silence(self, row: SlotStatus) -> Reason:
        silent_ms = self._at_ms - row.at_ms
        if silent_ms <= SILENCE_IS_TROUBLE_MS:
            return NO_REASON
        return ReasonCode.SLOT_SILENT.to_reason(silent=in_time(silent_ms), silent_ms=silent_ms)

    def acls(self) -> AclLine | None:
        row = next(iter(self.of_present_services(AclStatus)), None)
        if row is None:
            return None
        return AclLine(
            row.phase,
            row.copied,
            row.left_out,
            row.owned,
            row.revoked,
            row.left_out_for,
            row.left_out_named,
            row.reason,
            row.notes,
            acl_failure(row),
        )


def _slot_failure(row: SlotStatus) -> Reason:
    """Return the failure that a slot reports of itself, or NO_REASON."""
    if not row.causes:
        return NO_REASON
    (part, cause), more = row.causes[0], len(row.causes) - 1
    return (ReasonCode.PARTS_FAIL if more else ReasonCode.PART_FAILS).because(cause, what=part, more=more)


def _group(row: GroupStatus) -> GroupLine:
    reasons = Counter(format_sentence(reason) for _, _, reason in row.waits)
    common = reasons.most_common(1)[0][0] if reasons else ""
    states = Counter(state for *_, state in row.ahead)
    rewound = states[REWOUND_ON_SOURCE]
    skips = [
        f"{topic}-{number} has offset {offset} on the target, the translated offset is {place}"
        for topic, number, offset, place, _ in row.ahead[:1]
    ]
    sentence, cause = format_sentence(row.stated_cause), NO_REASON
    if row.phase == "failing":
        cause = row.stated_cause or ReasonCode.NO_CAUSE.to_reason(phase=row.phase)
    elif row.held == "refused":
        cause = read_reason(row.held_cause, row.held_reason) or ReasonCode.TARGET_REFUSES_OFFSETS.to_reason()
    return GroupLine(
        row.group,
        row.phase,
        row.exact,
        len(row.behind) + row.more_behind,
        row.read_again,
        len(row.waiting) + row.more_waiting,
        row.synced and not (row.held or row.is_contested or row.ahead),
        "; ".join(skips) or row.held_reason or common or (sentence if row.phase == "waiting" else ""),
        cause,
        len(row.ahead) + row.more_ahead - rewound,
        rewound,
        row.held or ("contested" if row.is_contested else ""),
    )
