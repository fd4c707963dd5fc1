"""Records that a flow has copied to a cluster are known once its slots have written them down."""

from dataclasses import replace

import pytest

from lockstep_ops.switch.diverged_records import WRITTEN_DOWN_MS, SlotWitness
from lockstep_ops.switch.switch_positions import diverged_records, unwritten_tails
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus
from tests.support.takeover_rows import progress, rows_of, topic

SAID = SlotStatus(slot=0, phase="started", run="r1", resuming=0, at_ms=1_000)
LATER = replace(SAID, at_ms=1_000 + WRITTEN_DOWN_MS)


@pytest.mark.parametrize(
    ("said", "vouches"),
    [
        ((), False),
        ((SAID,), False),
        ((SAID, LATER), True),
        ((SAID, replace(LATER, at_ms=LATER.at_ms - 1)), False),
        ((SAID, replace(LATER, run="r2")), False),
        ((replace(SAID, resuming=1), LATER), False),
        ((SAID, replace(LATER, resuming=1)), False),
        ((replace(SAID, resuming=-1), replace(LATER, resuming=-1)), False),
        ((SAID, replace(LATER, phase="released")), False),
    ],
)
def test_slot_vouches_for_its_rows_once_it_has_spoken_twice(said: tuple[SlotStatus, ...], vouches: bool) -> None:
    witness = SlotWitness([replace(SAID, at_ms=900)])
    for status in said:
        witness.hear([status])
    assert witness.vouches(0, 0) is vouches
    assert not witness.vouches(1, 0)


def test_words_of_a_slot_from_before_do_not_count() -> None:
    witness = SlotWitness([SAID])
    witness.hear([SAID])
    witness.hear([LATER])
    assert not witness.vouches(0, 0)
    witness.hear([replace(LATER, at_ms=LATER.at_ms + WRITTEN_DOWN_MS)])
    assert witness.vouches(0, 0)


def test_run_that_was_killed_after_its_first_word_does_not_vouch() -> None:
    witness = SlotWitness([])
    witness.hear([SAID])
    witness.hear([replace(LATER, run="r2")])
    assert not witness.vouches(0, 0)
    witness.hear([replace(LATER, run="r2", at_ms=LATER.at_ms + WRITTEN_DOWN_MS)])
    assert witness.vouches(0, 0)


def test_slot_vouches_for_an_assignment_that_it_has_taken_up() -> None:
    """A partition may come to it from a slot that was killed."""
    witness, taken = SlotWitness([]), replace(LATER, generation=4)
    for status in (SAID, LATER, replace(taken, at_ms=LATER.at_ms + 1)):
        witness.hear([status])
    assert (witness.vouches(0, 0), witness.vouches(0, 4)) == (True, False)
    witness.hear([replace(taken, at_ms=LATER.at_ms + 1 + WRITTEN_DOWN_MS)])
    assert (witness.vouches(0, 4), witness.vouches(0, 5)) == (True, False)


# -- records that no row has yet --------------------------------------------------------------------------------------

SAME = topic(source_topic="t", target_topic="t")
BACK = PartitionProgress(
    topic="t", partition=0, phase="copying", upstream=9, downstream=19, sequence=9, open_run=(0, 10, 10), producer_id=4
)
FORTH = progress(0, upstream=9, sequence=9, open_run=(0, 0, 10))


def back_rows(*rows: Row) -> dict[str, Row]:
    return rows_of(SAME, Assignment(slot=3, partitions=(("t", 0),)), *rows)


@pytest.mark.parametrize(
    ("row", "end", "tails"),
    [
        (BACK, 84, {("t", 0): (3, 0)}),
        (BACK, 20, {}),
        (replace(BACK, phase="stopped", located=True), 84, {}),
        (replace(BACK, phase="stopped"), 84, {("t", 0): (3, 0)}),
        (replace(BACK, uncounted=64), 84, {("t", 0): (-1, 0)}),
        (replace(BACK, phase="halted", uncounted=64), 84, {("t", 0): (-1, 0)}),
    ],
)
def test_tail_behind_the_row_of_the_way_back_may_be_its_own(
    row: PartitionProgress, end: int, tails: dict[tuple[str, int], tuple[int, int]]
) -> None:
    tp, ends = ("t", 0), {("t", 0): end}
    assert unwritten_tails([tp], ends, back_rows(row)) == tails
    diverged = diverged_records(ends, rows_of(SAME, FORTH), back_rows(row))
    assert diverged == ({tp: end - 20} if end > 20 else {})


def test_tail_of_what_the_way_back_does_not_copy_is_no_copy() -> None:
    ends = {("t", 0): 84, ("u", 0): 84, ("t", 1): 84}
    assert unwritten_tails(ends, ends, back_rows()) == {}
    assert unwritten_tails(ends, ends, back_rows(BACK)) == {("t", 0): (3, 0)}


def test_tail_of_a_partition_without_a_slot_is_nobodys() -> None:
    rows = rows_of(SAME, BACK, Assignment(slot=3, partitions=(("t", 0),), ending=True))
    assert unwritten_tails([("t", 0)], {("t", 0): 84}, rows) == {("t", 0): (-1, 0)}
