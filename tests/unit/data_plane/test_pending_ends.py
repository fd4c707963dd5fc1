"""Slots that still have to find out where their copies end."""

from dataclasses import replace

import pytest

from lockstep_data_plane.driver.pending_ends import PendingEnds
from lockstep_rules.offsets.lag import SILENT_AFTER_S
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus

TP = ("t", 0)
KNOWN = PartitionProgress(topic="t", partition=0, producer_id=1, upstream=9, located=True)
UNKNOWN = replace(KNOWN, located=False)
DOUBT = replace(UNKNOWN, phase="halted", case="in-doubt")
STARTED, RELEASED = SlotStatus(slot=0, phase="started", run="x"), SlotStatus(slot=0, phase="released", run="x")


def rows(*state: Row) -> dict[str, Row]:
    return {row.key(): row for row in state}


@pytest.mark.parametrize(
    ("state", "pending"),
    [
        ((), False),
        ((RELEASED, KNOWN), False),
        ((RELEASED, UNKNOWN), True),
        ((STARTED, KNOWN), True),
        ((KNOWN,), False),
        ((RELEASED, DOUBT), True),
        ((RELEASED, replace(UNKNOWN, begins="altered")), False),
        ((RELEASED, replace(UNKNOWN, begins="lost")), True),
        ((RELEASED, replace(UNKNOWN, partition=1)), False),
        ((RELEASED, replace(UNKNOWN, beyond=3)), False),
    ],
)
def test_pending_end_by_the_rows_of_a_partition(state: tuple[Row, ...], pending: bool) -> None:
    assert PendingEnds().pending(rows(*state), 0, [TP]) is pending


@pytest.mark.parametrize(
    ("row", "only_locates", "pending"),
    [(DOUBT, True, False), (DOUBT, False, True), (UNKNOWN, True, True)],
    ids=["a search leaves it in doubt", "copied since, in doubt", "a search wrote no row"],
)
def test_pending_end_after_a_job(row: PartitionProgress, only_locates: bool, pending: bool) -> None:
    ends, state = PendingEnds(), rows(RELEASED, row)
    ends.note_job_end(state, 0, [TP], 0.0, only_locates=only_locates)
    assert ends.pending(state, 0, [TP]) is pending
    assert ends.pending(rows(RELEASED, replace(row, upstream=10)), 0, [TP]), "it was copied since"
    assert ends.pending(rows(STARTED, row), 0, [TP])


def test_killed_slot_without_partitions_is_released_once_it_is_silent() -> None:
    ends, state = PendingEnds(), rows(STARTED, Assignment(slot=0))
    assert list(ends.release_rows(state, {}, 0.0)) == []
    assert list(ends.release_rows(state, {}, SILENT_AFTER_S / 2)) == []
    (row,) = ends.release_rows(state, {}, SILENT_AFTER_S)
    assert (row.slot, row.phase, row.run) == (0, "released", "x")


@pytest.mark.parametrize(
    ("state", "running"), [((STARTED, Assignment(slot=0, partitions=(TP,))), ()), ((STARTED,), (0,)), ((RELEASED,), ())]
)
def test_a_slot_that_has_some_or_runs_speaks_for_itself(state: tuple[Row, ...], running: tuple[int, ...]) -> None:
    ends = PendingEnds()
    assert [list(ends.release_rows(rows(*state), running, now)) for now in (0.0, 8.0, 16.0)] == [[], [], []]


OPEN = replace(UNKNOWN, beyond=3)


def test_pending_end_is_searched_once_more_when_the_source_is_back() -> None:
    ends, state = PendingEnds(), rows(RELEASED, OPEN)
    assert ends.partitions_to_query(state, 0.0) == [TP]
    ends.note_source_answers([TP])
    assert ends.pending(state, 0, [TP])
    ends.note_job_end(state, 0, [TP], 0.0, only_locates=True)
    assert not ends.pending(state, 0, [TP]), "it was away again"


def test_pending_ends_are_none_while_the_partition_has_no_leader() -> None:
    ends, state = PendingEnds(), rows(RELEASED, OPEN)
    ends.note_source_answers([("t", 1)])
    assert not ends.pending(state, 0, [TP])
    assert ends.partitions_to_query(state, 0.0) == [TP], "to ask costs next to nothing"


def test_fruitless_search_is_repeated_later_each_time() -> None:
    ends, state, now, waits = PendingEnds(), rows(RELEASED, OPEN), 0.0, []
    for _ in range(7):
        ends.note_source_answers(ends.partitions_to_query(state, now))
        assert ends.pending(state, 0, [TP])
        ends.note_job_end(state, 0, [TP], now, only_locates=True)
        waits.append(next(wait for wait in range(1, 1_000) if ends.partitions_to_query(state, now + wait)))
        now += waits[-1]
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    ends.note_source_answers([TP])
    ends.note_job_end(rows(RELEASED, KNOWN), 0, [TP], now, only_locates=True)
    assert ends.partitions_to_query(state, now) == [TP], "a search that state the end forgets those in vain"
