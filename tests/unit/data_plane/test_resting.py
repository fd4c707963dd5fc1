"""A partition that rests is released when its row says what the target's log says, and never as if it did before.

`test_exact_resume.py` holds the same against a model of both logs, whatever happens before."""

from dataclasses import replace

import pytest

from lockstep_data_plane.core.effects import Effects, Persist
from lockstep_data_plane.core.events import (
    Acked,
    AllAnswered,
    Failed,
    Leave,
    NothingCopied,
    Refused,
    Resumed,
    RowLoaded,
    Unplaced,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch, records
from tests.support.reasons import reported
from tests.unit.data_plane.partition_steps import admit, append, fetches_from, launch, phase_after, reports, resumed

ROW = PartitionProgress(
    topic="t", partition=3, upstream=9, downstream=9, producer_id=4000, producer_epoch=1, sequence=9
)
REST = Leave("stopped")


def resuming(row: PartitionProgress = ROW) -> PartitionState:
    """One that is to rest before it has resumed."""
    p = PartitionState("t", 3, "a.t", 100)
    p.step(RowLoaded(row, at_rest=True))
    assert phase_after(p, REST) is Phase.RESUMING, "the target's log has not been looked at yet"
    assert not p.row().located
    return p


def resume_at(p: PartitionState, sequence: int, row: PartitionProgress = ROW) -> Effects:
    """The target says that it has so many."""
    return p.step(Resumed(row, LastAppend(sequence, sequence)))


def test_rest_while_resuming_reads_the_target_first() -> None:
    p = resuming()
    assert fetches_from(resume_at(p, 9)) is None
    assert p.phase is Phase.RELEASED
    assert (p.row().phase, p.row().located, p.row().upstream, p.acked.progress_before) == ("stopped", True, 9, 9)


def test_rest_of_what_was_never_copied_is_located_at_once() -> None:
    p = resuming()
    assert phase_after(p, NothingCopied()) is Phase.RELEASED
    assert p.row().located


def test_rest_counts_records_of_the_target_beyond_the_row_first() -> None:
    p = resuming()
    assert fetches_from(resume_at(p, 14)) == 10
    assert (p.phase, p.records_to_skip, p.reads) == (Phase.LOCATING, 5, True)
    admit(p, batch(records(10, 3)))
    assert (p.records_to_skip, p.row().located, p.row().upstream) == (2, False, 9)
    admit(p, batch(records(13, 4)), batch(records(17, 2)))
    assert p.phase is Phase.RELEASED
    assert p.routing.records_held == 0, "what the target has not is not sent"
    row = p.row()
    assert (row.located, row.upstream, row.sequence) == (True, 14, 14)


def test_row_of_a_copy_that_counts_has_the_number_left() -> None:
    p = PartitionState("t", 3, "a.t", 100)
    p.step(RowLoaded(ROW))
    resume_at(p, 14)
    assert (p.phase, p.row().uncounted) == (Phase.COPYING, 5)
    effects = admit(p, batch(records(10, 3)))
    assert (p.row().uncounted, p.row().upstream) == (2, 9), "none of these has a place yet"
    assert any(isinstance(effect, Persist) for effect in effects), "a row is due"
    p.step(Refused(reported("timestamps")))
    assert phase_after(p, AllAnswered()) is Phase.HALTED
    assert p.row().uncounted == 2, "and nothing moves until somebody decides"


def test_row_of_records_counted_to_the_end_has_none_uncounted() -> None:
    p = PartitionState("t", 3, "a.t", 100)
    p.step(RowLoaded(replace(ROW, uncounted=7)))
    resume_at(p, 14)
    admit(p, batch(records(10, 5)))
    assert (p.row().uncounted, p.row().upstream) == (0, 14)


def test_rest_without_the_source_has_uncounted_records_once() -> None:
    """The slot was asked to rest while it counted, and the source went away: nobody waits for it."""
    p = PartitionState("t", 3, "a.t", 100)
    p.step(RowLoaded(ROW))
    resume_at(p, 14)
    p.step(REST)
    assert phase_after(p, AllAnswered()) is Phase.RESUMING
    assert phase_after(p, Unplaced(5)) is Phase.RELEASED
    assert (p.row().phase, p.row().beyond, p.row().uncounted) == ("stopped", 5, 0)


def test_rest_without_the_source_is_released_with_a_count() -> None:
    p = resuming(replace(ROW, source_end=20, lag_records=10, at_ms=5_000, lag_ms=1_000))
    assert phase_after(p, Unplaced(4)) is Phase.RELEASED
    row = p.row()
    assert (row.phase, row.located, row.beyond, row.needs_source) == ("stopped", False, 4, True)
    assert (row.upstream, row.sequence, row.case) == (9, 9, "")
    assert (row.source_end, row.lag_records, p.acked.lag_ms(6_000)) == (20, 10, 2_000), "what was known stays known"


def test_rest_with_an_unknown_position_is_released_as_not_located() -> None:
    p = resuming()
    effects = p.step(Refused(reported("the log ends before"), case="in-doubt"))
    assert (p.phase, len(reports(effects))) == (Phase.RELEASED, 1)
    row = p.row()
    assert (row.phase, row.case, row.reason, row.located) == ("halted", "in-doubt", "the log ends before", False)


def test_rest_of_a_halted_partition_reads_the_target_again() -> None:
    p = resumed(ROW)
    p.step(Refused(reported("timestamps")))
    assert phase_after(p, AllAnswered()) is Phase.HALTED
    assert not p.row().located, "it is not at rest: it waits for a decision"
    assert phase_after(p, REST) is Phase.RESUMING
    resume_at(p, 9, p.row())
    row = p.row()
    assert (row.phase, row.reason, row.case, row.located) == ("stopped", "timestamps", "", True)


def test_rest_with_all_acknowledged_is_located_without_a_read() -> None:
    p = resumed(ROW)
    admit(p, batch(records(10, 2)))
    sent = launch(p)
    p.step(REST)
    p.step(Acked(sent, 10, now_ms=0))
    assert p.drained
    assert p.all_appends_accounted
    assert phase_after(p, AllAnswered()) is Phase.RELEASED
    assert (p.row().located, p.row().upstream) == (True, 11)


def test_rest_with_a_possible_second_writer_reads_the_target() -> None:
    p = resumed(ROW)
    admit(p, batch(records(10, 2)))
    append(p, 10)
    p.step(Leave("stopped", in_doubt=True))
    assert p.drained
    assert not p.all_appends_accounted
    assert phase_after(p, AllAnswered()) is Phase.RESUMING


@pytest.mark.parametrize("failed_first", [True, False])
def test_rest_after_a_failure_reads_the_target(failed_first: bool) -> None:
    p = resumed(ROW)
    admit(p, batch(records(10, 2)))
    failed = Failed(sent=launch(p))
    for event in (failed, REST) if failed_first else (REST, failed):
        p.step(event)
    assert p.phase is Phase.DRAINING
    assert p.drained
    assert not p.all_appends_accounted
    assert phase_after(p, AllAnswered()) is Phase.RESUMING
    assert not p.row().located


def test_rest_while_records_are_still_counted_is_not_located() -> None:
    p = resumed(ROW, LastAppend(14, 14))
    assert p.phase is Phase.COPYING
    p.step(REST)
    assert p.drained
    assert not p.all_appends_accounted


def test_released_partition_that_moves_to_another_slot_is_not_located() -> None:
    p = resumed(ROW)
    admit(p, batch(records(10, 2)))
    append(p, 10)
    p.step(Leave(goes_on=True))
    p.step(AllAnswered())
    assert not p.row().located


def test_leave_after_rest_releases_without_a_read() -> None:
    p = resuming()
    assert phase_after(p, Leave(goes_on=True)) is Phase.RELEASED
    assert not p.row().located


def test_rest_after_leave_changes_only_the_word() -> None:
    p = resumed(ROW)
    p.step(Leave(goes_on=True))
    p.step(Leave("paused"))
    assert not p.resolves_end
    p.step(AllAnswered())
    assert (p.row().phase, p.row().located) == ("paused", False)


def test_row_of_a_copying_partition_is_never_located() -> None:
    p = resumed(replace(ROW, located=True))
    assert not p.row().located
    admit(p, batch(records(10, 2)))
    append(p, 10)
    assert not p.row().located
