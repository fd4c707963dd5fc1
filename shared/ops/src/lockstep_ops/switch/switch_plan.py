"""Plans a switch from what both clusters say, refuses what must not be, and begins it."""

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lockstep_config import FlowSettings
from lockstep_kafka.admin.replicas import describe_replicas
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, TopicMissing
from lockstep_ops.clusters import REFUSED_S, target_client
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.services import SERVICES
from lockstep_ops.status.flow_report import read_report
from lockstep_ops.status.report import Report
from lockstep_ops.status.report_builder import build_report
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.refusals import Refusal
from lockstep_ops.switch.source_ends import selected_topics
from lockstep_ops.switch.switch_check import (
    about_topics,
    blocking,
    failover_refusals,
    may_end_soon,
    unknown_topics,
    way_back_blockers,
    with_obstacles,
)
from lockstep_ops.switch.switch_clusters import PROBED_WITHIN_S, NotFoundYet, StepFailed, SwitchClusters
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_options import Allowance, SwitchOptions
from lockstep_ops.switch.switch_positions import (
    RecordsKnown,
    count_losses,
    groups_known_until,
    known_loss,
)
from lockstep_ops.switch.switch_steps import (
    DONE,
    HOOKS,
    UNDER_WAY,
    WAITING,
    Step,
    Verb,
    last_done_ms,
    planned_steps,
    too_soon,
    with_step,
)
from lockstep_ops.switch.switch_under_way import SwitchRefused, under_way_refusal
from lockstep_rules.groups.group_readings import GroupReadings
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_runtime.util.clock import now_ms
from lockstep_state.commands.command_vocabulary import Connector, Scope, ScopeKind
from lockstep_state.names import Flow
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.reasons.switch_reason import Blocker
from lockstep_state.rows.state_rows import SWITCH_KEY, Row, Switch

REPORTED_WITHIN_S = 5.0

CHECKED = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPlan:
    """The steps that a switch would do, and the refusals that speak against it."""

    row: Switch
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]
    report: Report | None = None
    """The flow's report before anything is done. A failover has none."""
    may_end_soon: bool = False
    """The refusals can be over in some seconds."""
    opposite: OppositeFlow | None = None
    """The opposite flow, if there is one and its cluster answers."""


async def plan_switch(log: SwitchLog, opposite: OppositeFlow | None, options: SwitchOptions) -> SwitchPlan:
    """Look at everything that a switch depends on, and change nothing.

    Raises:
        CannotUse: A topic is not mirrored by the flow.
        SwitchRefused: The flow has nothing to switch, or copies by key.
        ClusterError: A cluster does not answer, or refuses.
        NewerVersion: A row is of a newer release.
    """
    began_ms = now_ms()
    settings, verb = log.settings, options.verb
    if unknown := unknown_topics(log.rows, options.topics):
        raise CannotUse(f"{settings.flow}: no topic called {' or '.join(unknown)} is mirrored by the flow")
    topics = selected_topics(log, options.topics)
    if not topics:
        await _require_all_found(log, options)
        if verb is not Verb.FAILBACK:
            raise SwitchRefused([RefusalCode.NO_TOPIC_TO_SWITCH.to_reason(flow=str(settings.flow))])
    if settings.data_plane.by_key:
        raise SwitchRefused([RefusalCode.SWITCH_BY_KEYS.to_reason(flow=str(settings.flow))])
    records_known = RecordsKnown.from_rows(log.rows, topics)  # no later than the losses
    reachable_rows, (refusals, blockers, report, source_note) = await asyncio.gather(
        _rows_if_reachable(opposite, verb), _refusals(log, options)
    )
    opposite_rows = reachable_rows or {}
    others = [row for row in (log.switch, _current_switch(opposite_rows)) if row is not None]
    for row in others:
        if row.phase in UNDER_WAY:
            raise SwitchRefused([under_way_refusal(row)])
    refusals += blockers
    opposite_was = "" if opposite is None else _desired_word(opposite.settings, opposite_rows)
    if verb is Verb.FAILBACK and not options.drill and not refusals:
        assert opposite is not None
        wanted = {settings.flow: _desired_word(settings, log.rows), opposite.settings.flow: opposite_was}
        refusals += await _failback_refusals(log, opposite, options, wanted)
    if Allowance.SOON not in options.allows and not options.drill and (soon := too_soon(others, now_ms())):
        refusals.append(soon)
    groups_ms = GroupReadings.from_rows(log.rows.values()).list_known_ms
    notes = [*_notes(settings, opposite, options)]
    if not topics:
        notes = [_nothing_to_bring_back(settings), *notes]
    if verb is Verb.FAILOVER:  # others ask the source in their steps
        source = settings.flow.source
        known_until = [source_note, records_known.sentence(source), groups_known_until(groups_ms, source)]
        notes = [*filter(None, known_until), *notes]
    hooks = {step for step in HOOKS if getattr(settings.switch, f"hook_{step}")}
    steps = planned_steps(verb, hooks=hooks, has_opposite=opposite is not None, drill=options.drill)
    states = [(str(step), WAITING, 0, 0, "") for step in steps]
    states[0] = (str(Step.CHECK), DONE, began_ms, now_ms(), CHECKED)
    row = Switch(
        id=uuid.uuid4().hex,
        verb=str(verb),
        by=options.by,
        began_ms=began_ms,
        topics=options.topics,
        drill=options.drill,
        cutoff_ms=options.cutoff_ms,
        rewind_groups=options.rewind_groups,
        diverged=options.diverged,
        allowed_loss=options.allowed_loss,
        allowed=tuple(sorted(options.allows)),
        opposite_was=opposite_was,
        opposite_paused=_paused_topics(opposite, opposite_rows, options.topics),
        last_done_ms=last_done_ms(log.switch),
        source_known_ms=records_known.least_ms,
        groups_known_ms=groups_ms,
        steps=tuple(states),
    )
    return SwitchPlan(
        row=row,
        refusals=tuple(refusals),
        notes=tuple(notes),
        report=report,
        may_end_soon=len(refusals) == len(blockers) and may_end_soon(blockers),
        opposite=None if reachable_rows is None else opposite,
    )


def _nothing_to_bring_back(settings: FlowSettings) -> str:
    """Return a note about a failback by a flow without topics, whose steps find no record."""
    source, target = settings.flow.source, settings.flow.target
    return (
        f"{source} has no topic that {settings.flow} mirrors, so nothing was written there that could come back. "
        f"Groups move to {target}, and the flows turn round"
    )


def _notes(settings: FlowSettings, opposite: OppositeFlow | None, options: SwitchOptions) -> Iterator[str]:
    """Yield what an operator should know beforehand of the opposite flow and of the producers."""
    source, target = settings.flow.source, settings.flow.target
    is_failover = options.verb is Verb.FAILOVER
    if opposite is None:
        yield f"the file has no flow {target}->{source}: what is written on {target} does not come back to {source}"
    elif is_failover:
        yield f"{opposite.settings.flow} goes on by itself when {source} is back, if it was not stopped"
    if not settings.switch.hook_fence and not is_failover and not options.drill and not options.cutoff_ms:
        yield "lockstep.switch.hook.fence is not set: stop the producers yourself, step ends waits for that"


async def _failback_refusals(
    log: SwitchLog, opposite: OppositeFlow, options: SwitchOptions, wanted: Mapping[Flow, str]
) -> list[Refusal]:
    """Return what speaks against coming back.

    Single topics are paused and resumed, and that has no effect in a flow that is stopped.

    Args:
        log: The flow.
        opposite: The opposite flow.
        options: The command line.
        wanted: The desired state of both flows.
    """
    from lockstep_ops.switch.failback_actions import ForwardFlow, undecided  # other switches start without it

    resting = [(flow, word) for flow, word in wanted.items() if word != "running"]
    if options.topics and resting:
        return [RefusalCode.FLOW_RESTS.to_reason(flow=str(flow), wanted=word) for flow, word in resting]
    clusters = SwitchClusters(opposite.settings, options.within_s, refused_s=REFUSED_S)
    try:
        diverged = await ForwardFlow(opposite, clusters, log, options.topics).diverged()
    except StepFailed as unknown:
        return [unknown.reason]
    return [undecided(opposite.settings, diverged)] if diverged and not options.diverged else []


async def _require_all_found(log: SwitchLog, options: SwitchOptions) -> None:
    """Check that the flow has found every topic of the source that it selects.

    The cluster may have been away, or the flow has just begun. A failover does without its source.

    Raises:
        SwitchRefused: Some are not found yet.
    """
    if options.verb is Verb.FAILOVER:
        return
    try:
        clusters = SwitchClusters(log.settings, options.within_s, refused_s=REFUSED_S)
        await clusters.require_found(log.rows, options.topics)
    except NotFoundYet as yet:
        raise SwitchRefused([yet.reason], may_end_soon=True) from yet


async def begin(log: SwitchLog, opposite: OppositeFlow | None, row: Switch) -> Switch:
    """Write the row of a new switch, and return it.

    Of two switches that begin at the same moment at most one goes on. A cluster that is gone is not waited for again.

    Args:
        log: The flow.
        opposite: The opposite flow of the plan.
        row: The switch.

    Raises:
        SwitchRefused: Another switch of this flow, or of its opposite, has begun since the plan was made.
        ClusterError: A cluster does not answer, or refuses.
    """
    await log.catch_up_now()
    present = log.switch
    if present is not None and present.phase in UNDER_WAY:
        raise SwitchRefused([under_way_refusal(present)])
    began = await log.begin(row)
    if began is None:
        raise SwitchRefused([under_way_refusal(log.switch or row)])
    try:
        # The opposite flow has a row of its own, on the other cluster. Each switch reads it after its own was written.
        opposite_switch = _current_switch(await _rows_if_reachable(opposite, Verb(row.verb)) or {})
        if opposite_switch is not None and opposite_switch.phase in UNDER_WAY:
            raise SwitchRefused([under_way_refusal(opposite_switch)])
    except (SwitchRefused, ClusterError):
        await log.write(replace(began, phase="aborted", ended_ms=now_ms()))
        raise
    return with_step(began, Step.CHECK, DONE, now_ms(), CHECKED)  # written with the row of the next step


async def _refusals(
    log: SwitchLog, options: SwitchOptions
) -> tuple[list[Refusal], tuple[Blocker, ...], Report | None, str]:
    """Return other refusals than blockers, the blockers, the flow's report, and a note about the source or ""."""
    if options.verb is Verb.FAILOVER:
        clusters = SwitchClusters(log.settings, options.within_s, refused_s=REFUSED_S)
        refusals, remaining, note = await _failover_refusals(log, clusters, options)
        return refusals, remaining, None, note
    report = await read_report(log.settings, REPORTED_WITHIN_S, followed=log)
    blockers = _about(report, log, options)
    if options.verb is Verb.FAILBACK and not options.drill:
        remaining = way_back_blockers(blockers, allows=options.allows)
    else:
        remaining = blocking(blockers, options.verb, allows=options.allows, rewind_groups=options.rewind_groups)
    return [], remaining, report, ""


async def _failover_refusals(
    log: SwitchLog, clusters: SwitchClusters, options: SwitchOptions
) -> tuple[list[Refusal], tuple[Blocker, ...], str]:
    """Return what speaks against the failover beside blockers, the blockers, and a note about the source or ""."""
    settings = log.settings
    source = settings.flow.source
    topics = selected_topics(log, options.topics)
    state = await clusters.source_state(topics)
    losses = known_loss(log.rows, topics)
    allowed_too = frozenset(Allowance) if options.drill else options.allows
    allowed = sum(count_losses(losses).values()) if options.drill else options.allowed_loss
    refusals: list[Refusal] = list(
        failover_refusals(losses, allowed, source=source, source_answers=state.answers, allows=allowed_too)
    )
    services = [name for name in SERVICES if settings.needs(name)]
    replicas = await describe_replicas(clusters.target, settings, services)
    report = build_report(
        settings.flow,
        log.rows,
        at_ms=now_ms(),
        services=services,
        replicas=replicas.counts,
        replicas_unknown=replicas.unknown,
        unreadable=log.unreadable,
        states=settings.states,
        by_key=settings.data_plane.by_key,
        limits=settings.switch_limits,
    )
    remaining = blocking(
        _about(report, log, options), options.verb, allows=allowed_too, rewind_groups=options.rewind_groups
    )
    return refusals, remaining, state.note(source)


def _about(report: Report, log: SwitchLog, options: SwitchOptions) -> tuple[Blocker, ...]:
    """Return the blockers of this switch, by what its steps can do about them."""
    blockers = about_topics(report.switch_blockers, log.rows, options.topics)
    reads_source = options.verb is not Verb.FAILOVER
    return tuple(with_obstacles(blockers, log.rows, options.topics, reads_source=reads_source))


async def _rows_if_reachable(opposite: OppositeFlow | None, verb: Verb) -> Mapping[str, Row] | None:
    """Return the rows of the opposite flow as they are now. They are on our source.

    A failover does without them: it gets None if the source does not answer.

    Raises:
        ClusterError: The source does not answer, or refuses.
        NewerVersion: A row is of a newer release.
    """
    if opposite is None:
        return {}
    if verb is not Verb.FAILOVER:
        return await _present_rows(opposite)
    try:
        await target_client(opposite.settings).require_open()
        async with asyncio.timeout(PROBED_WITHIN_S):
            return await _present_rows(opposite)
    except (ClusterUnreachable, TimeoutError):
        return None
    except ClusterError:
        return {}


async def _present_rows(opposite: OppositeFlow) -> Mapping[str, Row]:
    """Return the present rows of the flow, or none if it has never run."""
    try:
        return (await opposite.follow()).rows
    except TopicMissing:
        return {}


def _current_switch(rows: Mapping[str, Row]) -> Switch | None:
    row = rows.get(SWITCH_KEY)
    return row if isinstance(row, Switch) else None


def _paused_topics(opposite: OppositeFlow | None, rows: Mapping[str, Row], topics: Sequence[str]) -> tuple[str, ...]:
    if opposite is None:
        return ()
    wanted = DesiredStateView(rows, opposite.settings.states)
    return tuple(
        topic for topic in topics if wanted.phase_for(Scope(ScopeKind.TOPIC, topic)) is not DesiredPhase.RUNNING
    )


def _desired_word(settings: FlowSettings, rows: Mapping[str, Row]) -> str:
    wanted = DesiredStateView(rows, settings.states)
    return max(wanted.connector(connector) for connector in (Connector.SOURCE, Connector.CHECKPOINT)).word
