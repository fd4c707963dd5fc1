"""Handing a flow back to MirrorMaker 2: what is written, what is refused, and what is named."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lockstep_cli.rendering.migration import hand_back_parts
from lockstep_ops.takeover.handback import not_drained, plan_hand_back
from lockstep_ops.takeover.migration import MigrationState
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Restarts, Row, SlotStatus
from tests.support.printed import printed
from tests.support.reasons import reported
from tests.support.takeover_rows import DEDICATED, FLOW, STOPPED, progress, rows_of, topic


def test_hand_back_plan_is_shown_as_text() -> None:
    said = printed(
        hand_back_parts(plan_hand_back(held(progress(0, 9), progress(1, 19), DRAINED, mm2_offsets={("t", 0): 9})))
    )
    assert "mm2-offsets.A.internal, connector MirrorSourceConnector on B: 1 offset to write" in said
    assert "there already" in said


# -- handing back -----------------------------------------------------------------------------------------------------


def held(
    *rows: Row, mm2_offsets: Mapping[tuple[str, int], int] | None = None, members: int = 0, replicas: int = 0
) -> MigrationState:
    rows_by_key = rows_of(*rows)
    return MigrationState(
        flow=FLOW,
        cluster="A",
        location=DEDICATED,
        rows=rows_by_key,
        mm2_offsets=mm2_offsets or {},
        members=members,
        replicas=replicas,
    )


DRAINED = SlotStatus(slot=0, phase="released")


def test_the_last_progress_is_written_where_it_is_not_there_yet() -> None:
    plan = plan_hand_back(
        held(progress(0, 9), progress(1, 19), DRAINED, STOPPED, mm2_offsets={("t", 0): 9}, replicas=1)
    )
    assert plan.refusals == ()
    assert plan.offsets == ((("t", 0), 9), (("t", 1), 19))
    assert plan.writes == ((("t", 1), 19),)
    assert (plan.row.phase, plan.row.partitions) == ("handed-back", 2)
    assert plan.as_json()["offsets"][0] == {
        "partition": {"cluster": "A", "partition": 0, "topic": "t"},
        "offset": {"offset": 9},
    }


def test_twice_changes_nothing() -> None:
    plan = plan_hand_back(held(progress(0, 9), DRAINED, STOPPED, mm2_offsets={("t", 0): 9}))
    assert (plan.refusals, plan.writes) == ((), ())


@pytest.mark.parametrize(
    ("rows", "replicas", "words"),
    [
        ([DRAINED], 1, "the flow runs: lockstep stop"),
        ([SlotStatus(slot=0, phase="started"), STOPPED], 1, "slot 0 did not drain yet"),
        (
            [SlotStatus(slot=1, phase="started"), SlotStatus(slot=2, phase="started"), STOPPED],
            0,
            "slots 1, 2 ended with",
        ),
        ([SlotStatus(slot=0, phase="started")], 0, "slot 0 ended without writing down how far it was"),
        ([DRAINED], 0, ""),
        ([DRAINED, STOPPED], 1, ""),
    ],
)
def test_hand_back_of_a_flow_that_is_not_drained_is_refused(rows: list[Row], replicas: int, words: str) -> None:
    refusal = format_sentence(not_drained(held(progress(), *rows, replicas=replicas)))
    assert words in refusal
    assert bool(words) is bool(refusal)
    assert bool(plan_hand_back(held(progress(), *rows, replicas=replicas)).refusals) is bool(words)


UNREAD = progress(1, 19, located=False)


@pytest.mark.parametrize(
    ("rows", "replicas", "words"),
    [
        ([DRAINED, STOPPED], 1, "where the copy ends of t-1 was not read from B yet: ask again in a moment"),
        ([DRAINED, STOPPED], 0, "was not read from B yet. Start the data plane, which reads that from the target"),
        ([DRAINED], 0, "Start the data plane, which reads that from the target, and lockstep stop"),
    ],
)
def test_a_row_that_the_target_was_not_asked_about_is_not_handed_back(
    rows: list[Row], replicas: int, words: str
) -> None:
    flow = held(progress(0, 9), UNREAD, *rows, replicas=replicas)
    assert words in format_sentence(not_drained(flow))
    (refusal,) = map(format_sentence, plan_hand_back(flow).refusals)
    assert refusal == format_sentence(not_drained(flow))


def test_hand_back_without_copy_is_named_only_when_the_target_confirms_it() -> None:
    (refusal,) = map(
        format_sentence, plan_hand_back(held(progress(0, -1, located=False), DRAINED, STOPPED, replicas=1)).refusals
    )
    assert "copied nothing" not in refusal


@pytest.mark.parametrize(
    ("row", "about", "words"),
    [
        (replace(UNREAD, phase="halted", cause=reported("truncated")), None, "not known (truncated)"),
        (UNREAD, MirroredTopic(source_topic="t", target_topic="A.t", phase="failed"), "its topic is not mirrored now"),
    ],
)
def test_hand_back_with_an_unknown_end_is_refused_without_waiting(
    row: PartitionProgress, about: MirroredTopic | None, words: str
) -> None:
    flow = held(progress(0, 9), row, DRAINED, STOPPED, *([] if about is None else [about]), replicas=1)
    assert not_drained(flow) == NO_REASON
    (refusal,) = map(format_sentence, plan_hand_back(flow).refusals)
    assert "t-1 is not known" in refusal
    assert words in refusal
    assert "lockstep offsets alter" in refusal


@pytest.mark.parametrize("subject", ["slot:1", "service"])
def test_hand_back_does_not_wait_for_a_failed_slot(subject: str) -> None:
    failed = Restarts(owner="data-plane", subject=subject, phase="failed", cause=reported("no room"), asked=("", ""))
    failed = replace(failed, asked=("",) if subject == "service" else ("", ""))
    flow = held(UNREAD, SlotStatus(slot=1, phase="started"), STOPPED, failed, replicas=1)
    assert not_drained(flow) == NO_REASON
    (refusal,) = map(format_sentence, plan_hand_back(flow).refusals)
    scope = "connector:MirrorSourceConnector" if subject == "service" else subject
    assert f"lockstep restart {scope}" in refusal
    assert "(no room)" in refusal
    asked_again = held(UNREAD, DRAINED, STOPPED, replace(failed, asked=("before",)), replicas=1)
    assert "ask again in a moment" in format_sentence(not_drained(asked_again))
    assert plan_hand_back(held(progress(), DRAINED, STOPPED, failed, replicas=1)).refusals == ()


def test_hand_back_knows_an_altered_offset() -> None:
    plan = plan_hand_back(held(progress(0, 9, located=False, begins="altered"), DRAINED))
    assert (plan.refusals, plan.offsets) == ((), ((("t", 0), 9),))


def test_hand_back_skips_an_unread_partition_of_an_excluded_topic() -> None:
    plan = plan_hand_back(
        held(replace(UNREAD, topic="u"), topic(source_topic="u", phase="excluded"), progress(0), DRAINED)
    )
    assert (plan.refusals, plan.offsets) == ((), ((("t", 0), 9),))
    assert any("was not read: u-1" in note for note in plan.notes)


def test_hand_back_of_a_running_flow_that_is_stopped_first_is_accepted() -> None:
    running = held(progress(), SlotStatus(slot=0, phase="started"), replicas=1)
    assert plan_hand_back(running).refusals != ()
    plan = plan_hand_back(running, stops_first=True)
    assert (plan.refusals, plan.offsets) == ((), ((("t", 0), 9),))


@pytest.mark.parametrize(
    ("flow", "sentence"),
    [
        (held(progress(), DRAINED, members=1), "group A-mm2 on B has 1 member."),
        (held(progress(0, 9), DRAINED, mm2_offsets={("t", 0): 10}), "10 there and 9 here"),
        (replace(held(progress(), DRAINED), mm2_offsets=None), "no topic mm2-offsets.A.internal on B"),
        (held(progress(0, -1), DRAINED), "copied nothing"),
        (held(DRAINED), "it has copied nothing, or its state topic was lost"),
    ],
)
def test_hand_back_is_refused_with_one_sentence(flow: MigrationState, sentence: str) -> None:
    (refusal,) = map(format_sentence, plan_hand_back(flow).refusals)
    assert sentence in refusal


@pytest.mark.parametrize(
    ("row", "left_out"),
    [
        (topic(phase="deleted"), True),
        (topic(source_topic_id="new"), True),
        (topic(source_topic_id="old"), False),
        (topic(source_topic_id=""), False),
        (topic(phase="excluded", source_topic_id="old"), False),
    ],
)
def test_topics_that_are_gone_are_left_out(row: MirroredTopic, left_out: bool) -> None:
    plan = plan_hand_back(held(row, progress(0, 9, source_topic_id="old"), DRAINED))
    assert (plan.offsets == ()) is left_out
    assert any("left out" in note for note in plan.notes) is left_out


def test_hand_back_notes_halted_partitions() -> None:
    (note,) = plan_hand_back(held(progress(0, 9, phase="halted"), DRAINED)).notes
    assert "1 partition halted here (t-0)" in note
