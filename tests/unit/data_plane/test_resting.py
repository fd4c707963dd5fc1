"""A partition that rests is released when its row says what the target's log says, and never as if it did before.

`test_exact_resume.py` holds the same against a model of both logs, whatever happens before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_data_plane.core.phases import PartitionEvent, Phase
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_protocol.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch, records
from tests.unit.data_plane.test_machine import admit, append, partition

ROW = PartitionProgress(
    topic="t", partition=3, upstream=9, downstream=9, producer_id=4000, producer_epoch=1, sequence=9
)


def resumer(row: PartitionProgress = ROW) -> tuple[PartitionProgress, Phase]:
    """What one says that is told to rest while it resumes, and the target then says that it has no more."""
    p = partition()
    p.phase = Phase.RESUMING
    p.acked.load(row)
    p.on(PartitionEvent.REST)
    assert p.phase is Phase.RESUMING, "the target's log has not been looked at yet"
    assert not p.row().located
    p.resumed(row, LastAppend(row.sequence, row.downstream))
    assert (p.phase, p.records_to_skip) == (Phase.LOCATING, 0)
    p.on(PartitionEvent.LOCATED)
    return p.row(), p.phase


def test_rest_while_resuming_reads_the_target_first() -> None:
    row, phase = resumer()
    assert (phase, row.located, row.upstream) == (Phase.RELEASED, True, 9)


def test_rest_counts_records_of_the_target_beyond_the_row_first() -> None:
    p = partition()
    p.phase = Phase.RESUMING
    p.on(PartitionEvent.REST)
    p.resumed(ROW, LastAppend(14, 14))
    assert (p.phase, p.records_to_skip, p.reads) == (Phase.LOCATING, 5, True)
    admit(p, batch(records(10, 3)))
    assert (p.records_to_skip, p.row().located, p.row().upstream) == (2, False, 9)
    admit(p, batch(records(13, 4)), batch(records(17, 2)))
    assert p.records_to_skip == 0
    assert p.append_sequence.idle, "what the target has not is not sent"
    p.on(PartitionEvent.LOCATED)
    row = p.row()
    assert (row.located, row.upstream, row.sequence) == (True, 14, 14)


def test_rest_with_an_unknown_position_is_released_as_not_located() -> None:
    p = partition()
    p.phase = Phase.RESUMING
    p.acked.load(ROW)
    p.on(PartitionEvent.REST)
    p.rests, p.case = "stopped", "in-doubt"
    assert p.on(PartitionEvent.REFUSED, "the log ends before") is Phase.RELEASED
    row = p.row()
    assert (row.phase, row.case, row.reason, row.located) == ("halted", "in-doubt", "the log ends before", False)


def test_rest_of_a_halted_partition_reads_the_target_again() -> None:
    p = partition()
    p.on(PartitionEvent.REFUSED, "timestamps")
    assert p.on(PartitionEvent.DRAINED) is Phase.HALTED
    assert not p.row().located, "it is not at rest: it waits for a decision"
    assert p.on(PartitionEvent.REST) is Phase.RESUMING
    p.rests = "stopped"
    p.resumed(p.row(), LastAppend(-1, -1))
    p.on(PartitionEvent.LOCATED)
    row = p.row()
    assert (row.phase, row.reason, row.case, row.located) == ("stopped", "timestamps", "", True)


def test_rest_with_all_acknowledged_is_located_without_a_read() -> None:
    p = partition()
    admit(p, batch(records(0, 2)))
    flight = p.target_partitions[0].launch()
    p.on(PartitionEvent.REST)
    p.acknowledged(flight, 0)
    assert p.quiet
    assert p.sure
    assert p.on(PartitionEvent.DRAINED) is Phase.RELEASED
    assert (p.row().located, p.row().upstream) == (True, 1)


def test_rest_with_a_possible_second_writer_reads_the_target() -> None:
    p = partition()
    admit(p, batch(records(0, 2)))
    append(p, 0)
    p.on(PartitionEvent.REST)
    p.doubt()
    assert p.quiet
    assert not p.sure
    assert p.on(PartitionEvent.UNSURE) is Phase.RESUMING


@pytest.mark.parametrize("failed_first", [True, False])
def test_rest_after_a_failure_reads_the_target(failed_first: bool) -> None:
    p = partition()
    admit(p, batch(records(0, 2)))
    flight = p.target_partitions[0].launch()
    if failed_first:
        p.lost(flight)
        p.on(PartitionEvent.FAILED)
        p.on(PartitionEvent.REST)
    else:
        p.on(PartitionEvent.REST)
        p.lost(flight)
        p.on(PartitionEvent.FAILED)
    assert p.phase is Phase.DRAINING
    assert p.quiet
    assert not p.sure
    assert p.on(PartitionEvent.UNSURE) is Phase.RESUMING
    assert not p.row().located


def test_rest_while_records_are_still_counted_is_not_located() -> None:
    p = partition()
    p.phase = Phase.RESUMING
    p.resumed(ROW, LastAppend(14, 14))
    assert p.phase is Phase.COPYING
    p.on(PartitionEvent.REST)
    assert p.quiet
    assert not p.sure


def test_released_partition_that_moves_to_another_slot_is_not_located() -> None:
    p = partition()
    admit(p, batch(records(0, 2)))
    append(p, 0)
    p.on(PartitionEvent.LEAVE)
    p.on(PartitionEvent.DRAINED)
    assert not p.row().located


def test_leave_after_rest_releases_without_a_read() -> None:
    p = partition()
    p.phase = Phase.RESUMING
    p.on(PartitionEvent.REST)
    assert p.on(PartitionEvent.LEAVE) is Phase.RELEASED
    assert not p.row().located


def test_row_of_a_copying_partition_is_never_located() -> None:
    p = partition()
    p.phase = Phase.RESUMING
    p.resumed(replace(ROW, located=True), LastAppend(9, 9))
    assert not p.row().located
    admit(p, batch(records(10, 2)))
    append(p, 10)
    assert not p.row().located
