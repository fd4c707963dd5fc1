"""Whose word counts on where a legacy flow begins, and what it commits."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pytest

from lockstep_data_plane.admin.legacy_group import Positions, commit_metadata, due_commits, plan_start
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import PartitionProgress

MARK = commit_metadata(Flow("source", "target"), 7)
TP = ("t", 0)
ROW = PartitionProgress(
    topic="t", partition=0, upstream=99, producer_id=7, producer_epoch=3, sequence=12, source_topic_id="s"
)


OTHER_FLOW, OTHER_ID = commit_metadata(Flow("source", "elsewhere"), 7), commit_metadata(Flow("source", "target"), 8)


class Case(NamedTuple):
    """What a group has committed, the progress, and the start: behind which offset, which mark, what moved."""

    about: str
    row: PartitionProgress | None
    committed: GroupOffset | None
    upstream: int | None = None
    mark: GroupOffset | None = None
    moved: tuple[int, int] | None = None


CASES = [
    Case("no commit, no progress", None, None),
    Case("no commit", ROW, None),
    Case("a first copy begins at the group's offset", None, GroupOffset(40), 39, GroupOffset(40, MARK)),
    Case("a group that has read nothing yet", None, GroupOffset(0), -1, GroupOffset(0, MARK)),
    Case("a kill before the first record", None, GroupOffset(40, MARK), 39),
    Case("an own commit is older than progress, which is exact", ROW, GroupOffset(60, MARK)),
    Case("a foreign commit before", ROW, GroupOffset(60), 59, GroupOffset(60, MARK), (100, 60)),
    Case("a foreign commit behind", ROW, GroupOffset(150), 149, GroupOffset(150, MARK), (100, 150)),
    Case("a foreign commit of the same offset", ROW, GroupOffset(100), None, GroupOffset(100, MARK)),
    Case("of another flow", ROW, GroupOffset(60, OTHER_FLOW), 59, GroupOffset(60, MARK), (100, 60)),
    Case("of another producer id", ROW, GroupOffset(60, OTHER_ID), 59, GroupOffset(60, MARK), (100, 60)),
]


@pytest.mark.parametrize("case", CASES, ids=[case.about for case in CASES])
def test_plan_start_by_progress_and_commit(case: Case) -> None:
    rows = {} if case.row is None else {TP: case.row}
    committed = {("other", 0): GroupOffset(5)} | ({} if case.committed is None else {TP: case.committed})
    start = plan_start([TP, ("t", 1)], rows, committed, MARK)
    begun = (0, -1) if case.row is None else (4, -1)  # a copy that was there before goes on in a new epoch
    wanted = [] if case.upstream is None else [("t", 0, case.upstream, "altered", *begun)]
    assert [(r.topic, r.partition, r.upstream, r.begins, r.producer_epoch, r.sequence) for r in start.rows] == wanted
    assert start.marks == ({} if case.mark is None else {TP: case.mark})
    assert start.moved == ({} if case.moved is None else {TP: case.moved})


def test_plan_start_after_a_kill_before_the_mark_finds_the_same_row() -> None:
    [row] = plan_start([TP], {TP: ROW}, {TP: GroupOffset(60)}, MARK).rows
    again = plan_start([TP], {TP: row}, {TP: GroupOffset(60)}, MARK)
    assert not again.rows
    assert not again.moved
    assert again.marks == {TP: GroupOffset(60, MARK)}
    moved_on = plan_start([TP], {TP: row}, {TP: GroupOffset(61)}, MARK)
    assert [(row.upstream, row.producer_epoch) for row in moved_on.rows] == [(60, 4)]


@pytest.mark.parametrize(
    ("row", "committed", "writes", "foreign"),
    [
        (ROW, {TP: GroupOffset(60, MARK)}, {TP: GroupOffset(100, MARK)}, {}),
        (ROW, {TP: GroupOffset(100, MARK)}, {}, {}),
        (ROW, {}, {TP: GroupOffset(100, MARK)}, {}),
        (replace(ROW, upstream=-1), {}, {TP: GroupOffset(0, MARK)}, {}),
        (replace(ROW, begins="altered"), {}, {}, {}),
        (ROW, {TP: GroupOffset(5)}, {TP: GroupOffset(100, MARK)}, {TP: (5, 100)}),
    ],
    ids=["acknowledged", "committed", "forgotten", "nothing copied", "not applied yet", "a foreign reset"],
)
def test_due_commits_have_acknowledged_offsets(
    row: PartitionProgress, committed: Positions, writes: Positions, foreign: Mapping[TopicPartition, tuple[int, int]]
) -> None:
    assert due_commits([row], committed, MARK) == (writes, foreign)
