"""Acknowledgements of small batches are counted together, and none is counted late for long."""

from collections import deque

from lockstep_data_plane.core.append_sequence import GATHERED, GATHERED_BYTES, InFlightBatch
from lockstep_data_plane.record_batch.layout import as_outgoing
from tests.support.batch_bytes import batch, record
from tests.unit.data_plane.append_steps import FIVE, chain_of, launch_all, opened, outgoing


def test_answers_are_gathered_while_others_are_on_their_way() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(8)))
    flights = launch_all(append_sequence)
    assert append_sequence.defer_count(flights[0], 1, 1000)
    assert append_sequence.defer_count(flights[1], 2, 1001)
    assert (append_sequence.downstream, append_sequence.unanswered) == (0, FIVE)
    assert len(launch_all(append_sequence)) == 2, "their places are free"
    acks = append_sequence.on_ack(flights[2], 3)
    assert [(ack.downstream, ack.at_ms) for ack in acks] == [(1, 1000), (2, 1001), (3, 0)]
    assert append_sequence.downstream == 3
    assert not append_sequence.may_launch(4), "four are unanswered"


def test_gathered_answers_are_counted_when_it_is_asked_for() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(4)))
    flights = launch_all(append_sequence)
    assert append_sequence.count_acked() == []
    assert append_sequence.defer_count(flights[0], 1, 1000)
    assert [ack.downstream for ack in append_sequence.count_acked()] == [1]
    assert append_sequence.unanswered == 3
    assert append_sequence.count_acked() == []


def test_only_the_next_answer_in_order_is_gathered() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(4)))
    flights = launch_all(append_sequence)
    assert not append_sequence.defer_count(flights[1], 2, 1000)
    assert append_sequence.defer_count(flights[0], 1, 1000)
    assert append_sequence.defer_count(flights[1], 2, 1000)


def test_the_last_answer_on_its_way_is_counted_at_once() -> None:
    append_sequence = opened(outgoing(1), outgoing(2))
    flights = launch_all(append_sequence)
    assert append_sequence.defer_count(flights[0], 1, 1000)
    assert not append_sequence.defer_count(flights[1], 2, 1000)


def test_no_more_answers_are_gathered_than_are_counted_at_once() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(40)))
    gathered = 0
    flights = deque[InFlightBatch]()
    while True:
        flights.extend(launch_all(append_sequence))
        if not append_sequence.defer_count(flights[0], 1 + gathered, 1000):
            break
        flights.popleft()
        gathered += 1
    assert gathered == GATHERED - 1
    assert len(append_sequence.on_ack(flights[0], 1 + gathered)) == GATHERED


def test_no_answer_is_gathered_of_a_large_batch_or_after_a_failure() -> None:
    large = as_outgoing(batch([record(1, bytes(GATHERED_BYTES))]))
    append_sequence = opened(large, outgoing(2), outgoing(3))
    flights = launch_all(append_sequence)
    assert not append_sequence.defer_count(flights[0], 1, 1000)
    append_sequence.on_ack(flights[0], 1)
    append_sequence.on_failure(flights[2])
    assert not append_sequence.defer_count(flights[1], 2, 1000)


def test_the_first_answer_of_a_chain_is_not_gathered() -> None:
    append_sequence = chain_of(outgoing(0), outgoing(1))
    (first,) = launch_all(append_sequence)
    assert not append_sequence.defer_count(first, 0, 1000)
