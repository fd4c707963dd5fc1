"""What of a flow does not work, by the rows of its state topic."""

import pytest

from lockstep_rules.switch.switch_readiness import FailingPart
from lockstep_runtime.state.desired_state import DesiredStateView
from lockstep_runtime.state.failing_parts import failing_parts, groups_unknown
from lockstep_state.commands.command_vocabulary import SERVICES
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    AclStatus,
    DesiredState,
    FlowPulse,
    MirroredTopic,
    Restarts,
    Row,
    SourceGroupsStatus,
)
from tests.support.reasons import reported
from tests.support.source_groups import groups_read_at

GROUPS_READ = groups_read_at(1)

SPENT = Restarts(owner="checkpoint-3", phase="failed", count=4, cause=reported("no memory"), asked=("",))
NO_CAUSE = ReasonCode.NO_CAUSE.to_reason(phase="failing")
DENIED = AclStatus(phase="not-permitted", cause=reported("no DESCRIBE"))
SILENT = FlowPulse(source="A", target="B", phase="failing", cause=reported("denied"))


def failing(*rows: Row, services: tuple[str, ...] = SERVICES) -> list[FailingPart]:
    by_key = {row.key(): row for row in rows}
    return list(failing_parts(by_key, DesiredStateView(by_key), services))


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (
            SPENT,
            FailingPart("service", "checkpoint", ReasonCode.RESTARTS_SPENT.because(reported("no memory"), count=4)),
        ),
        (DENIED, FailingPart("service", "acl-sync", reported("no DESCRIBE"))),
        (AclStatus(phase="failing"), FailingPart("service", "acl-sync", NO_CAUSE)),
        (SILENT, FailingPart("service", "heartbeat", reported("denied"))),
        (
            MirroredTopic(source_topic="t", target_topic="A.t", phase="failed"),
            FailingPart("topic", "t", ReasonCode.NO_CAUSE.to_reason(phase="failed")),
        ),
        (
            MirroredTopic(
                source_topic="t", target_topic="A.t", partitions=1, missing=2, cause=reported("not permitted")
            ),
            FailingPart(
                "topic",
                "t",
                ReasonCode.PARTITIONS_MISSING.because(
                    reported("not permitted"), partitions="partitions 1 to 2 are not copied", first=1, last=2
                ),
            ),
        ),
        (
            MirroredTopic(source_topic="t", target_topic="A.t", cause=reported("its configs: not permitted")),
            FailingPart("topic", "t", reported("its configs: not permitted")),
        ),
    ],
)
def test_row_about_a_failure_is_a_failing_part(row: Row, part: FailingPart) -> None:
    assert failing(row) == [part]


@pytest.mark.parametrize(
    "row",
    [
        AclStatus(phase="in-sync"),
        AclStatus(phase="no-authorizer"),
        AclStatus(phase="not-supported"),
        FlowPulse(source="A", target="B", phase="beating"),
        MirroredTopic(source_topic="t", target_topic="A.t"),
        MirroredTopic(source_topic="t", target_topic="A.t", phase="excluded", cause=reported("old")),
        Restarts(owner="checkpoint-3", phase="running", count=4),
        Restarts(owner="data-plane", subject="slot:0", phase="failed", asked=("",)),
    ],
)
def test_row_about_work_is_no_failing_part(row: Row) -> None:
    assert failing(row) == []


def test_service_that_was_asked_to_start_again_does_not_fail() -> None:
    assert failing(SPENT, DesiredState(scope="connector:MirrorCheckpointConnector", restart="r1")) == []


def test_services_without_work_in_the_flow_do_not_fail() -> None:
    assert failing(SPENT, DENIED, SILENT, services=("topic-sync", "data-plane")) == []


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (GROUPS_READ, NO_REASON),
        ((), ReasonCode.GROUPS_NOT_READ.to_reason()),
        (GROUPS_READ[1:], ReasonCode.GROUPS_NOT_READ.to_reason()),
        (
            (*GROUPS_READ[:-1], SourceGroupsStatus(share=5, phase="failing", cause=reported("no DESCRIBE"))),
            reported("no DESCRIBE"),
        ),
        ((SourceGroupsStatus(share=2, phase="failing"),), NO_CAUSE),
    ],
)
def test_groups_are_known_if_each_share_was_read(rows: tuple[SourceGroupsStatus, ...], reason: Reason) -> None:
    assert groups_unknown(rows) == reason
