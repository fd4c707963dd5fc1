"""Evidence of a switch, for programs and for people."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from lockstep_cli.rendering.switch import evidence_lines
from lockstep_ops.switch.evidence import Evidence
from lockstep_ops.switch.switch_steps import DONE, FAILED, MEANINGS, WAITING, Step
from lockstep_state.rows.state_rows import Row, Switch, SwitchGroup, SwitchTopic, VerifiedPartition
from tests.support.takeover_rows import FLOW, progress, rows_of, topic

T0 = 1_700_000_000_000
STEPS = (
    ("check", DONE, T0, T0 + 50, "ready"),
    ("settle", FAILED, T0 + 50, T0 + 2_050, "7 records: t-0 (7) | and\nmore"),
    ("groups", WAITING, 0, 0, ""),
)
ROW = Switch(
    id="1",
    verb="failover",
    phase="running",
    began_ms=T0,
    force=True,
    lost=1_234,
    late=5,
    cutoff_ms=T0 - 1,
    source_known_ms=T0 - 1_000,
    steps=STEPS,
)
TOPIC = SwitchTopic(
    topic="t",
    target_topic="A.t",
    switch="1",
    ends=(15, 3),
    copied=(9, -1),
    target_ends=(21, 0),
    missing=(5, 0),
    since_ms=(T0 - 500, 0),
    known_ms=(T0 - 1_000, 0),
)
OF_WHAT = "of what A had accepted up to 2023-11-14T22:13:19.000+00:00; what it accepted later is not counted"
PLACES = (("A.t", 0, 9, 12),)
GROUP = SwitchGroup(group="g|1", switch="1", state="behind", text="a|b", read_again=3, positions=PLACES, known_ms=T0)
EXACT = replace(GROUP, group="g", state="exact", text="")


def evidence(*rows: Row, row: Switch = ROW, **more: Any) -> Evidence:
    return Evidence(row=row, flow=FLOW, rows=rows_of(*rows), **more)


def cells(line: str) -> int:
    """How many cells a row of a Markdown table has."""
    return line.replace("\\|", "").count("|") - 1


# -- JSON -------------------------------------------------------------------------------------------------------------


def test_evidence_as_json_has_the_switch_and_its_times() -> None:
    body = evidence(TOPIC).as_json()
    assert json.loads(json.dumps(body)) == body
    assert {name: body[name] for name in body if name not in ("steps", "topics", "groups")} == {
        "switch": "1",
        "verb": "failover",
        "flow": "A->B",
        "from": "A",
        "to": "B",
        "phase": "running",
        "drill": False,
        "by": "",
        "console": "",
        "progress": "",
        "began": "2023-11-14T22:13:20.000+00:00",
        "ended": None,
        "seconds": None,
        "lost": 1_234,
        "lost_unknown_partitions": 0,
        "source_known_until": "2023-11-14T22:13:19.000+00:00",
        "groups_known_until": None,
        "late": 5,
        "cutoff": "2023-11-14T22:13:19.999+00:00",
        "allowed": ["soon", "not-ready", "left-groups", "unknown-loss", "stale-groups", "source-gone"],
        "only_topics": [],
        "allowed_loss": ROW.allowed_loss if ROW.allowed_loss >= 0 else None,
        "diverged": ROW.diverged,
        "rewound_groups": ROW.rewind_groups,
        "lasting": [],
    }


def test_evidence_as_json_of_an_ended_switch_and_of_rows_in_part() -> None:
    body = evidence(row=replace(ROW, phase="done", ended_ms=T0 + 4_500)).as_json()
    assert (body["ended"], body["seconds"]) == ("2023-11-14T22:13:24.500+00:00", 4.5)
    short = replace(TOPIC, copied=(9,), target_ends=(), missing=(), since_ms=())
    body = evidence(short, replace(EXACT, known_ms=0)).as_json()
    last = body["topics"][0]["partitions"][1]
    assert (last["copied_to"], last["target_end"], last["missing"], last["missing_since"]) == (-1, -1, 0, None)
    assert body["groups"][0]["known_until"] is None


def test_evidence_as_json_has_each_step() -> None:
    check, settle, groups = evidence().as_json()["steps"]
    assert check == {
        "step": "check",
        "state": "done",
        "began": "2023-11-14T22:13:20.000+00:00",
        "ended": "2023-11-14T22:13:20.050+00:00",
        "seconds": 0.05,
        "text": "ready",
    }
    assert (settle["seconds"], settle["text"]) == (2.0, "7 records: t-0 (7) | and\nmore")
    assert groups == {"step": "groups", "state": "waiting", "began": None, "ended": None, "seconds": None, "text": ""}


def test_evidence_as_json_has_each_partition() -> None:
    (body,) = evidence(TOPIC).as_json()["topics"]
    assert (body["topic"], body["target_topic"]) == ("t", "A.t")
    assert body["partitions"] == [
        {
            "partition": 0,
            "source_end": 15,
            "copied_to": 9,
            "target_end": 21,
            "missing": 5,
            "missing_since": "2023-11-14T22:13:19.500+00:00",
            "known_until": "2023-11-14T22:13:19.000+00:00",
            "verified": None,
        },
        {
            "partition": 1,
            "source_end": 3,
            "copied_to": -1,
            "target_end": 0,
            "missing": 0,
            "missing_since": None,
            "known_until": None,
            "verified": None,
        },
    ]


def test_evidence_as_json_has_each_group() -> None:
    assert evidence(GROUP).as_json()["groups"] == [
        {
            "group": "g|1",
            "state": "behind",
            "text": "a|b",
            "read_again": 3,
            "known_until": "2023-11-14T22:13:20.000+00:00",
            "positions": [{"topic": "A.t", "partition": 0, "source_offset": 9, "target_offset": 12}],
        }
    ]


NAMED_OTHERWISE = {
    "ends": "source_end",
    "copied": "copied_to",
    "target_ends": "target_end",
    "since_ms": "missing_since",
    "known_ms": "known_until",
}


@pytest.mark.parametrize(("kind", "section"), [(SwitchTopic, "topics"), (SwitchGroup, "groups")])
def test_evidence_as_json_has_every_field_of_its_rows(kind: type[Row], section: str) -> None:
    """But for those that say which switch wrote the row, and when."""
    (body,) = evidence(TOPIC, GROUP).as_json()[section]
    names = {*body, *(name for part in body.get("partitions", ()) for name in part)}
    wanted = {field.name for field in fields(kind)} - {field.name for field in fields(Row)} - {"switch"}
    assert {NAMED_OTHERWISE.get(name, name) for name in wanted} <= names


def test_evidence_leaves_out_rows_of_other_switches() -> None:
    older = evidence(replace(TOPIC, switch="0"), replace(GROUP, switch="0"), topic(), progress())
    assert (older.topics, older.groups) == ([], [])
    assert (older.as_json()["topics"], older.as_json()["groups"]) == ([], [])


def test_evidence_has_topics_and_groups_by_name() -> None:
    several = evidence(replace(TOPIC, topic="u"), TOPIC, replace(GROUP, group="h"), replace(GROUP, group="a"))
    assert [topic.topic for topic in several.topics] == ["t", "u"]
    assert [group.group for group in several.groups] == ["a", "h"]


# -- Markdown ---------------------------------------------------------------------------------------------------------


def test_evidence_as_markdown_begins_with_the_result() -> None:
    lines = evidence(TOPIC, row=replace(ROW, phase="done", ended_ms=T0 + 4_500)).as_markdown().splitlines()
    assert lines[:12] == [
        "# Failover A->B",
        "",
        "- Result: done",
        "- Begun by: not known",
        "- Began: 2023-11-14T22:13:20.000+00:00",
        "- Ended: 2023-11-14T22:13:24.500+00:00",
        f"- Lost, of what the source was known to have: 1,234 records, {OF_WHAT}",
        "- Known of A: its records up to 2023-11-14T22:13:19.000+00:00, its groups up to a time not known",
        "- Late, and not copied: 5 records came after the fence",
        "- Verified: 0 of 2 partitions were compared with their source, 0 differences, 0 records not verified",
        "- Id: 1",
        "",
    ]


BEGAN = "2023-11-14T22:13:20.000+00:00"


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (evidence(row=replace(ROW, drill=True)), "# Failover A->B (drill)\n"),
        (evidence(row=replace(ROW, drill=True)), "- Ended: not yet\n"),
        (evidence(), f"| check | {MEANINGS[Step.CHECK]} | done | {BEGAN} | 50 ms | ready |\n"),
        (evidence(), f"| groups | {MEANINGS[Step.GROUPS]} | waiting |  |  |  |\n"),
        (evidence(), "| 2.0 s | 7 records: t-0 (7) \\| and more |\n"),
        (evidence(TOPIC), "| t-0 | A.t-0 | 15 | 2023-11-14T22:13:19.000+00:00 | 9 | 21 | 5 |"),
        (evidence(TOPIC), "| t-1 | A.t-1 | 3 | ? | -1 | 0 | 0 |"),
        (evidence(replace(GROUP, text="one\ntwo | three")), "| g\\|1 | behind |"),
        (evidence(EXACT), f"| g | exact | 3 | {BEGAN} |"),
        (evidence(replace(EXACT, known_ms=0)), "| g | exact | 3 | ? |"),
    ],
)
def test_evidence_as_markdown_has_a_line_of_each_kind(shown: Evidence, line: str) -> None:
    assert line in shown.as_markdown()


def test_evidence_shown_has_the_times_up_to_which_all_is_known() -> None:
    lines = [line.plain for line in evidence_lines(evidence(row=replace(ROW, groups_known_ms=T0)))]
    times = "2023-11-14T22:13:19.000+00:00, its groups up to 2023-11-14T22:13:20.000+00:00"
    assert f"  known of A    its records up to {times}" in lines


def test_evidence_as_markdown_has_tables_of_even_width() -> None:
    blocks = evidence(TOPIC, GROUP, replace(GROUP, group="h")).as_markdown().split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("|")]
    assert [len(table) for table in tables] == [5, 4, 4]
    for table in tables:
        assert len({cells(line) for line in table}) == 1


def test_evidence_as_markdown_of_an_abort_has_what_stays() -> None:
    aborted = evidence(row=replace(ROW, phase="aborted"), lasting=("this stays", "that too"))
    assert aborted.as_markdown().endswith("\n## Not taken back\n\n- this stays\n- that too\n")
    assert aborted.as_json()["lasting"] == ["this stays", "that too"]
    assert "Not taken back" not in evidence().as_markdown()


def test_evidence_without_any_row_is_still_readable() -> None:
    empty = evidence(row=Switch(id="1", verb="switchover"))
    body, text = empty.as_json(), empty.as_markdown()
    assert (body["began"], body["steps"], body["topics"], body["groups"]) == (None, [], [], [])
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Steps", "## Topics", "## Groups"]


def test_evidence_has_no_verification_of_a_log_that_is_gone() -> None:
    row = VerifiedPartition(topic="t", partition=0, upstream=9, source_topic_id="old")
    verified = evidence(TOPIC, row, progress(source_topic_id="new"))
    assert verified.as_json()["topics"][0]["partitions"][0]["verified"] is None
    assert "- Verified: 0 of 2 partitions were compared" in verified.as_markdown()


def test_evidence_has_what_verification_knew_of_a_copy() -> None:
    row = VerifiedPartition(topic="t", partition=0, depth="bytes", upstream=9, differences=(("value", 2),))
    verified = evidence(TOPIC, row, progress())
    first, second = verified.as_json()["topics"][0]["partitions"]
    assert first["verified"] == {"verified_to": 9, "depth": "bytes", "differences": 2, "not_verified": 0}
    assert second["verified"] is None, "never compared is not equal"
    assert "- Verified: 1 of 2 partitions were compared with their source, 2 differences," in verified.as_markdown()


def test_evidence_of_an_unknown_loss_has_its_partitions() -> None:
    done = replace(ROW, phase="done", lost=0, late=0, ended_ms=T0 + 9_000)
    verified = evidence(replace(TOPIC, missing=(-1, 0)), row=done)
    assert (verified.as_json()["lost"], verified.as_json()["lost_unknown_partitions"]) == (0, 1)
    assert f"known to have: 0 records known, unknown for 1 partition, {OF_WHAT}\n" in verified.as_markdown()
    first, *others = evidence_lines(verified)
    assert [str(span.style) for span in first.spans] == ["yellow"]
    assert f"  lost          0 records known, unknown for 1 partition, {OF_WHAT}" in [line.plain for line in others]


def test_evidence_of_a_source_that_died_counts_no_late_records() -> None:
    done = replace(ROW, verb="switchover", phase="done", lost=0, late=0, late_unknown=True, ended_ms=T0 + 9_000)
    known = evidence(TOPIC, row=done)
    assert (known.late, known.as_json()["late"]) == (None, None)
    assert "- Late, and not copied: not known, because A did not answer any more\n" in known.as_markdown()
    first, *_ = evidence_lines(known)
    assert [str(span.style) for span in first.spans] == ["yellow"]


def test_evidence_never_counts_nothing_as_lost_without_its_moment() -> None:
    done = replace(ROW, phase="done", lost=0, ended_ms=T0 + 9_000)
    assert evidence(TOPIC, row=done).lost_words == f"0 records, {OF_WHAT}"
    unknown = evidence(TOPIC, row=replace(done, source_known_ms=0)).lost_words
    assert unknown.startswith("0 records, of what A had accepted as far as slots had fetched it")


def test_evidence_of_a_loss_that_was_not_counted_yet_has_no_number() -> None:
    begun = evidence(row=replace(ROW, lost=0))
    assert (begun.lost_words, begun.as_json()["lost"]) == ("not counted yet", None)
    assert evidence(row=Switch(id="1", verb="switchover")).as_json()["lost"] == 0, "it loses nothing"
