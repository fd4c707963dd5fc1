"""Whose word counts on where a legacy flow begins, and what it commits."""

from dataclasses import replace

from lockstep_data_plane.admin.legacy_group import commit_metadata, due_commits, plan_start
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import PartitionProgress

MARK = commit_metadata(Flow("source", "target"), 7)
TP = ("t", 0)
ROW = PartitionProgress(
    topic="t", partition=0, upstream=99, producer_id=7, producer_epoch=3, sequence=12, source_topic_id="s"
)


def test_plan_start_without_a_commit_changes_nothing() -> None:
    for rows in ({}, {TP: ROW}):
        start = plan_start([TP], rows, {}, MARK)
        assert (start.rows, start.marks, start.moved) == ([], {}, {})


def test_a_first_copy_begins_at_the_groups_position() -> None:
    start = plan_start([TP, ("t", 1)], {}, {TP: GroupOffset(40), ("other", 0): GroupOffset(5)}, MARK)
    [row] = start.rows
    assert (row.topic, row.partition, row.upstream, row.begins, row.producer_epoch) == ("t", 0, 39, "altered", 0)
    assert start.marks == {TP: GroupOffset(40, MARK)}
    assert not start.moved


def test_a_group_that_has_read_nothing_yet_begins_at_the_first_record() -> None:
    [row] = plan_start([TP], {}, {TP: GroupOffset(0)}, MARK).rows
    assert (row.upstream, row.begins) == (-1, "altered")


def test_plan_start_after_a_kill_before_the_first_record_repeats_the_start() -> None:
    start = plan_start([TP], {}, {TP: GroupOffset(40, MARK)}, MARK)
    assert [row.upstream for row in start.rows] == [39]
    assert not start.marks


def test_plan_start_ignores_an_older_own_commit() -> None:
    """It is older: committed each interval, while progress is exact."""
    start = plan_start([TP], {TP: ROW}, {TP: GroupOffset(60, MARK)}, MARK)
    assert (start.rows, start.marks, start.moved) == ([], {}, {})


def test_plan_start_follows_a_foreign_commit_in_a_new_epoch() -> None:
    for offset in (60, 150):
        start = plan_start([TP], {TP: ROW}, {TP: GroupOffset(offset)}, MARK)
        [row] = start.rows
        assert (row.upstream, row.begins, row.producer_epoch, row.sequence) == (offset - 1, "altered", 4, -1)
        assert start.marks == {TP: GroupOffset(offset, MARK)}
        assert start.moved == {TP: (100, offset)}


def test_plan_start_with_equal_position_needs_only_the_mark() -> None:
    start = plan_start([TP], {TP: ROW}, {TP: GroupOffset(100)}, MARK)
    assert not start.rows
    assert start.marks == {TP: GroupOffset(100, MARK)}


def test_plan_start_after_a_kill_before_the_mark_finds_the_same_row() -> None:
    [row] = plan_start([TP], {TP: ROW}, {TP: GroupOffset(60)}, MARK).rows
    again = plan_start([TP], {TP: row}, {TP: GroupOffset(60)}, MARK)
    assert not again.rows
    assert not again.moved
    assert again.marks == {TP: GroupOffset(60, MARK)}
    moved_on = plan_start([TP], {TP: row}, {TP: GroupOffset(61)}, MARK)
    assert [(row.upstream, row.producer_epoch) for row in moved_on.rows] == [(60, 4)]


def test_plan_start_counts_another_mark_as_foreign() -> None:
    for other in (commit_metadata(Flow("source", "elsewhere"), 7), commit_metadata(Flow("source", "target"), 8)):
        assert plan_start([TP], {TP: ROW}, {TP: GroupOffset(60, other)}, MARK).moved


def test_due_commits_have_acknowledged_offsets() -> None:
    writes, foreign = due_commits([ROW], {TP: GroupOffset(60, MARK)}, MARK)
    assert writes == {TP: GroupOffset(100, MARK)}
    assert not foreign


def test_due_commits_skip_committed_offsets_and_repeat_forgotten_ones() -> None:
    assert not due_commits([ROW], {TP: GroupOffset(100, MARK)}, MARK)[0]
    assert due_commits([ROW], {}, MARK)[0] == {TP: GroupOffset(100, MARK)}


def test_due_commits_without_a_copy_have_the_beginning() -> None:
    assert due_commits([replace(ROW, upstream=-1)], {}, MARK)[0] == {TP: GroupOffset(0, MARK)}


def test_due_commits_skip_a_row_that_is_not_applied_yet() -> None:
    assert not due_commits([replace(ROW, begins="altered")], {}, MARK)[0]


def test_due_commits_replace_a_foreign_reset_and_report_it() -> None:
    writes, foreign = due_commits([ROW], {TP: GroupOffset(5)}, MARK)
    assert writes == {TP: GroupOffset(100, MARK)}
    assert foreign == {TP: (5, 100)}
