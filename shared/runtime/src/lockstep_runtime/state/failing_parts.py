"""Parts of a flow that do not work, as the rows of its state topic show. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from lockstep_rules.switch.switch_readiness import FailingPart
from lockstep_runtime.state.desired_state import DesiredStateView
from lockstep_runtime.state.leadership import label_service
from lockstep_runtime.util.auto_restart import is_spent
from lockstep_state.commands.command_vocabulary import Scope, service_connector
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    AclStatus,
    FlowPulse,
    MirroredTopic,
    Restarts,
    Row,
    SourceGroupsStatus,
)

CAN_FAIL = (AclStatus, FlowPulse, MirroredTopic)


def failing_parts(
    rows: Mapping[str, Row], desired_state: DesiredStateView, services: Collection[str]
) -> Iterator[FailingPart]:
    """Yield services that wait for a restart, and failing ACLs, heartbeats and topics.

    Args:
        rows: The rows of the state topic, by key.
        desired_state: The desired states in them.
        services: Services that have work in the flow. One without a replica writes no row.
    """
    restarts = [row for row in rows.values() if isinstance(row, Restarts)]
    for service in services:
        scope = Scope.for_connector(service_connector(service))
        if spent := failure_reason(restarts, desired_state, service, "service", (scope,)):
            yield FailingPart("service", service, spent)
    for row in sorted((row for row in rows.values() if isinstance(row, CAN_FAIL)), key=Row.key):
        match row:
            case AclStatus() if "acl-sync" in services and (cause := acl_failure(row)):
                yield FailingPart("service", "acl-sync", cause)
            case FlowPulse() if "heartbeat" in services and row.phase == "failing":
                yield FailingPart("service", "heartbeat", row.cause or _without_reason(row.phase))
            case MirroredTopic() if cause := topic_failure(row):
                yield FailingPart("topic", row.source_topic, cause)


def failure_reason(
    rows: Iterable[Restarts], desired_state: DesiredStateView, service: str, subject: str, *scopes: tuple[Scope, ...]
) -> Reason:
    """Return why the service, or a slot of it, waits for a restart by an operator; no reason if it does not."""
    for row in rows:
        if (label_service(row.owner), row.subject) != (service, subject):
            continue
        if any(is_spent(row, desired_state.restarts(*scope_set)) for scope_set in scopes):
            return ReasonCode.RESTARTS_SPENT.because(row.cause, count=row.count)
    return NO_REASON


def acl_failure(row: AclStatus) -> Reason:
    """Return why ACLs are not copied, though they should be; no reason if they are, or need not be."""
    return (row.cause or _without_reason(row.phase)) if row.phase in ("failing", "not-permitted") else NO_REASON


def _without_reason(phase: str) -> Reason:
    return ReasonCode.NO_CAUSE.to_reason(phase=phase)


def groups_unknown(rows: Iterable[SourceGroupsStatus]) -> Reason:
    """Return why not all consumer groups of the source are known; no reason if each share was read, and can be."""
    by_share = {row.share: row for row in rows}
    for _, row in sorted(by_share.items()):
        if row.phase != "read":
            return row.cause or _without_reason(row.phase)
    every_share = by_share.keys() >= set(range(COMMANDS_PARTITIONS))
    return NO_REASON if every_share else ReasonCode.GROUPS_NOT_READ.to_reason()


def topic_failure(row: MirroredTopic) -> Reason:
    """Return why a topic, or a part of it, is not mirrored; no reason if all of it is, or need not be.

    The row of a mirrored topic has a reason if the target lacks partitions, or if its configs fail. It also has one if
    a cluster does not describe the topic any more.
    """
    if row.phase == "failed":
        return row.cause or _without_reason(row.phase)
    if row.phase != "mirrored":
        return NO_REASON
    if not row.missing:
        return row.cause
    missing = row.missing_partitions
    cause = row.cause or ReasonCode.TARGET_LACKS_PARTITIONS.to_reason()
    return ReasonCode.PARTITIONS_MISSING.because(
        cause, partitions=describe_missing(missing), first=missing[0], last=missing[-1]
    )


def describe_missing(partitions: range) -> str:
    """Return in words that these partitions, one at least, are not copied."""
    if len(partitions) == 1:
        return f"partition {partitions[0]} is not copied"
    return f"partitions {partitions[0]} to {partitions[-1]} are not copied"
