"""Readiness of a flow to switch, in its report."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_ops.status.readiness import blockers_as_json, blockers_without_rows
from lockstep_ops.status.report import Report
from lockstep_ops.status.report_builder import build_report
from lockstep_ops.status.report_json import report_as_json
from lockstep_state.commands.command_vocabulary import SERVICES
from lockstep_state.rows.state_rows import (
    AclStatus,
    DesiredState,
    FlowPulse,
    GroupStatus,
    Restarts,
    Row,
    SlotStatus,
    SourceGroupsStatus,
)
from tests.support import reasons
from tests.support.reports import FLOW, GROUPS_READ, LIMITS, NOW, at_work, progress, reported, shown, topic
from tests.support.source_groups import groups_read_at

COPIED = (topic(), progress(upstream=19), *at_work(("t", 0)))
GROUP = GroupStatus(group="mail", phase="translated", synced=True, exact=1, positions=(("A.t", 0, 9, 9),))


def of_copied(*rows: Row, **facts: Any) -> Report:
    """Of a flow whose only partition is at its end."""
    return reported(*COPIED, *rows, **{"ends": {("t", 0): 20}, **facts})


R = reasons.reported("r")


def blocking(report: Report) -> list[tuple[str, str]]:
    return [(blocker.reason.word, blocker.subject) for blocker in report.switch_blockers if blocker.blocks]


def test_flow_at_its_end_is_ready_to_switch() -> None:
    report = of_copied(GROUP)
    assert report.switch_ready is True
    assert "\nready to switch: yes\n" in shown(report)
    body = report_as_json(report)
    assert (body["switch_ready"], body["switch_blockers"]) == (True, [])


def test_first_reason_is_shown_and_the_others_are_counted() -> None:
    report = of_copied(replace(GROUP, synced=False), DesiredState(scope="topic:t", phase="paused"))
    assert report.switch_ready is False
    assert "\nready to switch: no: topic:t is paused (and 1 more)\n" in shown(report)
    assert "ready to switch: no" in shown(report, "topics", only_trouble=True)
    assert report_as_json(report, ["topics"], only_trouble=True)["switch_blockers"] == [
        {
            "reason": "paused",
            "subject": "topic:t",
            "text": "topic:t is paused",
            "blocks": True,
            "cause": {"code": "", "details": {}},
            "details": {"wanted": "paused"},
        },
        {
            "reason": "group-waiting",
            "subject": "mail",
            "text": "group mail waits: its offsets are not written to the target yet",
            "blocks": True,
            "cause": {"code": "", "details": {}},
            "details": {"written": 0},
        },
    ]


def test_note_is_shown_behind_yes() -> None:
    report = of_copied(DesiredState(scope="connector:MirrorHeartbeatConnector", phase="stopped"))
    assert report.switch_ready is True
    assert "\nready to switch: yes; note: connector:MirrorHeartbeatConnector is stopped\n" in shown(report)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        pytest.param(of_copied(ends={}), ("lag-unknown", "t-0"), id="lag unknown"),
        pytest.param(of_copied(troubles={"A": "refused"}, ends={}), ("source-unreachable", "A"), id="source away"),
        pytest.param(of_copied(replicas={"checkpoint": 0}), ("service-failing", "checkpoint"), id="no replica"),
        pytest.param(
            of_copied(replicas_unknown=["checkpoint"]), ("service-failing", "checkpoint"), id="replicas unknown"
        ),
        pytest.param(
            of_copied(Restarts(owner="topic-sync", phase="failed", count=3, cause=R, asked=("",))),
            ("service-failing", "topic-sync"),
            id="spent",
        ),
        pytest.param(of_copied(AclStatus(phase="failing", cause=R)), ("service-failing", "acl-sync"), id="ACLs"),
        pytest.param(of_copied(topic("u", phase="failed", reason="r")), ("topic-failed", "u"), id="topic"),
        pytest.param(
            of_copied(topic("u"), progress("u", phase="halted", reason="r")), ("partition-halted", "u-0"), id="halted"
        ),
        pytest.param(of_copied(topic("u")), ("partition-not-copying", "u-0"), id="not begun"),
        pytest.param(
            of_copied(DesiredState(scope="connector:MirrorSourceConnector", phase="stopped")),
            ("stopped", "connector:MirrorSourceConnector"),
            id="stopped",
        ),
        pytest.param(reported(), ("nothing-copied", ""), id="empty"),
    ],
)
def test_report_that_is_not_ready_names_the_reason(report: Report, reason: tuple[str, str]) -> None:
    assert blocking(report)[0] == reason
    assert report.switch_ready is False


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        ((), "the checkpoint service has not read them yet"),
        (GROUPS_READ[1:], "the checkpoint service has not read them yet"),
        ((*GROUPS_READ, SourceGroupsStatus(share=2, phase="failing", cause=reasons.reported("denied"))), "denied"),
    ],
)
def test_flow_whose_groups_are_unknown_is_not_ready_nor_fine(read: tuple[Row, ...], cause: str) -> None:
    report = of_copied(groups_read=read)
    assert blocking(report) == [("groups-unknown", "")]
    assert f"no: the consumer groups of the source are not known: {cause}\n" in shown(report)
    assert not report.fine
    assert [(trouble.what, trouble.why) for trouble in report.troubles] == [("groups", cause)]
    paused = of_copied(DesiredState(scope="connector:MirrorCheckpointConnector", phase="paused"), groups_read=read)
    assert not paused.switch_ready
    assert not paused.troubles, "an operator wants that"
    absent = of_copied(groups_read=read, replicas={"checkpoint": 0})
    assert [trouble.what for trouble in absent.troubles] == ["checkpoint"], "the cause is shown"


LIMIT_MS = LIMITS.max_groups_age_ms
GROUPS_OLD = "no: the consumer groups of the source were not read for 10 s of the source's time"
GROUPS_UNDATED = "no: up to which moment the consumer groups of the source were read is not known"


@pytest.mark.parametrize(("read_ms", "words"), [(NOW - LIMIT_MS - 1, GROUPS_OLD), (0, GROUPS_UNDATED)])
def test_flow_whose_groups_were_read_too_long_ago_is_not_ready(read_ms: int, words: str) -> None:
    assert of_copied(groups_read=groups_read_at(NOW - LIMIT_MS)).switch_ready
    report = of_copied(groups_read=groups_read_at(read_ms))
    assert blocking(report) == [("groups-stale", "")]
    assert words in shown(report)


@pytest.mark.parametrize(
    ("pause_ms", "heard_ago_ms", "ready"),
    [
        (0, 15_000, True),
        (0, 16_000, False),
        (5_000, 15_000, True),
        (9_000, 27_000, True),
        (9_000, 28_000, False),
        (90_000, 61_000, False),
    ],
)
def test_flow_whose_slot_speaks_seldom_is_ready_as_long(pause_ms: int, heard_ago_ms: int, ready: bool) -> None:
    status = SlotStatus(slot=0, phase="started", partitions=1, at_ms=NOW - heard_ago_ms, pause_ms=pause_ms)
    assert of_copied(status).switch_ready is ready


def test_flow_without_checkpoints_is_not_ready_and_ignores_old_rows() -> None:
    services = [service for service in SERVICES if service not in ("checkpoint", "heartbeat")]
    rows = (
        replace(GROUP, phase="failing", cause=reasons.reported("of old")),
        FlowPulse(source="A", target="B", phase="failing", cause=reasons.reported("of old")),
    )
    limits = replace(LIMITS, syncs_groups=False, reads_groups=False)
    report = of_copied(*rows, services=services, limits=limits, groups_read=())
    assert blocking(report) == [("groups-not-synced", "")]
    assert report.fine
    assert (report.groups, report.heartbeat) == ((), "")


def test_records_read_again_of_a_long_list_are_at_most_so_many() -> None:
    behind = tuple((f"A.t{number}", 0, 200 - number) for number in range(50))
    (line,) = of_copied(replace(GROUP, behind=behind, more_behind=150)).groups
    assert (line.behind, line.records) == (200, sum(200 - number for number in range(50)) + 150 * 151)


def test_lag_within_the_limit_of_the_file_is_ready() -> None:
    rows = (topic(), progress(upstream=14, lag_records=5, lag_ms=30_000), *at_work(("t", 0)))
    assert blocking(reported(*rows, ends={("t", 0): 20})) == [("lag", "t-0")]
    patient = replace(LIMITS, max_lag_ms=30_000)
    assert reported(*rows, ends={("t", 0): 20}, limits=patient).switch_ready is True


def test_failing_heartbeats_are_a_note() -> None:
    report = of_copied(FlowPulse(source="A", target="B", phase="failing", cause=R))
    assert report.switch_ready is True
    assert "note: heartbeat fails: r" in shown(report)


def test_members_on_the_target_are_named_in_the_line() -> None:
    row = replace(GROUP, held="in-use")
    report = of_copied(row, members={"mail": ("app-1 at 10.0.0.1",)})
    assert "no: group mail has members on the target: app-1 at 10.0.0.1\n" in shown(report)
    both_ways = replace(LIMITS, both_ways=True)
    assert of_copied(row, limits=both_ways).switch_ready is True


def test_flow_that_copies_nothing_by_the_file_has_no_readiness() -> None:
    report = build_report(FLOW, {}, at_ms=NOW, services=["heartbeat"], limits=LIMITS)
    assert report.switch_ready is None
    assert report.switch_blockers == ()
    assert "ready to switch" not in shown(report)
    assert report_as_json(report)["switch_ready"] is None


@pytest.mark.parametrize(("never_run", "reason"), [(True, "nothing-copied"), (False, "target-unreachable")])
def test_flow_whose_rows_cannot_be_read_has_one_blocker(never_run: bool, reason: str) -> None:
    (blocker,) = blockers_as_json(blockers_without_rows(FLOW, "no answer", never_run=never_run))
    assert (blocker["reason"], blocker["blocks"]) == (reason, True)
