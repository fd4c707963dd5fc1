"""Taking a flow over from MirrorMaker 2, and handing it back: what was found becomes a plan."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lockstep_cli.commands.migrate_commands import COMMANDS
from lockstep_cli.rendering.migration import takeover_parts
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.formatting import name_partitions
from lockstep_ops.takeover.offset_location import OffsetLocation, offset_location
from lockstep_ops.takeover.passed_over import PassedOverRecords
from lockstep_ops.takeover.takeover import PartitionPlan, TakeoverState, flush_note, plan_takeover
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import Handover, Row
from tests.support.printed import printed
from tests.support.takeover_rows import DEDICATED, FLOW, OFFSETS, STOPPED, progress, rows_of

STRIMZI = offset_location("strimzi", FLOW, None, OFFSETS)
OWN = OffsetLocation("own", DEDICATED.topic, DEDICATED.connector, "")


def state(location: OffsetLocation = DEDICATED, *rows: Row, **fields: Any) -> TakeoverState:
    """Two partitions of `t`, offsets 0 to 99 each, of which MM2 has copied up to 9 and 19."""
    facts: dict[str, Any] = {
        "mm2_offsets": {("t", 0): 9, ("t", 1): 19},
        "selected": {"t": "A.t"},
        "begins": {("t", 0): 0, ("t", 1): 0},
        "ends": {("t", 0): 100, ("t", 1): 100},
        "target_topics": frozenset({"A.t"}),
    }
    return TakeoverState(flow=FLOW, cluster="A", location=location, own=OWN, rows=rows_of(*rows), **{**facts, **fields})


# -- where MM2 keeps its progress -------------------------------------------------------------------------------------


def test_the_places_of_each_kind() -> None:
    assert str(DEDICATED) == "mm2-offsets.A.internal, connector MirrorSourceConnector"
    assert (DEDICATED.origin, DEDICATED.group) == ("dedicated", "A-mm2")
    assert str(STRIMZI) == "mirrormaker2-cluster-offsets, connector A->B.MirrorSourceConnector"
    assert (STRIMZI.origin, STRIMZI.group) == ("strimzi", "mirrormaker2-cluster")
    assert offset_location("dedicated", FLOW, "other", OFFSETS).group == "other"
    assert offset_location("strimzi", FLOW, None, OFFSETS, topic="x", connector="y", group="z") == OffsetLocation(
        "strimzi", "x", "y", "z"
    )


def test_a_connect_cluster_has_to_be_named() -> None:
    with pytest.raises(CannotUse, match="--offsets-topic, --connector and --group"):
        offset_location("connect", FLOW, None, OFFSETS, topic="x", connector="y")
    assert offset_location("connect", FLOW, None, OFFSETS, topic="x", connector="y", group="z") == OffsetLocation(
        "connect", "x", "y", "z"
    )


# -- taking over ------------------------------------------------------------------------------------------------------


def test_takeover_in_place_writes_nothing() -> None:
    plan = plan_takeover(state())
    assert (plan.refusals, plan.writes, plan.alters, plan.resume) == ((), (), (), False)
    (topic,) = plan.topics
    assert (topic.remote, topic.remote_exists, topic.to_copy) == ("A.t", True, 170)
    assert topic.partitions == (PartitionPlan(0, 9, 90), PartitionPlan(1, 19, 80))
    assert plan.row.phase == "taken-over"
    assert (plan.row.topic, plan.row.connector, plan.row.partitions) == (DEDICATED.topic, DEDICATED.connector, 2)


def test_takeover_from_another_topic_writes_every_offset_once() -> None:
    plan = plan_takeover(state(STRIMZI))
    assert plan.writes == ((("t", 0), 9), (("t", 1), 19))
    again = plan_takeover(state(STRIMZI, own_offsets={("t", 0): 9, ("t", 1): 19}))
    assert (again.writes, again.refusals) == ((), ())
    half_way = plan_takeover(state(STRIMZI, own_offsets={("t", 0): 9}))
    assert (half_way.writes, half_way.refusals) == (((("t", 1), 19),), ())


HANDED_BACK = Handover(phase="handed-back", topic=DEDICATED.topic, connector=DEDICATED.connector, group="A-mm2")
AFTER_HAND_BACK = "went on under MirrorMaker 2 after the hand-back"
UNREAD = (progress(0, 5, located=False), progress(1, 19, located=False))
OWN_PROGRESS = "the flow has progress of its own, which is not MirrorMaker 2's: t-0"


@pytest.mark.parametrize(
    ("flow", "sentence"),
    [
        (state(members=2), "group A-mm2 on B has 2 members"),
        (state(mm2_offsets=None), "no topic mm2-offsets.A.internal on B"),
        (state(mm2_offsets={}), "none at all"),
        (
            state(mm2_offsets={}, other_sources=frozenset({("MirrorSourceConnector", "prod")})),
            "it has those of MirrorSourceConnector of cluster 'prod'. Aliases have to be MirrorMaker 2's",
        ),
        *((state(STRIMZI, progress(0, offset)), OWN_PROGRESS) for offset in (-1, 8, 10)),
        *((state(STRIMZI, progress(0, offset)), f"{offset} here and 9 there") for offset in (-1, 8, 10)),
        *((state(STRIMZI, own_offsets={("t", 0): offset}), "t-0") for offset in (8, 10)),
        (state(replicas=1), "runs already (1 replica)"),
        (state(DEDICATED, progress(0, 5), HANDED_BACK, STOPPED, replicas=0), AFTER_HAND_BACK),
        (state(DEDICATED, progress(0, 5), HANDED_BACK, replicas=1), AFTER_HAND_BACK),
        (state(DEDICATED, *UNREAD, HANDED_BACK, STOPPED, replicas=1), "own copy ends of t-0 was not read from B"),
        (state(DEDICATED, progress(0, 50), HANDED_BACK, STOPPED, replicas=1), "50 here and 9 there"),
    ],
)
def test_takeover_is_refused_with_one_sentence(flow: TakeoverState, sentence: str) -> None:
    (refusal,) = map(format_sentence, plan_takeover(flow).refusals)
    assert sentence in refusal


def test_takeover_beside_a_stopped_data_plane_resumes_it() -> None:
    plan = plan_takeover(state(DEDICATED, STOPPED, replicas=1))
    assert (plan.refusals, plan.resume) == ((), True)
    assert plan_takeover(state(DEDICATED, progress(0, 9), progress(1, 19))).refusals == ()


def test_takeover_after_hand_back_alters_offsets_to_those_of_mm2() -> None:
    plan = plan_takeover(state(DEDICATED, progress(0, 5), progress(1, 19), HANDED_BACK, STOPPED, replicas=1))
    assert (plan.refusals, plan.alters, plan.writes, plan.resume) == ((), ((("t", 0), 9),), (), True)


def notes(**fields: Any) -> str:
    plan = plan_takeover(state(**fields))
    assert plan.refusals == ()
    return "\n".join(plan.notes)


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"ends": {("t", 0): 9, ("t", 1): 20}}, "(truncated, or created anew): t-0."),
        ({"target_topics": frozenset()}, "not copied again: t"),
        (
            {"mm2_offsets": {("t", 0): 9, ("t", 1): 19, ("u", 0): 1}},
            "the file does not select them, or they are gone: u",
        ),
        ({"begins": {("t", 0): 30, ("t", 1): 20}}, "(retention): t-0."),
        ({"mm2_offsets": {("t", 0): 9}}, "earliest record (lockstep.start.timestamp, auto.offset.reset): t-1"),
    ],
)
def test_takeover_notes_what_it_cannot_copy(fields: dict[str, Any], note: str) -> None:
    assert note in notes(**fields)


def test_takeover_of_whole_logs_notes_the_flush_interval_alone() -> None:
    assert notes() == notes(ends={("t", 0): 10, ("t", 1): 20}) == flush_note(timedelta(seconds=60), "dedicated")


def test_partitions_without_an_offset_begin_where_a_first_copy_would() -> None:
    (topic,) = plan_takeover(state(mm2_offsets={("t", 0): 9}, begins={("t", 0): 0, ("t", 1): 40})).topics
    assert topic.partitions[1] == PartitionPlan(1, None, 60)
    (topic,) = plan_takeover(state(mm2_offsets={("t", 0): 9}, reset="latest")).topics
    assert topic.partitions[1] == PartitionPlan(1, None, 0)


def test_takeover_counts_records_removed_by_retention() -> None:
    (topic,) = plan_takeover(state(begins={("t", 0): 30, ("t", 1): 20})).topics
    assert topic.partitions == (PartitionPlan(0, 9, 70, 20), PartitionPlan(1, 19, 80))


def test_sentences_name_a_few() -> None:
    assert name_partitions([("t", n) for n in range(7)]) == "t-0, t-1, t-2, t-3, t-4 and 2 more"


def test_a_program_reads_all_of_a_plan() -> None:
    body = plan_takeover(state(STRIMZI)).as_json()
    assert body["from"] == {"origin": "strimzi", "topic": STRIMZI.topic, "connector": STRIMZI.connector}
    assert (body["writes"], body["refusals"]) == (2, [])
    assert body["topics"][0]["partitions"][0] == {"partition": 0, "offset": 9, "to_copy": 90, "gone": 0}


def test_takeover_plan_is_shown_as_text() -> None:
    text = printed(takeover_parts(plan_takeover(state(STRIMZI, groups=3))))
    for words in (
        "A->B  take over from MirrorMaker 2 (strimzi)",
        "MirrorSourceConnector on B: 2 offsets to write",
        "no, group mirrormaker2-cluster has no members",
        "3 with checkpoints",
        "9 19",
        "170 records still to copy",
        f"note: {flush_note(timedelta(seconds=60), 'dedicated')}"[:100],
    ):
        assert words in text


def test_takeover_without_offsets_shows_no_topics() -> None:
    assert "still to copy" not in printed(takeover_parts(plan_takeover(state(mm2_offsets={}))))


def test_takeover_notes_a_connector_that_is_not_watched() -> None:
    location = replace(
        offset_location("connect", FLOW, None, OFFSETS, topic="x", connector="y", group="z"), watched=False
    )
    assert "not checked: other connectors run in group z" in printed(takeover_parts(plan_takeover(state(location))))


@pytest.mark.parametrize(
    ("every", "origin", "words"),
    [
        (timedelta(seconds=5), "dedicated", "offset.flush.interval.ms (5 s in the file)"),
        (timedelta(milliseconds=500), "strimzi", "offset.flush.interval.ms (0.5 s in the file)"),
        (timedelta(seconds=5), "connect", "offset.flush.interval.ms (of the Connect workers, 60 s by default)"),
    ],
)
def test_the_note_quotes_the_files_own_interval(every: timedelta, origin: str, words: str) -> None:
    assert words in flush_note(every, origin)
    location = replace(DEDICATED, origin=origin)
    assert words in plan_takeover(state(location, flush_every=every)).notes[0]


def test_takeover_commands_without_a_reachable_cluster_end_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = localhost:1\nB.bootstrap.servers = localhost:1\nA->B.enabled = true\n"
    )
    for command in COMMANDS:
        for output in ("text", "json"):
            ended = CliRunner().invoke(command, [str(file), "--output", output])
            assert ended.exit_code == 2
            assert "nobody can be asked here, and nothing was done: say --yes" in ended.output


def test_records_that_cannot_be_read_are_a_note_and_a_count() -> None:
    passed = PassedOverRecords()
    for offset in (7, 9):
        passed.pass_over(Record("mm2-offsets.A.internal", 3, offset, b"", b"", 0), ValueError("no JSON"))
    passed.pass_over(Record("A.checkpoints.internal", 0, 1, b"", b"", 0), ValueError("too short"))
    plan = plan_takeover(state(unread=passed.topics))
    assert plan.as_json()["unreadable"] == {"A.checkpoints.internal": 1, "mm2-offsets.A.internal": 2}
    said = [note for note in plan.notes if "cannot be read" in note]
    assert said == [
        "1 record of A.checkpoints.internal cannot be read, so what they say does not count: "
        "partition 0 offset 1: too short",
        "2 records of mm2-offsets.A.internal cannot be read, so what they say does not count: "
        "partition 3 offset 7: no JSON",
    ]
    assert not [note for note in plan_takeover(state()).notes if "cannot be read" in note]
