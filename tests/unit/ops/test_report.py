"""The report of a flow, from the rows of its state topic."""

import json
from dataclasses import replace
from typing import Any

import pytest

from lockstep_cli.rendering.status import FEW
from lockstep_ops.formatting import ago, count_text, in_bytes, in_time
from lockstep_ops.status.report import AclLine, PausedPart, Trouble
from lockstep_ops.status.report_builder import build_report
from lockstep_ops.status.report_json import report_as_json
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    AclStatus,
    DesiredState,
    FlowPulse,
    GroupStatus,
    Leader,
    LegacyGroup,
    Restarts,
    Row,
    SlotStatus,
)
from tests.support import reasons
from tests.support.reports import FLOW, LIMITS, NOW, at_work, progress, reported, shown, topic

HALTED = (topic(), progress(phase="halted", reason="offsets 5 to 9 are gone"))
STOPPED = DesiredState(scope="connector:MirrorSourceConnector", phase="stopped")
SPENT = Restarts(owner="topic-sync", phase="failed", count=3, cause=reasons.reported("denied"), asked=("",))
WAITING = LegacyGroup(group="mm1", phase="waiting", cause=reasons.reported("mm1-0 at 10.0.0.1 is in it"))
GONE = reasons.reported("gone")


@pytest.mark.parametrize(
    ("rows", "facts", "troubles"),
    [
        ([], {"replicas": {"heartbeat": 0, "topic-sync": 1}}, [("heartbeat", "no replica of it runs")]),
        ([STOPPED], {"replicas": {"data-plane": 0, "topic-sync": 0}}, [("topic-sync", "no replica of it runs")]),
        ([SPENT], {}, [("topic-sync", "failed 3 times and waits for the command restart: denied")]),
        ([SPENT, DesiredState(scope="connector:MirrorSourceConnector", restart="7")], {}, []),
        ([WAITING], {}, [("legacy group mm1", "mm1-0 at 10.0.0.1 is in it")]),
        ([replace(WAITING, phase="copying", cause=NO_REASON)], {}, []),
        (
            [*HALTED, topic("u", phase="failed", reason="refused")],
            {},
            [("topic u", "refused"), ("partition t-0", "offsets 5 to 9 are gone")],
        ),
        ([topic(), progress(phase="paused")], {}, []),
        ([FlowPulse(source="A", target="B", phase="failing", cause=GONE)], {}, [("heartbeats", "gone")]),
        ([], {"unreadable": ("state row b'x': y",)}, [("state topic", "state row b'x': y")]),
    ],
)
def test_report_has_each_trouble_with_its_cause(
    rows: list[Row], facts: dict[str, Any], troubles: list[tuple[str, str]]
) -> None:
    assert [(trouble.what, trouble.why) for trouble in reported(*rows, **facts).troubles] == troubles


def test_states_are_those_of_the_rows() -> None:
    assert reported(topic(), progress(phase="paused")).partitions[0].state == "paused"
    assert reported(*HALTED).topics[0].halted == 1
    assert reported(FlowPulse(source="A", target="B", phase="beating")).heartbeat == "beating"
    slots = reported(*(SlotStatus(slot=n, phase="started") for n in (10, 2, 0))).slots
    assert [line.slot for line in slots] == [0, 2, 10], "by number"


def test_an_empty_flow_is_fine_and_has_every_service() -> None:
    report = reported()
    assert report.troubles == ()
    services = [line.service for line in report.services]
    assert services == ["topic-sync", "acl-sync", "data-plane", "checkpoint", "heartbeat"]
    assert {line.wanted for line in report.services} == {"running"}
    assert "0 topics, 0 partitions, 0 records behind: fine" in shown(report)


def test_services_without_work_are_left_out() -> None:
    report = build_report(FLOW, {}, at_ms=NOW, services=["topic-sync"], replicas={"topic-sync": 2}, limits=LIMITS)
    assert [(line.service, line.replicas) for line in report.services] == [("topic-sync", 2)]
    assert report.acls is None


def test_leaders_are_those_of_the_service_and_of_its_shares() -> None:
    rows = [Leader(service=name, instance=name, at_ms=5) for name in ("checkpoint-0", "checkpoint-5", "topic-sync")]
    lines = {line.service: [leader.label for leader in line.leaders] for line in reported(*rows).services}
    assert lines["checkpoint"] == ["checkpoint-0", "checkpoint-5"]
    assert lines["topic-sync"] == ["topic-sync"]
    assert lines["acl-sync"] == []


def test_lag_adds_up_in_records_and_is_the_longest_in_time() -> None:
    report = reported(
        topic(partitions=2),
        progress(lag_records=3, lag_ms=50),
        progress("t", 1, lag_records=4, lag_ms=20),
        ends={("t", 0): 13, ("t", 1): 14},
    )
    (line,) = report.topics
    assert (line.lag_records, line.lag_ms, line.begun) == (7, 50, 2)
    assert (report.lag_records, report.lag_ms) == (7, 50)


def test_partitions_without_progress_are_not_begun() -> None:
    report = reported(topic(partitions=3), progress())
    assert [line.phase for line in report.partitions] == ["copying", "not begun", "not begun"]
    assert report.troubles == ()


@pytest.mark.parametrize("phase", ["deleted", "excluded", "left-out"])
def test_topics_that_are_gone_count_nowhere(phase: str) -> None:
    halted = progress(phase="halted", reason="x", lag_records=5)
    report = reported(topic(phase=phase), halted)
    assert report.partitions == ()
    assert (report.lag_records, report.troubles) == (0, ())
    assert report.topics[0].phase == phase


def test_report_of_a_left_out_topic_has_its_rule_and_no_trouble() -> None:
    left_out = replace(topic("B.t", partitions=0, phase="left-out"), note="its name says that it is a copy of t of B")
    report = reported(left_out)
    assert report.troubles == ()
    assert report.partitions == ()
    assert "left-out" in shown(report)
    assert "its name says that it is a copy of t of B" in shown(report)
    assert report_as_json(report, ["topics"])["topics"][0]["note"] == left_out.note


@pytest.mark.parametrize(
    ("missing", "reason"), [(2, "partitions 1 to 2 are not copied: refused"), (0, "its configs: refused")]
)
def test_report_of_a_mirrored_topic_with_a_reason_is_trouble(missing: int, reason: str) -> None:
    row = replace(topic(reason=reason.rpartition("copied: ")[2]), missing=missing)
    report = reported(row, progress(upstream=19), *at_work(("t", 0)), ends={("t", 0): 20})
    assert [(trouble.what, trouble.why) for trouble in report.troubles] == [("topic t", reason)]
    assert report.troubles[0].code == report.topics[0].cause.code != "", "lockstep explain knows the code"
    assert report.switch_ready is False
    assert [line.state for line in report.partitions] == ["copying", *["not begun"] * missing]


def test_report_shows_a_wanted_phase_that_is_held_back() -> None:
    report = reported(
        topic(partitions=2),
        progress(),
        progress("t", 1, phase="halted", reason="x"),
        DesiredState(scope="topic:t", phase="paused"),
    )
    assert report.topics[0].wanted == "paused"
    assert [line.state for line in report.partitions] == ["paused", "halted"]
    assert report.held_back == (PausedPart("topic:t", "paused"),)
    assert "topic:t is paused" in shown(report)


def test_a_slot_holds_its_partitions_back() -> None:
    report = reported(
        topic(), progress(slot=3), SlotStatus(slot=3, phase="started"), DesiredState(scope="slot:3", phase="stopped")
    )
    assert report.partitions[0].state == "stopped"
    assert report.slots[0].wanted == "stopped"


def test_groups_say_how_ready_they_are() -> None:
    report = reported(
        GroupStatus(group="a", phase="translated", exact=2, synced=True),
        GroupStatus(group="b", phase="translated", exact=1, behind=(("A.t", 0, 7), ("A.t", 1, 5)), more_behind=2),
        GroupStatus(
            group="c", phase="waiting", waiting=(("A.t", 0, "y"), ("A.t", 1, "x"), ("A.t", 2, "x")), more_waiting=1
        ),
        GroupStatus(group="d", phase="failing", reason="denied"),
    )
    assert [(g.group, g.readiness, g.exact, g.behind, g.records, g.waiting, g.why) for g in report.groups] == [
        ("a", "exact", 2, 0, 0, 0, ""),
        ("b", "behind", 1, 4, 22, 0, ""),
        ("c", "waiting", 0, 0, 0, 4, "x"),
        ("d", "failing", 0, 0, 0, 0, ""),
    ]
    assert report.troubles == (Trouble("group d", "denied", "unknown"),)


CONTESTED = ReasonCode.CONTESTED.to_reason(flow="C->B", offset=9)


@pytest.mark.parametrize(
    ("fields", "readiness", "fine", "troubles"),
    [
        ({}, "exact", True, 0),
        ({"ahead": (("A.t", 0, 990, 500, "ahead-on-target"),), "exact": 0}, "ahead on target", False, 0),
        ({"ahead": (("A.t", 0, 900, 100, "rewound-on-source"),), "exact": 1}, "rewound on source", False, 0),
        ({"held": "in-use", "held_reason": "it has members on the target"}, "in use on target", False, 0),
        ({"held": "refused", "held_reason": "denied"}, "refused", False, 1),
        ({"held_cause": CONTESTED, "held_reason": "A.t-0: two flows", "synced": False}, "contested", False, 0),
    ],
)
def test_report_of_a_group_that_would_skip_records_is_not_exact(
    fields: dict[str, object], readiness: str, fine: bool, troubles: int
) -> None:
    row = replace(GroupStatus(group="g", phase="translated", exact=1, synced=True), **fields)  # type: ignore[arg-type] # by name
    report = reported(topic(), progress(), row, *at_work(("t", 0)), ends={("t", 0): 10})
    (line,) = report.groups
    assert (line.readiness, report.fine, len(report.troubles)) == (readiness, fine, troubles)
    assert line.synced is (readiness == "exact")
    assert bool(report.groups_held) is not fine
    text = shown(report, "groups")
    assert readiness in text
    if skips := row.ahead:
        assert f"A.t-0 has offset {skips[0][2]} on the target, the translated offset is {skips[0][3]}" in text
    if row.held_reason:
        assert row.held_reason in text


@pytest.mark.parametrize(
    ("phase", "trouble"), [("in-sync", ""), ("no-authorizer", ""), ("not-permitted", "why"), ("failing", "why")]
)
def test_report_of_acls_without_permission_is_trouble(phase: str, trouble: str) -> None:
    report = reported(AclStatus(phase=phase, cause=reasons.reported("why"), copied=1, left_out=2))
    assert report.acls == AclLine(phase, 1, 2, reason="why", cause=reasons.reported("why") if trouble else NO_REASON)
    assert ("left out; why" in shown(report)) is not bool(trouble), "once is enough"
    assert bool(report.troubles) is bool(trouble)


def test_report_shows_notes_of_acls() -> None:
    assert "1 copied, 0 left out; principals come from tokens" in shown(
        reported(AclStatus(phase="in-sync", copied=1, notes=("principals come from tokens",)))
    )
    report = reported(
        AclStatus(
            phase="in-sync",
            copied=4,
            owned=3,
            revoked=1,
            left_out=3,
            left_out_for=(("too-wide", 1), ("write", 2)),
            left_out_named=(("TOPIC t", "too-wide"),),
            notes=("1 to take back",),
        )
    )
    assert (
        "in-sync, 4 copied, 3 ours, 1 revoked and still there, 3 left out (1 too-wide, 2 write); 1 to take back"
        in shown(report)
    )
    acl_line = report_as_json(report)["acls"]
    assert (acl_line["owned"], acl_line["revoked"], acl_line["left_out_named"]) == (3, 1, (("TOPIC t", "too-wide"),))


# -- shown ------------------------------------------------------------------------------------------------------------


def test_two_thousand_partitions_come_to_a_few_lines() -> None:
    partitions = [(f"t{number}", partition) for number in range(200) for partition in range(10)]
    rows: list[Row] = [*(topic(f"t{number}", 10) for number in range(200)), *(progress(*tp) for tp in partitions)]
    text = shown(reported(*rows, *at_work(*partitions), ends=dict.fromkeys(partitions, 10)))
    assert len(text.splitlines()) < 25
    assert "200 topics, 2,000 partitions, 0 records behind: fine" in text
    assert "2,000 copying" in text


def test_report_cuts_troubles_and_counts_the_rest() -> None:
    rows: list[Row] = [
        topic(partitions=FEW + 5),
        *(progress("t", n, phase="halted", reason="x") for n in range(FEW + 5)),
    ]
    report = reported(*rows)
    assert f"and {count_text(5, 'trouble')} more" in shown(report)
    assert shown(report, only_trouble=True).count("\npartition t-") == FEW + 5


def test_sections_show_every_line_or_those_in_trouble() -> None:
    report = reported(topic(partitions=2), progress(), progress("t", 1, phase="halted", reason="why it halted"))
    assert "t-0" in shown(report, "partitions")
    only = shown(report, "partitions", only_trouble=True)
    assert "t-0" not in only
    assert "why it halted" in only
    assert "no slots" in shown(report, "slots")


def test_programs_get_the_same_lines() -> None:
    report = reported(topic(partitions=2), progress(), progress("t", 1, phase="halted", reason="x"))
    whole = json.loads(json.dumps(report_as_json(report)))
    assert (whole["flow"], whole["fine"], len(whole["partitions"]), len(whole["services"])) == ("A->B", False, 2, 5)
    body = report_as_json(report, ["partitions"], only_trouble=True)
    assert [line["partition"] for line in body["partitions"]] == [1]
    assert "topics" not in body


def test_names_with_brackets_are_shown_as_they_are() -> None:
    assert "[red]x" in shown(reported(GroupStatus(group="[red]x", phase="translated")))


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (2_400, "2.4 s"), (59_000, "59 s"), (90_000, "1.5 min"), (7_200_000, "2.0 h")],
)
def test_times_in_their_largest_unit(ms: int, text: str) -> None:
    assert in_time(ms) == text


def test_numbers_as_people_read_them() -> None:
    assert [count_text(1, "topic"), count_text(2000, "topic"), count_text(0, "entry", "entries")] == [
        "1 topic",
        "2,000 topics",
        "0 entries",
    ]
    assert [in_bytes(5), in_bytes(1536), in_bytes(3 << 30)] == ["5 B", "1.5 KiB", "3.0 GiB"]
    assert [ago(0, 5), ago(9_000, 5_000), ago(1_000, 3_000)] == ["", "0 ms ago", "2.0 s ago"]


UNFIT = "cluster A speaks no Fetch that this release knows"
FAILING = {"t-0": UNFIT, "x": "y"}


@pytest.mark.parametrize(
    ("failing", "reason", "troubles"), [(FAILING, UNFIT, [f"t-0: {UNFIT}, and 1 more"]), ({}, "", [])]
)
def test_trouble_of_a_slot_is_that_of_its_partitions_too(
    failing: dict[str, str], reason: str, troubles: list[str]
) -> None:
    causes = tuple((part, reasons.reported(text)) for part, text in failing.items())
    slot = SlotStatus(slot=0, phase="started", partitions=1, at_ms=NOW, causes=causes)
    report = reported(topic(), at_work(("t", 0))[0], slot)
    (line,) = report.partitions
    assert line.phase == "not begun"
    assert line.trouble == reason
    assert not reason or line.why == reason
    assert [trouble.why for trouble in report.troubles if trouble.what == "slot 0"] == troubles
