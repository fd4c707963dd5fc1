"""The blockers of a switch of clients to the target, by the lines of a flow's report. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lockstep_ops.status.report import COPIES, Report
from lockstep_rules.switch.switch_readiness import (
    FailingPart,
    SwitchFacts,
    SwitchLimits,
    SwitchPartition,
    find_blockers,
)
from lockstep_rules.switch.switch_sentences import format_blocker
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import GroupStatus


def blockers_in(
    report: Report,
    flow: Flow,
    *,
    groups: Sequence[GroupStatus],
    groups_unknown: Reason,
    groups_age_ms: int | None,
    services: Mapping[str, Reason],
    away: Mapping[str, str],
    members: Mapping[str, Sequence[str]],
    limits: SwitchLimits,
) -> tuple[Blocker, ...]:
    """Return what keeps the flow from being ready. It is empty if the flow copies nothing by the file.

    Args:
        report: The flow's report.
        flow: The flow.
        groups: The groups' rows.
        groups_unknown: Why the groups are not known, if so.
        groups_age_ms: The age of what is known of the groups.
        services: Why services fail, by name.
        away: Why a cluster did not answer, by alias.
        members: The members of groups on the target, as far as they are known.
        limits: What has to hold before a switch.
    """
    if not any(line.service == COPIES for line in report.services):
        return ()
    facts = SwitchFacts(
        partitions=[
            SwitchPartition(line.topic, line.partition, line.state, line.lag_records, line.lag_ms, line.delay_ms)
            for line in report.partitions
        ],
        groups=groups,
        groups_unknown=groups_unknown,
        groups_age_ms=groups_age_ms,
        resting=[(part.scope, part.wanted) for part in report.held_back],
        failing=list(_failing(report, flow, services, away)),
        members=members,
    )
    return find_blockers(facts, limits)


def _failing(
    report: Report, flow: Flow, services: Mapping[str, Reason], away: Mapping[str, str]
) -> Iterator[FailingPart]:
    for alias, sentence in away.items():
        yield FailingPart("source" if alias == flow.source else "target", alias, _reported(sentence))
    for service, reason in services.items():
        yield FailingPart("service", service, reason)
    if report.acls is not None and report.acls.cause:
        yield FailingPart("service", "acl-sync", report.acls.cause)
    for trouble in report.troubles:
        if trouble.what == "heartbeats" and trouble.why:
            yield FailingPart("service", "heartbeat", _reported(trouble.why))
    for topic in report.topics:
        if topic.cause:
            yield FailingPart("topic", topic.topic, topic.cause)


def _reported(text: str) -> Reason:
    return ReasonCode.REPORTED.to_reason(text=text)


def blockers_without_rows(flow: Flow, trouble: str, *, never_run: bool) -> tuple[Blocker, ...]:
    """Return the blockers of a flow whose state topic cannot be read."""
    if never_run:
        return (Blocker.with_details(SwitchReason.NOTHING_COPIED, "", {"never_run": 1}),)
    return find_blockers(
        SwitchFacts(failing=(FailingPart("target", flow.target, _reported(trouble)),)),
        SwitchLimits(max_lag_ms=0, syncs_groups=True),
    )


def blockers_as_json(blockers: Iterable[Blocker]) -> list[dict[str, Any]]:
    """Return the blockers as JSON values. The reason is a word of `docs/reference/switch.md`."""
    return [
        {"reason": blocker.reason.word, "subject": blocker.subject, "text": format_blocker(blocker)}
        | {"blocks": blocker.blocks, "cause": blocker.cause.to_json(), "details": dict(blocker.details)}
        for blocker in blockers
    ]
