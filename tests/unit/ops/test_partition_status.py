"""`lockstep status` of a partition in every state: its lag, and whether all is fine."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_ops.status.report import Trouble
from lockstep_ops.status.report_json import report_as_json
from lockstep_rules.selection_count import SelectionCount
from lockstep_state.rows.state_rows import DesiredState, Row, SourceEnds, SourceGroupsStatus
from tests.support.reports import NOW, at_work, progress, reported, shown, topic


def test_status_after_a_first_start_counts_all_records_as_lag() -> None:
    """200,000 records wait, no slot has begun: topic-sync may not even have written its rows."""
    ends = {("t", 0): 120_000, ("t", 1): 80_000}
    for rows in ((), (topic(partitions=2),), (topic(partitions=2), *at_work(*ends))):
        report = reported(*rows, ends=ends, selected={"t": 2})
        assert (report.lag_records, report.fine, report.troubles) == (200_000, False, ())
        assert report.not_copying == {"not begun": 2}
        assert "2 partitions, 200,000 records behind: 2 not begun" in shown(report)


def test_status_with_an_unreachable_source_has_unknown_lag() -> None:
    report = reported(topic(), progress(), *at_work(("t", 0)), troubles={"A": "unreachable"})
    assert report.troubles == (Trouble("cluster A", "unreachable"),)
    assert (report.lag_records, report.lag_at_least, report.lag_unknown, report.lag_ms) == (None, 0, 1, None)
    body = json.loads(json.dumps(report_as_json(report)))
    assert (body["fine"], body["lag_records"], body["partitions"][0]["lag_records"]) == (False, None, None)
    assert "of 1 partition it is unknown" in shown(report)


@pytest.mark.parametrize(
    ("fields", "lag"),
    [
        ({"case": "in-doubt"}, None),
        ({"case": "target-truncated"}, None),
        ({"case": "source-recreated"}, 10),
        ({"case": "target-recreated"}, 10),
        ({"case": "refused"}, 0),
    ],
)
def test_a_halted_partition_is_behind_by_what_its_case_leaves_known(fields: dict[str, object], lag: int | None) -> None:
    halted = progress("t", 0, phase="halted", reason="x", lag_records=0, **fields)
    report = reported(topic(), halted, *at_work(("t", 0)), ends={("t", 0): 10})
    assert (report.lag_records, report.fine) == (lag, False)


def test_a_partition_of_a_silent_slot_or_of_none_is_not_copied() -> None:
    ends = {("t", 0): 10}
    for slot, state in (((), "unassigned"), (at_work(("t", 0), heard_ms=NOW - 30_000), "silent")):
        report = reported(topic(), progress(), *slot, ends=ends)
        assert (report.not_copying, report.lag_records, report.fine) == ({state: 1}, 0, False)
        assert report.troubles == ()
    frozen = reported(topic(), progress(), *at_work(("t", 0), heard_ms=NOW - 61_000), ends=ends)
    assert [trouble.what for trouble in frozen.troubles] == ["slot 0"]
    ahead = reported(topic(), progress(), *at_work(("t", 0), heard_ms=NOW + 3_600_000), ends=ends)
    assert ahead.not_copying == {"silent": 1}, "a clock that is ahead does not keep a dead slot alive"


def test_partition_that_does_not_move_between_two_reads_is_stalled() -> None:
    old = progress(at_ms=NOW - 60_000, lag_records=0)
    rows = topic(), old, *at_work(("t", 0))
    assert reported(*rows, ends={("t", 0): 30}, earlier={("t", 0): 20}).not_copying == {"stalled": 1}
    rest = reported(*rows, ends={("t", 0): 30}, earlier={("t", 0): 10})
    assert (rest.not_copying, rest.lag_records, rest.fine) == ({}, 20, True)


def test_passed_over_records_are_not_counted_as_lag() -> None:
    row = progress(quarantined=2, given_up=30, target_lost=1)
    report = reported(topic(), row, *at_work(("t", 0)), ends={("t", 0): 10})
    assert (report.lag_records, report.passed_over, report.topics[0].passed_over) == (0, 33, 33)
    assert "2 quarantined, 30 given up, 1 lost on the target" in shown(report)


@pytest.mark.parametrize(
    ("rows", "ends", "lag"),
    [
        pytest.param([topic(phase="failed", reason="refused")], {("t", 0): 70}, 70, id="topic cannot be created"),
        pytest.param(
            [replace(topic(partitions=1), missing=1), progress(), *at_work(("t", 0))],
            {("t", 0): 10, ("t", 1): 5},
            5,
            id="partition that the target lacks",
        ),
    ],
)
def test_partitions_without_a_copy_are_behind_by_all_they_hold(
    rows: list[Row], ends: dict[tuple[str, int], int], lag: int
) -> None:
    report = reported(*rows, ends=ends)
    assert (report.lag_records, report.not_copying) == (lag, {"not begun": 1})


@settings(max_examples=60)
@given(
    phase=st.sampled_from(["none", "copying", "halted", "paused", "stopped"]),
    case=st.sampled_from(["", "in-doubt", "source-recreated", "target-truncated", "refused"]),
    topics=st.sampled_from(["mirrored", "failed", "selected"]),
    end=st.none() | st.integers(0, 40),
    target_end=st.none() | st.integers(0, 12),
    heard=st.none() | st.integers(0, 120_000),
    wanted=st.sampled_from(["", "running", "paused", "stopped"]),
    age=st.integers(0, 120_000),
    ids=st.sampled_from([("", ""), ("s", "t"), ("s2", "t"), ("s", "t2")]),
)
def test_status_is_fine_only_with_all_partitions_copying_and_lag_known(
    phase: str,
    case: str,
    topics: str,
    end: int | None,
    target_end: int | None,
    heard: int | None,
    wanted: str,
    age: int,
    ids: tuple[str, str],
) -> None:
    rows: list[Row] = []
    if topics != "selected":
        rows.append(replace(topic(phase=topics), source_topic_id="s", target_topic_id="t"))
    if phase != "none":
        stopped = case if phase == "halted" else ""
        row = progress(phase=phase, case=stopped, at_ms=NOW - age, downstream=9)
        rows.append(replace(row, source_topic_id=ids[0], target_topic_id=ids[1]))
    if heard is not None:
        rows += at_work(("t", 0), heard_ms=NOW - heard)
    if wanted:
        rows.append(DesiredState(scope="partition:t-0", phase=wanted))
    report = reported(
        *rows,
        ends={} if end is None else {("t", 0): end},
        target={} if target_end is None else {("A.t", 0): target_end},
        selected={"t": 1},
    )
    (line,) = report.partitions
    copies = phase == "copying" and topics == "mirrored" and wanted in ("", "running") and ids[0] != "s2"
    copies = copies and ids[1] != "t2" and heard is not None and heard <= 15_000
    is_known = end is not None and (phase == "none" or target_end is None or target_end >= 10 or "2" in "".join(ids))
    assert not report.fine or (copies and is_known and line.lag_records is not None)
    assert report.fine == shown(report).splitlines()[0].rstrip().endswith(": fine")
    assert end is not None or line.lag_records is None
    assert line.lag_records != 0 or end == 0 or (phase != "none" and end == 10)


def test_status_of_a_paused_partition_is_as_old_as_the_driver_saw() -> None:
    paused = progress(phase="paused", at_ms=NOW - 900_000)
    rows = topic(), paused, *at_work(("t", 0)), DesiredState(scope="topic:t", phase="paused")
    assert reported(*rows, ends={("t", 0): 30}).lag_ms is None, "nobody saw since when"
    source_ends = SourceEnds(asked_ms=NOW - 5_000, ends=(("t", 0, 25),), since_ms=(NOW - 600_000,))
    report = reported(*rows, source_ends, ends={("t", 0): 30})
    assert (report.lag_records, report.lag_ms) == (20, 600_000)
    assert "20 records behind (10 min" in shown(report)


@pytest.mark.parametrize(("in_sync", "least", "named"), [(1, "2", True), (2, "2", False), (1, None, False)])
def test_stalled_partition_names_too_few_replicas_in_sync(in_sync: int, least: str | None, named: bool) -> None:
    configs = () if least is None else (("min.insync.replicas", least),)
    rows = replace(topic(), target_configs=configs), progress(at_ms=NOW - 60_000), *at_work(("t", 0))
    report = reported(*rows, ends={("t", 0): 30}, earlier={("t", 0): 20}, in_sync={("A.t", 0): (in_sync, 3)})
    assert report.not_copying == {"stalled": 1}
    text = "NOT_ENOUGH_REPLICAS: A.t-0 has 1 of 3 replicas in sync, min.insync.replicas is 2"
    assert (report.partitions[0].why == text) is named


def test_status_names_a_selection_that_matches_nothing() -> None:
    none = SelectionCount(8, 0, 0)
    groups = SourceGroupsStatus(share=0, phase="read", unselected=3, excluded=2)
    report = reported(groups_read=(groups,), topic_count=none)
    sentences = (
        "0 of 8 topics of A match topics",
        "0 of 3 groups of A match: groups.exclude takes all 2 that groups includes",
    )
    assert report.empty_selections == sentences
    assert all(sentence in shown(report) for sentence in sentences)
    assert report_as_json(report)["empty_selections"] == sentences
    assert reported(topic_count=SelectionCount(8, 8, 8)).empty_selections == ()


@pytest.mark.parametrize(
    ("fields", "mode"),
    [({}, "idempotent"), ({"transactional": True}, "transactions"), ({"read_back": True}, "read back")],
)
def test_status_names_what_keeps_records_from_being_doubled(fields: dict[str, Any], mode: str) -> None:
    report = reported(topic(), replace(progress(), **fields), *at_work(("t", 0)), ends={("t", 0): 10})
    assert (report.appends, report.exact) == ({mode: 1}, True)
    assert f"{mode}: exact" in shown(report)


@pytest.mark.parametrize(
    "fields", [{"doubled": 2}, {"given_up": 1}, {"target_lost": 1}, {"quarantined": 1}, {"gaps": (("in-doubt", 1),)}]
)
def test_status_calls_a_partition_exact_only_where_it_is(fields: dict[str, Any]) -> None:
    rows = replace(progress("t", 0, read_back=True), **fields), progress("t", 1, read_back=True)
    report = reported(topic(partitions=2), *rows, *at_work(("t", 0), ("t", 1)), ends={("t", 0): 10, ("t", 1): 10})
    assert report.exact is False
    assert [line.exact for line in report.partitions] == [False, True]
    assert "read back: 1 partition not exact" in shown(report)
    assert ("2 records found twice" in shown(report)) == ("doubled" in fields)


def test_status_of_a_flow_that_has_copied_nothing_calls_nothing_exact() -> None:
    report = reported(topic(), ends={("t", 0): 10})
    assert (report.appends, report.exact) == ({}, None)
    assert "exact" not in shown(report)
