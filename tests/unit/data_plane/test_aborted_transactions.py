"""Which batches belong to a transaction that a fetch answer names as aborted."""

from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, batch, records


def transactional(producer_id: int, first: int, count: int = 2) -> Batch:
    return batch(records(first, count), attributes=TRANSACTIONAL, producer=(producer_id, 0, 0))


def marker(producer_id: int, offset: int) -> Batch:
    return batch(records(offset, 1), attributes=TRANSACTIONAL | CONTROL, producer=(producer_id, 0, -1))


class TestAbortedTransactions:
    def held(self, named: list[tuple[int, int]], *batches: Batch) -> list[bool]:
        aborted = AbortedTransactions(named)
        return [aborted.holds(b) for b in batches]

    def test_holds_the_batches_of_the_named_transaction_and_no_others(self) -> None:
        assert self.held([(1, 0)], transactional(1, 0), transactional(2, 2), batch(records(4, 1))) == [
            True,
            False,
            False,
        ]

    def test_batch_without_transaction_is_never_held_by_its_producer(self) -> None:
        assert self.held([(1, 0)], batch(records(0, 1), producer=(1, 0, 0))) == [False]

    def test_the_marker_ends_it(self) -> None:
        assert self.held([(1, 0)], transactional(1, 0), marker(1, 2), transactional(1, 3)) == [True, False, False]

    def test_interleaved_producers_each_have_their_own_end(self) -> None:
        log = [
            transactional(1, 0),
            transactional(2, 2),
            marker(1, 4),
            transactional(2, 5),
            marker(2, 7),
            transactional(1, 8),
        ]
        assert self.held([(1, 0), (2, 2)], *log) == [True, True, False, True, False, False]

    def test_classify_several_transactions_of_one_producer(self) -> None:
        log = [
            transactional(1, 0), marker(1, 2),  # aborted
            transactional(1, 3), marker(1, 5),  # committed
            transactional(1, 6), marker(1, 8),  # aborted
        ]  # fmt: skip
        assert self.held([(1, 6), (1, 0)], *log) == [True, False, False, False, True, False]

    def test_transaction_begun_before_the_fetch_is_open_from_the_start(self) -> None:
        assert self.held([(1, 3)], transactional(1, 20), marker(1, 22)) == [True, False]

    def test_transaction_that_begins_within_a_batch_holds_it(self) -> None:
        assert self.held([(1, 1)], transactional(1, 0, 4)) == [True]

    def test_classify_without_aborted_transactions_holds_nothing(self) -> None:
        assert self.held([], transactional(1, 0), marker(1, 2), transactional(1, 3)) == [False, False, False]
