"""A group is not moved beyond records of another flow that feeds the same topic."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_checkpoint.run_translator import TranslatedOffset
from lockstep_checkpoint.sibling_flow import WANTS, SiblingFlow, fed_topics, find_contested
from lockstep_protocol.mm2_codec import Checkpoint
from lockstep_protocol.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_protocol.reason import NO_REASON, Reason
from lockstep_protocol.rows.state_rows import GroupStatus, MirroredTopic, Row
from lockstep_runtime.state.state_fold import StateFold
from tests.unit.checkpoint.test_group_sync_places import LINES, translated
from tests.unit.checkpoint.test_target_group_sync import GROUP, PLACE, Stage, ours

TOPIC = MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1)
THEIRS = GroupStatus(group=GROUP, phase="translated", positions=((*PLACE, 60, 60),))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep_checkpoint.target_group_sync.SECOND_CHECK_S", 0.0)


def at(downstream: int) -> Checkpoint:
    return Checkpoint(GROUP, *PLACE, UpstreamOffset(100), DownstreamOffset(downstream), "")


def contested(downstream: int, theirs: GroupStatus | None, topic: MirroredTopic = TOPIC) -> list[TopicPartition]:
    found = dict(find_contested([at(downstream)], fed_topics([topic]), theirs, "C->B"))
    assert all(reason.code == "contested" for reason in found.values())
    return list(found)


@pytest.mark.parametrize(("downstream", "found"), [(0, []), (60, []), (61, [PLACE]), (100, [PLACE])])
def test_place_beyond_that_of_the_other_flow_is_contested(downstream: int, found: list[TopicPartition]) -> None:
    assert contested(downstream, THEIRS) == found


@pytest.mark.parametrize(
    "theirs",
    [
        None,
        replace(THEIRS, positions=()),
        replace(THEIRS, phase="waiting"),
        replace(THEIRS, more_waiting=1),
        replace(THEIRS, waiting=((*PLACE, "a text"),)),
        replace(THEIRS, cause=Reason("a-code-of-a-newer-release")),
    ],
)
def test_place_that_the_other_flow_does_not_know_is_contested(theirs: GroupStatus | None) -> None:
    assert contested(1, theirs) == [PLACE]


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


def merged(folder: Path) -> Stage:
    """Return a flow with a sibling whose rows are not read yet."""
    stage = Stage(folder, LINES)
    stage.sync.siblings = [SiblingFlow(stage.ctx, "mm2-lockstep-state.C.internal")]
    return stage


async def test_group_is_moved_where_it_skips_nothing_of_any_source(tmp_path: Path) -> None:
    """Both sources have the group: this flow would put it at 100, the other one at 60."""
    stage = merged(tmp_path)
    (sibling,) = stage.sync.siblings
    sibling.fold = StateFold(wants=WANTS)
    for offset, row in enumerate((TOPIC, THEIRS)):
        sibling.fold.fold(offset, *row.encode())
    await translated(stage, TranslatedOffset(DownstreamOffset(100)), 100)
    await stage.sync.sync_now(ours, rewind=False)
    assert stage.target.writes == []
    assert not stage.row().synced
    assert stage.row().held_cause.code == "contested"
    assert "another flow too (mm2-lockstep-state.C.internal)" in stage.row().held_reason
    assert stage.report.held_for()["contested"] == 1
    await translated(stage, TranslatedOffset(DownstreamOffset(50)), 50)
    await stage.sync.sync_now(ours, rewind=False)
    assert stage.target.writes == [(GROUP, PLACE, 50)]
    assert (stage.row().held_cause, stage.report.held_for()["contested"]) == (NO_REASON, 0)


def test_topics_of_the_other_flow_are_found_once_for_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sibling,) = merged(tmp_path).sync.siblings
    sibling.fold = fold = StateFold(wants=WANTS)
    fold.fold(0, *TOPIC.encode())
    found: list[type[Row]] = []

    def every(fold: StateFold, kind: type[Row]) -> list[Row]:
        found.append(kind)
        return list(fold.rows.values())

    monkeypatch.setattr(StateFold, "all", every)
    assert [list(sibling.contested(group, [at(1)])) for group in ("g", "h")] == [[PLACE], [PLACE]]
    assert len(found) == 1
    fold.fold(1, *replace(TOPIC, phase="deleted").encode())
    assert not sibling.contested("g", [at(1)])


@given(st.integers(0, 9), st.integers(0, 9))
def test_group_of_a_mesh_goes_to_the_earlier_place_of_both_flows(one: int, other: int) -> None:
    """A->B and C->B each look at the other's row: what neither finds contested is the earlier place."""
    rows = [replace(THEIRS, positions=((*PLACE, 100, place),)) for place in (one, other)]
    free = [place for place, theirs in zip((one, other), reversed(rows), strict=True) if not contested(place, theirs)]
    assert set(free) == {min(one, other)}


async def test_group_waits_while_rows_of_the_other_flow_are_unread(tmp_path: Path) -> None:
    stage = merged(tmp_path)
    await stage.place(100)
    await stage.sync.sync_now(ours, rewind=False)
    assert stage.target.writes == []
    stage.sync.siblings[0].is_missing = True  # it never ran
    await stage.sync.sync_now(ours, rewind=False)
    assert stage.target.writes == [(GROUP, PLACE, 100)]
