"""Groups are not moved beyond records of another flow to the same topic."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_checkpoint.sibling_flow import WANTS, SiblingFlow, SiblingFlows, fed_topics, find_contested
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, Row
from tests.support.eventually import eventually
from tests.unit.checkpoint.test_group_sync_places import LINES, translated
from tests.unit.checkpoint.test_target_group_sync import GROUP, TP, Stage

TOPIC = MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1)
KEEPS = LINES + "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
THEIR_STATE = "mm2-lockstep-state.C.internal"
THEIRS = GroupStatus(group=GROUP, phase="translated", positions=((*TP, 60, 60),))


def at(downstream: int) -> Checkpoint:
    return Checkpoint(GROUP, *TP, UpstreamOffset(100), DownstreamOffset(downstream), "")


def contested(downstream: int, theirs: GroupStatus | None, topic: MirroredTopic = TOPIC) -> list[TopicPartition]:
    places = dict(find_contested([at(downstream)], fed_topics([topic], {}), theirs, "C->B"))
    assert all(reason.code == "contested" for reason in places.values())
    return list(places)


@pytest.mark.parametrize(("downstream", "places"), [(0, []), (60, []), (61, [TP]), (100, [TP])])
def test_place_beyond_that_of_the_other_flow_is_contested(downstream: int, places: list[TopicPartition]) -> None:
    assert contested(downstream, THEIRS) == places


@pytest.mark.parametrize(
    "theirs",
    [
        None,
        replace(THEIRS, positions=()),
        replace(THEIRS, phase="waiting"),
        replace(THEIRS, more_waiting=1),
        replace(THEIRS, waiting=((*TP, "a text"),)),
        replace(THEIRS, cause=Reason("a-code-of-a-newer-release")),
    ],
)
def test_place_that_the_other_flow_does_not_know_is_contested(theirs: GroupStatus | None) -> None:
    assert contested(1, theirs) == [TP]


@pytest.mark.parametrize(
    "topic",
    [
        replace(TOPIC, target_topic="A.u"),
        replace(TOPIC, phase="excluded"),
        replace(TOPIC, phase="deleted"),
        replace(TOPIC, partitions=0),
    ],
)
def test_topic_that_the_other_flow_does_not_feed_is_not_contested(topic: MirroredTopic) -> None:
    assert contested(100, None, topic) == []


def merged(folder: Path, lines: str = LINES) -> Stage:
    """Return a flow with a sibling whose rows are not read yet."""
    stage = Stage(folder, lines)
    stage.sync.siblings = SiblingFlows(stage.ctx, [THEIR_STATE])
    return stage


def sibling_of(stage: Stage) -> SiblingFlow:
    return stage.sync.siblings.flows[THEIR_STATE]


async def test_group_is_moved_where_it_skips_nothing_of_any_source(tmp_path: Path) -> None:
    """Both sources have the group: this flow would put it at 100, the other one at 60."""
    stage = merged(tmp_path)
    sibling = sibling_of(stage)
    sibling.fold = StateFold(wants=WANTS)
    for offset, row in enumerate((TOPIC, THEIRS)):
        sibling.fold.fold(offset, *row.encode())
    await translated(stage, TranslatedOffset(DownstreamOffset(100)), 100)
    await stage.sync_now()
    assert stage.target.writes == []
    assert not stage.row().synced
    assert stage.row().held_cause.code == "contested"
    assert "another flow too (mm2-lockstep-state.C.internal)" in stage.row().held_reason
    assert stage.report.count_held()["contested"] == 1
    await translated(stage, TranslatedOffset(DownstreamOffset(50)), 50)
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 50)]
    assert (stage.row().held_cause, stage.report.count_held()["contested"]) == (NO_REASON, 0)


def test_topics_of_the_other_flow_are_found_once_for_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sibling = sibling_of(merged(tmp_path))
    sibling.fold = fold = StateFold(wants=WANTS)
    fold.fold(0, *TOPIC.encode())
    found: list[type[Row]] = []

    def every(fold: StateFold, kind: type[Row]) -> list[Row]:
        found.append(kind)
        return list(fold.rows.values())

    monkeypatch.setattr(StateFold, "all", every)
    assert [list(sibling.find_contested(group, [at(1)])) for group in ("g", "h")] == [[TP], [TP]]
    assert len(found) == 1
    fold.fold(1, *replace(TOPIC, phase="deleted").encode())
    assert not sibling.find_contested("g", [at(1)])


@given(st.integers(0, 9), st.integers(0, 9))
def test_group_of_a_mesh_goes_to_the_earlier_place_of_both_flows(one: int, other: int) -> None:
    """A->B and C->B each look at the other's row: what neither finds contested is the earlier place."""
    rows = [replace(THEIRS, positions=((*TP, 100, place),)) for place in (one, other)]
    free = [place for place, theirs in zip((one, other), reversed(rows), strict=True) if not contested(place, theirs)]
    assert set(free) == {min(one, other)}


async def test_group_waits_while_rows_of_the_other_flow_are_unread(tmp_path: Path) -> None:
    stage = merged(tmp_path)
    await stage.place(100)
    await stage.sync_now()
    assert stage.target.writes == []
    sibling_of(stage).is_missing = True  # it never ran
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 100)]


async def test_lost_state_topic_of_a_flow_that_ran_keeps_the_group_where_it_is(tmp_path: Path) -> None:
    """Its records are on the target, and where they are is not known any more."""
    stage = merged(tmp_path)
    sibling = sibling_of(stage)
    sibling.apply(StateFold(wants=WANTS), [Record(THEIR_STATE, 0, 0, *TOPIC.encode(), 0)])
    sibling.is_missing = True
    await translated(stage, TranslatedOffset(DownstreamOffset(100)), 100)
    await stage.sync_now()
    assert stage.target.writes == []
    assert stage.row().held_cause.code == "contest-unknown"


@pytest.mark.parametrize("left", ["mm2-lockstep-events.C.internal", "mm2-lockstep-commands.C.internal"])
def test_flow_with_other_topics_than_its_state_has_run(tmp_path: Path, left: str) -> None:
    """The service was restarted, and has read no row."""
    stage = merged(tmp_path, KEEPS)
    sibling = sibling_of(stage)
    sibling.is_missing = True
    stage.sync.siblings.observe(["orders", "mm2-lockstep-events.D.internal"])
    assert sibling.find_contested(GROUP, [at(1)]) == {}
    stage.sync.siblings.observe(["orders", left])
    assert [reason.code for reason in sibling.find_contested(GROUP, [at(1)]).values()] == ["contest-unknown"]


def test_state_topic_made_anew_does_not_free_what_its_rows_had_contested(tmp_path: Path) -> None:
    sibling = sibling_of(merged(tmp_path))
    sibling.fold = StateFold(wants=WANTS)
    sibling.fold.fold(0, *TOPIC.encode())
    assert [reason.code for reason in sibling.find_contested(GROUP, [at(1)]).values()] == ["contested"]
    sibling.fold = StateFold(wants=WANTS)
    assert [reason.code for reason in sibling.find_contested(GROUP, [at(1)]).values()] == ["contest-unknown"]
    sibling.fold.fold(0, *replace(TOPIC, phase="deleted").encode())
    assert sibling.find_contested(GROUP, [at(1)]) == {}, "its new rows say that it feeds the topic no more"


async def test_flow_of_another_file_is_seen_by_its_state_topic(tmp_path: Path) -> None:
    stage = Stage(tmp_path, KEEPS)
    siblings = stage.sync.siblings
    names = [THEIR_STATE, "mm2-lockstep-blue-state.C.internal", "orders", "mm2-lockstep-events.C.internal"]
    own = "mm2-lockstep-state.A.internal"
    siblings.observe([*names, own])
    assert sorted(siblings.flows) == sorted(names[:2])
    reasons = siblings.find_contested(GROUP, [at(1)])
    assert [reason.code for reason in reasons.values()] == ["contest-unknown"], "its rows are not read yet"


def test_other_instance_that_copies_the_same_log_contests_nothing() -> None:
    """Its group.id was changed, and the topics of before are left."""
    same = replace(TOPIC, source_topic_id="id")
    assert fed_topics([same], {"A.t": "id"}) == {}
    assert fed_topics([same], {"A.t": "other"}) == fed_topics([TOPIC], {"A.t": ""}) == {"A.t": 1}


async def test_flow_that_is_seen_later_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    async def follow(flow: SiblingFlow) -> None:
        begun.append(flow.topic)
        await asyncio.Event().wait()

    monkeypatch.setattr(SiblingFlow, "run", follow)
    siblings = Stage(tmp_path, KEEPS).sync.siblings
    running = asyncio.ensure_future(siblings.run())
    await asyncio.sleep(0)
    siblings.observe([THEIR_STATE])
    await eventually(lambda: begun == [THEIR_STATE])
    siblings.observe([THEIR_STATE, "mm2-lockstep-state.D.internal"])
    await eventually(lambda: begun == [THEIR_STATE, "mm2-lockstep-state.D.internal"])
    running.cancel()
