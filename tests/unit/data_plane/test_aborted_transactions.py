"""Which batches belong to a transaction that a fetch answer names as aborted."""

import pytest

from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, batch, records


def transactional(producer_id: int, first: int, count: int = 2) -> Batch:
    return batch(records(first, count), attributes=TRANSACTIONAL, producer=(producer_id, 0, 0))


def marker(producer_id: int, offset: int) -> Batch:
    return batch(records(offset, 1), attributes=TRANSACTIONAL | CONTROL, producer=(producer_id, 0, -1))


CASES = {
    "the named transaction and no other": (
        [(1, 0)], [transactional(1, 0), transactional(2, 2), batch(records(4, 1))], [True, False, False],
    ),
    "without a transaction": ([(1, 0)], [batch(records(0, 1), producer=(1, 0, 0))], [False]),
    "the marker ends it": ([(1, 0)], [transactional(1, 0), marker(1, 2), transactional(1, 3)], [True, False, False]),
    "interleaved producers end apart": (
        [(1, 0), (2, 2)],
        [transactional(1, 0), transactional(2, 2), marker(1, 4),
         transactional(2, 5), marker(2, 7), transactional(1, 8)],
        [True, True, False, True, False, False],
    ),
    "of one producer aborted, committed, aborted": (
        [(1, 6), (1, 0)],
        [transactional(1, 0), marker(1, 2), transactional(1, 3), marker(1, 5), transactional(1, 6), marker(1, 8)],
        [True, False, False, False, True, False],
    ),
    "begun before the fetch": ([(1, 3)], [transactional(1, 20), marker(1, 22)], [True, False]),
    "begun within a batch": ([(1, 1)], [transactional(1, 0, 4)], [True]),
    "none named": ([], [transactional(1, 0), marker(1, 2), transactional(1, 3)], [False, False, False]),
}  # fmt: skip


@pytest.mark.parametrize(("named", "batches", "held"), CASES.values(), ids=CASES)
def test_aborted_transactions_hold_their_batches(
    named: list[tuple[int, int]], batches: list[Batch], held: list[bool]
) -> None:
    aborted = AbortedTransactions(named)
    assert [aborted.holds(each) for each in batches] == held
