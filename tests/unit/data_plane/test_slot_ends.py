"""Which slots still owe it to say where their copies end."""

from dataclasses import replace

import pytest

from lockstep_data_plane.driver.slot_ends import SlotEnds
from lockstep_rules.offsets.lag import SILENT_AFTER_S
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus

TP = ("t", 0)
KNOWN = PartitionProgress(topic="t", partition=0, producer_id=1, upstream=9, located=True)
UNKNOWN = replace(KNOWN, located=False)
DOUBT = replace(UNKNOWN, phase="halted", case="in-doubt")
STARTED, RELEASED = SlotStatus(slot=0, phase="started", run="x"), SlotStatus(slot=0, phase="released", run="x")


def rows(*found: Row) -> dict[str, Row]:
    return {row.key(): row for row in found}


@pytest.mark.parametrize(
    ("found", "owed"),
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
def test_slot_ends_owes_a_locate_by_the_rows_of_a_partition(found: tuple[Row, ...], owed: bool) -> None:
    assert SlotEnds().owed(rows(*found), 0, [TP]) is owed


def test_slot_ends_does_not_repeat_a_locate_without_result() -> None:
    ends, found = SlotEnds(), rows(RELEASED, DOUBT)
    ends.ended(found, 0, [TP], 0.0, only_locates=True)
    assert not ends.owed(found, 0, [TP])
    assert ends.owed(rows(RELEASED, replace(DOUBT, upstream=10)), 0, [TP]), "it was copied since"
    assert ends.owed(rows(STARTED, DOUBT), 0, [TP])
    ends.ended(found, 0, [TP], 0.0, only_locates=False)
    assert ends.owed(found, 0, [TP]), "who has copied since has to look again"


def test_slot_ends_owes_a_locate_until_its_row_is_written() -> None:
    ends, found = SlotEnds(), rows(RELEASED, UNKNOWN)
    ends.ended(found, 0, [TP], 0.0, only_locates=True)
    assert ends.owed(found, 0, [TP])


def test_killed_slot_without_partitions_is_released_once_it_is_silent() -> None:
    ends, found = SlotEnds(), rows(STARTED, Assignment(slot=0))
    assert list(ends.orphaned_rows(found, {}, 0.0)) == []
    assert list(ends.orphaned_rows(found, {}, SILENT_AFTER_S / 2)) == []
    (row,) = ends.orphaned_rows(found, {}, SILENT_AFTER_S)
    assert (row.slot, row.phase, row.run) == (0, "released", "x")


@pytest.mark.parametrize(
    ("found", "running"),
    [
        ((STARTED, Assignment(slot=0, partitions=(TP,))), ()),
        ((STARTED,), (0,)),
        ((RELEASED,), ()),
    ],
)
def test_a_slot_that_has_some_or_runs_speaks_for_itself(found: tuple[Row, ...], running: tuple[int, ...]) -> None:
    ends = SlotEnds()
    assert [list(ends.orphaned_rows(rows(*found), running, now)) for now in (0.0, 8.0, 16.0)] == [[], [], []]


OPEN = replace(UNKNOWN, beyond=3)


def test_slot_ends_asks_once_more_when_the_source_is_back() -> None:
    ends, found = SlotEnds(), rows(RELEASED, OPEN)
    assert ends.unanswered(found, 0.0) == [TP]
    ends.source_answers([TP])
    assert ends.owed(found, 0, [TP])
    ends.ended(found, 0, [TP], 0.0, only_locates=True)
    assert not ends.owed(found, 0, [TP]), "it was away again"


def test_slot_ends_owes_nothing_while_its_partition_has_no_leader() -> None:
    ends, found = SlotEnds(), rows(RELEASED, OPEN)
    ends.source_answers([("t", 1)])
    assert not ends.owed(found, 0, [TP])
    assert ends.unanswered(found, 0.0) == [TP], "to ask costs next to nothing"


def test_slot_ends_repeats_a_locate_in_vain_later_each_time() -> None:
    ends, found, now, waits = SlotEnds(), rows(RELEASED, OPEN), 0.0, []
    for _ in range(7):
        ends.source_answers(ends.unanswered(found, now))
        assert ends.owed(found, 0, [TP])
        ends.ended(found, 0, [TP], now, only_locates=True)
        waits.append(next(wait for wait in range(1, 1_000) if ends.unanswered(found, now + wait)))
        now += waits[-1]
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    ends.source_answers([TP])
    ends.ended(rows(RELEASED, KNOWN), 0, [TP], now, only_locates=True)
    assert ends.unanswered(found, now) == [TP], "a search that found the end forgets those in vain"
