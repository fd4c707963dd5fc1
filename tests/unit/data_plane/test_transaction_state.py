"""When a transaction of a partition ends, what it holds, and that nothing counts before (`transaction_state.py`)."""

from collections.abc import Sequence

import pytest

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.core.effects import ForeignRecords
from lockstep_data_plane.core.events import (
    Acked,
    Failed,
    Refused,
    TransactionCommitted,
    TransactionEnding,
    TransactionJoined,
    TransactionOpened,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.transaction_state import (
    LONGEST_S,
    SHARE,
    SHORTEST_S,
    TransactionBoundary,
    TransactionStage,
    TransactionState,
)
from lockstep_data_plane.record_batch.layout import scan
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, batch, crc_is_right, records
from tests.support.reasons import reported
from tests.unit.data_plane.partition_steps import (
    admit,
    append,
    counted,
    joins,
    launch,
    offers,
    open_transaction,
    phase_after,
    reports,
    resumed,
    waits,
)


def partition(boundary: TransactionBoundary | None = None) -> tuple[PartitionState, TransactionState]:
    """One that copies in transactions; the target's log ends at 100."""
    transactions = TransactionState("lockstep-a-b-t-0", boundary or TransactionBoundary())
    row = PartitionProgress(topic="t", partition=0, producer_id=7, producer_epoch=3, downstream=99, transactional=True)
    return resumed(row, transactions=transactions), transactions


def commit(p: PartitionState) -> Sequence[Ack]:
    return counted(p.step(TransactionCommitted(now_ms=0)))


class TestWhatCounts:
    def test_transaction_sends_nothing_before_it_is_open_or_while_it_ends(self) -> None:
        p, transactions = partition()
        admit(p, batch(records(0, 2)), batch(records(2, 2)))
        assert p.wants_transaction
        assert not waits(p)
        joined = joins(p)
        assert (transactions.stage, set(joined), waits(p)) == (TransactionStage.OPENING, {0}, False)
        assert offers(p.step(TransactionJoined(joined)))
        p.step(TransactionOpened(0.0))
        assert waits(p)
        assert not p.wants_transaction
        p.step(TransactionEnding(0.0))
        assert not waits(p)

    def test_transactional_batch_has_its_bit_and_a_valid_crc(self) -> None:
        p, _ = partition()
        admit(p, batch(records(0, 2)))
        open_transaction(p)
        (sent,) = scan(bytes(launch(p).data))
        assert sent.attributes & TRANSACTIONAL
        assert (sent.producer_id, sent.producer_epoch, sent.base_sequence) == (7, 3, 0)
        assert crc_is_right(sent.data)

    def test_transaction_progress_counts_only_after_the_commit(self) -> None:
        p, transactions = partition()
        admit(p, batch(records(0, 3)), batch(records(3, 2)))
        open_transaction(p)
        append(p, 100)
        before = p.row()
        assert (before.upstream, before.downstream, before.sequence, before.records) == (-1, 99, -1, 0)
        assert transactions.held
        assert p.progress == (4, 0), "both were merged into one outgoing batch"
        p.step(TransactionEnding(1.0))
        acks = commit(p)
        after = p.row()
        assert (after.upstream, after.sequence, after.records) == (4, 4, 5)
        assert after.downstream == 105, "the marker stands behind the five"
        assert len(acks) == 1
        assert not transactions.held
        assert (transactions.stage, transactions.progress_sequence) == (TransactionStage.CLOSED, 1)

    def test_transaction_marker_is_not_counted_as_a_foreign_record(self) -> None:
        p, _ = partition()
        for first, at in ((0, 100), (2, 103), (4, 106)):
            admit(p, batch(records(first, 2)))
            open_transaction(p)
            assert reports(append(p, at)) == []
            commit(p)
        admit(p, batch(records(6, 1)))
        open_transaction(p)
        (report,) = reports(append(p, 112))
        assert isinstance(report, ForeignRecords)
        assert report.ack.foreign == 3

    def test_transaction_frees_held_bytes_and_still_counts_them(self) -> None:
        p, transactions = partition()
        sent = batch(records(0, 3))
        admit(p, sent)
        open_transaction(p)
        append(p, 100)
        assert [len(r.outgoing.data) for r in transactions.held] == [0]
        commit(p)
        assert p.row().bytes == len(sent.data)

    def test_transaction_progress_includes_skipped_records(self) -> None:
        p, _ = partition()
        admit(p, batch(records(0, 3)))
        open_transaction(p)
        append(p, 100)
        admit(p, batch(records(3, 1), attributes=CONTROL | TRANSACTIONAL))
        assert (p.row().upstream, p.progress[0], p.position) == (-1, 3, 4)
        commit(p)
        assert p.row().upstream == 3
        admit(p, batch(records(4, 1), attributes=CONTROL | TRANSACTIONAL))
        assert p.row().upstream == 4, "nothing is held: it is decided at once"

    def test_transaction_failure_drops_held_records_and_moves_nothing(self) -> None:
        p, transactions = partition()
        admit(p, batch(records(0, 3)))
        open_transaction(p)
        append(p, 100)
        assert phase_after(p, Failed()) is Phase.SETTLING
        assert not transactions.held
        assert p.row().upstream == -1

    def test_transaction_survives_a_source_failure_but_not_a_target_failure(self) -> None:
        p, transactions = partition()
        admit(p, batch(records(0, 3)))
        open_transaction(p)
        append(p, 100)
        admit(p, batch(records(3, 2)))
        outstanding = launch(p)
        assert phase_after(p, Failed(source_failed=True)) is Phase.SETTLING
        assert p.ends_transaction_first
        assert p.progress[0] == 2
        p.step(Acked(outstanding, 103, now_ms=0))
        assert p.drained
        assert p.progress[0] == 4, "what was in flight counts as well"
        p.step(Failed())
        assert not p.ends_transaction_first
        assert not transactions.held

    def test_transaction_refusal_keeps_good_records(self) -> None:
        p, transactions = partition()
        admit(p, batch(records(0, 3)))
        open_transaction(p)
        append(p, 100)
        admit(p, batch(records(3, 2)))
        p.step(Refused(reported("why"), sent=launch(p)))
        assert p.drained
        assert transactions.held
        assert p.transaction_due_in(0.0) == 0.0
        commit(p)
        assert p.row().upstream == 2


class TestWhenItEnds:
    def held(self, boundary: TransactionBoundary | None = None) -> TransactionState:
        p, transactions = partition(boundary)
        admit(p, batch(records(0, 1)))
        open_transaction(p, 10.0)
        append(p, 100)
        return transactions

    def test_transaction_without_records_is_never_due(self) -> None:
        assert TransactionState("id").due_in(1e9, idle=True, caught_up=True, leaving=True) is None

    def test_transaction_is_due_at_once_when_caught_up_or_leaving(self) -> None:
        assert self.held().due_in(10.0, idle=True, caught_up=True) == 0.0
        assert self.held(TransactionBoundary(60.0)).due_in(10.0, idle=True, caught_up=False, leaving=True) == 0.0

    @pytest.mark.parametrize(("idle", "caught_up"), [(False, False), (True, False), (False, True)])
    def test_transaction_is_due_after_a_short_time_with_more_records(self, idle: bool, caught_up: bool) -> None:
        transactions = self.held()
        assert transactions.due_in(10.0, idle=idle, caught_up=caught_up) == pytest.approx(SHORTEST_S)
        assert transactions.due_in(10.0 + SHORTEST_S, idle=idle, caught_up=caught_up) == 0.0

    def test_transaction_with_an_interval_is_due_at_the_interval(self) -> None:
        transactions = self.held(TransactionBoundary(2.0))
        assert transactions.due_in(10.5, idle=True, caught_up=True) == pytest.approx(1.5)
        assert transactions.due_in(12.5, idle=False, caught_up=False) == 0.0

    @pytest.mark.parametrize(("opened", "due_s"), [(11.05, SHARE * 0.05), (100.0, LONGEST_S)])
    def test_transaction_stays_open_longer_the_longer_the_last_commit_was(self, opened: float, due_s: float) -> None:
        transactions = self.held()
        transactions.mark_ending(11.0)
        transactions.take_committed()
        transactions.mark_opened(opened)
        transactions.hold(self.held().held)
        assert transactions.due_in(opened, idle=False, caught_up=False) == pytest.approx(due_s)
