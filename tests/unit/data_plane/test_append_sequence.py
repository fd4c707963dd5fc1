"""A chain numbers its appends without a gap, keeps few of them unanswered, and stops at the first failure."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.append_sequence import AppendSequence, InFlightBatch
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import OutgoingBatch, as_outgoing, scan
from lockstep_state.offsets import SEQUENCES
from tests.support.batch_bytes import DELETE_HORIZON, GZIP, LOG_APPEND_TIME, LZ4, TRANSACTIONAL, batch, decoded, record
from tests.unit.data_plane.append_steps import FIVE, chain_of, launch_all, opened, outgoing, stamped


def test_chain_sends_one_append_until_the_first_ack_then_up_to_the_limit() -> None:
    append_sequence = chain_of(*(outgoing(i) for i in range(12)))
    first = launch_all(append_sequence)
    assert len(first) == 1
    append_sequence.on_ack(first[0], 0)
    assert len(launch_all(append_sequence)) == FIVE
    assert not append_sequence.may_launch(FIVE)
    assert append_sequence.may_launch(FIVE + 1)


def test_chain_that_is_read_back_has_one_append_in_flight_without_an_id() -> None:
    append_sequence = AppendSequence(4000, 1, 9, 9, read_back=True)
    for i in range(3):
        append_sequence.enqueue(outgoing(i))
    (first,) = launch_all(append_sequence)
    (sent,) = scan(bytes(first.data))
    assert (sent.producer_id, sent.producer_epoch, sent.base_sequence) == (-1, -1, -1)
    append_sequence.on_ack(first, 10)
    assert len(launch_all(append_sequence)) == 1, "the next one alone, too"
    assert append_sequence.sequence == 9 + first.outgoing.count


@pytest.mark.parametrize(("base_offset", "misplaced"), [(10, False), (11, True), (9, True), (-1, True)])
def test_only_a_chain_that_is_read_back_has_misplaced_answers(base_offset: int, misplaced: bool) -> None:
    assert AppendSequence(4000, 1, 9, 9, read_back=True).is_misplaced(base_offset) is misplaced
    assert not AppendSequence(4000, 1, 9, 9).is_misplaced(base_offset)


def test_a_place_is_free_again_with_each_answer() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(8)))
    flights = launch_all(append_sequence)
    append_sequence.on_ack(flights[0], 1)
    assert len(launch_all(append_sequence)) == 1
    assert append_sequence.unanswered == 5


def test_a_place_is_not_free_while_an_earlier_flight_is_unanswered() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(8)))
    flights = launch_all(append_sequence)
    append_sequence.on_ack(flights[1], 2)
    assert not append_sequence.may_launch(FIVE), "the first is unresolved"


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    sequence=st.one_of(st.integers(-1, 100), st.integers(SEQUENCES - 12, SEQUENCES - 1)),
)
def test_sequences_follow_each_other_without_a_gap(sizes: list[int], sequence: int) -> None:
    append_sequence = chain_of(sequence=sequence)
    at, expected = 0, (sequence + 1) % SEQUENCES
    for size in sizes:
        append_sequence.enqueue(outgoing(at, size))
        sent = append_sequence.launch()
        assert sent.sequence == stamped(sent).base_sequence == expected
        assert (stamped(sent).producer_id, stamped(sent).producer_epoch) == (4000, 2)
        append_sequence.on_ack(sent, at)
        at += size
        expected = (expected + size) % SEQUENCES
        assert (append_sequence.sequence + 1) % SEQUENCES == expected
        assert append_sequence.downstream == at - 1


@given(order=st.permutations(range(5)))
def test_receipts_come_in_order_whatever_the_order_of_the_answers(order: list[int]) -> None:
    outgoing_batches = [outgoing(1 + i) for i in range(5)]
    append_sequence = opened(*outgoing_batches)
    flights = launch_all(append_sequence)
    given_out: list[OutgoingBatch] = []
    for answered, which in enumerate(order, start=1):
        given_out += [r.outgoing for r in append_sequence.on_ack(flights[which], 1 + which)]
        certain = next((i for i in range(5) if i not in order[:answered]), 5)
        assert given_out == outgoing_batches[:certain]
        assert (append_sequence.sequence, append_sequence.downstream) == (certain, certain), (
            "nothing uncertain is counted"
        )
    assert append_sequence.idle
    assert append_sequence.bytes_held == 0


@given(broken=st.integers(0, 4), order=st.permutations(range(5)))
def test_chain_after_a_failure_sends_nothing_and_becomes_quiet(broken: int, order: list[int]) -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(8)))
    flights = launch_all(append_sequence)
    acks: list[OutgoingBatch] = []
    failed = False
    for which in order:
        if which == broken:
            append_sequence.on_failure(flights[which])
            failed = True
        else:
            got = [r.outgoing for r in append_sequence.on_ack(flights[which], 1 + which)]
            assert not (failed and got), "the log is about to be read, so no receipt is given any more"
            acks += got
        assert not (failed and append_sequence.may_launch(FIVE))
    assert acks == [f.outgoing for f in flights[: len(acks)]]
    assert append_sequence.sequence == append_sequence.downstream == len(acks)
    assert append_sequence.unanswered == 0
    append_sequence.reset()
    assert append_sequence.idle
    assert append_sequence.bytes_held == 0


def test_chain_begun_anew_sends_one_append_at_the_logged_sequence() -> None:
    anew = chain_of(outgoing(7), outgoing(8), sequence=6, downstream=90)
    (sent,) = launch_all(anew)
    assert sent.sequence == 7
    (ack,) = anew.on_ack(sent, 91)
    assert (ack.downstream, ack.foreign) == (91, 0)


def test_chain_counts_foreign_records_once() -> None:
    append_sequence = opened(outgoing(1, 2), outgoing(3))
    first, second = launch_all(append_sequence)
    (ack,) = append_sequence.on_ack(first, 4)  # offsets 1 to 3 are somebody else's
    assert (ack.downstream, ack.foreign) == (4, 3)
    (ack,) = append_sequence.on_ack(second, 6)
    assert (ack.downstream, ack.foreign) == (6, 0)


def test_chain_with_a_duplicate_ack_counts_no_foreign_record() -> None:
    append_sequence = chain_of(outgoing(0, 3), sequence=-1, downstream=9)
    (ack,) = append_sequence.on_ack(append_sequence.launch(), 4)
    assert (ack.downstream, ack.foreign) == (4, 0)
    assert (append_sequence.sequence, append_sequence.downstream) == (2, 9)


def test_bytes_are_held_from_admission_to_the_receipt() -> None:
    one, two = outgoing(0, 3), outgoing(3, 2)
    append_sequence = chain_of(one, two)
    assert append_sequence.bytes_held == one.size + two.size
    sent = append_sequence.launch()
    assert append_sequence.bytes_held == one.size + two.size
    append_sequence.on_ack(sent, 0)
    assert append_sequence.bytes_held == two.size
    append_sequence.reset()
    assert append_sequence.bytes_held == 0


def test_abandoning_leaves_what_flies() -> None:
    append_sequence = opened(*(outgoing(1 + i) for i in range(7)))
    flights = launch_all(append_sequence)
    append_sequence.reset()
    assert append_sequence.unanswered == 5
    assert append_sequence.bytes_held == sum(f.outgoing.size for f in flights)
    assert not append_sequence.idle


class TestWhatWasPassedOverBehindTheLastPiece:
    def test_extend_last_covers_with_the_last_waiting_batch(self) -> None:
        one, two = outgoing(0), outgoing(1)
        append_sequence = chain_of(one, two)
        assert append_sequence.extend_last(9, 7)
        assert (one.covers, two.covers) == (0, 9)

    def test_extend_last_covers_with_the_last_flight_when_none_waits(self) -> None:
        append_sequence = chain_of(outgoing(0))
        sent = append_sequence.launch()
        assert append_sequence.extend_last(5, 7)
        (ack,) = append_sequence.on_ack(sent, 0)
        assert ack.outgoing.covers == 5

    def test_extend_last_never_shrinks_what_is_covered(self) -> None:
        last = outgoing(0, 4)
        assert chain_of(last).extend_last(2, 7)
        assert last.covers == 3

    def test_extend_last_with_nothing_in_flight_is_decided(self) -> None:
        assert not chain_of().extend_last(5, 7)
        assert not opened().extend_last(5, 7)


class TestMerging:
    """Swarms of tiny batches go as one, when they wait anyway."""

    def merged(self, *outgoing_batches: OutgoingBatch, limit: int = 64 * 1024) -> tuple[InFlightBatch, AppendSequence]:
        append_sequence = chain_of(*outgoing_batches)
        return append_sequence.launch(TargetLimits(max_bytes=limit)), append_sequence

    @pytest.mark.parametrize("codec", [0, LZ4])
    def test_small_ones_that_wait_become_one_with_all_their_records_in_order(self, codec: int) -> None:
        content = [
            record(0, None, headers=[("h", None), ("h", b"")], timestamp=-1),
            record(3, b"", key=None, timestamp=7),
            record(4, b"x", timestamp=0),
        ]
        sent, append_sequence = self.merged(*(as_outgoing(batch([r], codec=codec)) for r in content))
        assert [r._replace(offset=0) for r in decoded(bytes(sent.data))] == [r._replace(offset=0) for r in content]
        assert (list(sent.outgoing.offsets), sent.outgoing.count, sent.outgoing.covers) == ([0, 3, 4], 3, 4)
        assert stamped(sent).attributes == codec
        assert append_sequence.bytes_held == sent.outgoing.size
        append_sequence.on_ack(sent, 0)
        assert (append_sequence.sequence, append_sequence.downstream, append_sequence.bytes_held) == (2, 2, 0)
        assert append_sequence.idle

    def test_merge_covers_skipped_records_behind_it(self) -> None:
        one, two = outgoing(0), outgoing(1)
        two.covers = 8
        sent, _ = self.merged(one, two)
        assert sent.outgoing.covers == 8

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(lambda: outgoing(1, codec=LZ4), id="another codec"),
            pytest.param(lambda: outgoing(1, attributes=LOG_APPEND_TIME), id="another timestamp type"),
            pytest.param(lambda: as_outgoing(batch([record(1, bytes(5000))])), id="a large batch"),
        ],
    )
    def test_merge_stops_at_a_batch_of_another_kind(self, other: Callable[[], OutgoingBatch]) -> None:
        sent, append_sequence = self.merged(outgoing(0), other(), outgoing(2))
        assert list(sent.outgoing.offsets) == [0]
        assert not append_sequence.idle
        alone = other()
        assert self.merged(alone, outgoing(2))[0].outgoing is alone

    def test_merge_stops_at_the_size_limit(self) -> None:
        size = outgoing(0).size
        sent, _ = self.merged(outgoing(0), outgoing(1), outgoing(2), limit=2 * size)
        assert list(sent.outgoing.offsets) == [0, 1]

    def test_merge_stops_at_an_undecodable_batch(self) -> None:
        bad = outgoing(1)
        bad.data = bytes(bad.data)[:61] + b"\xff" * (bad.size - 61)
        sent, _ = self.merged(outgoing(0), bad)
        assert list(sent.outgoing.offsets) == [0]

    def test_merge_joins_a_committed_transaction_and_its_neighbours(self) -> None:
        sent, _ = self.merged(
            outgoing(0), outgoing(1, attributes=TRANSACTIONAL), outgoing(2, attributes=DELETE_HORIZON)
        )
        assert list(sent.outgoing.offsets) == [0, 1, 2]
        assert stamped(sent).attributes == 0

    @given(
        content=st.lists(
            st.tuples(
                st.one_of(st.none(), st.binary(max_size=6)),
                st.one_of(st.none(), st.binary(max_size=6), st.just(bytes(5000))),
                st.lists(st.tuples(st.sampled_from(["", "a", "a"]), st.one_of(st.none(), st.just(b"x"))), max_size=3),
                st.sampled_from([-1, 0, 5, 2**40]),
                st.sampled_from([0, 0, GZIP, LZ4]),
                st.sampled_from([1, 1, 3]),
            ),
            min_size=1,
            max_size=40,
        ),
        limit=st.integers(100, 4000),
    )
    def test_merge_keeps_every_record_and_its_order(self, content: list[tuple[Any, ...]], limit: int) -> None:
        append_sequence, wanted, at = chain_of(), [], 0
        for key, value, headers, timestamp, codec, step in content:
            r = record(at, value, key=key, headers=headers, timestamp=timestamp)
            wanted.append(r)
            append_sequence.enqueue(as_outgoing(batch([r], codec=codec)))
            at += step
        acknowledged = []
        while append_sequence.may_launch(FIVE):
            sent = append_sequence.launch(TargetLimits(max_bytes=limit))
            assert sent.outgoing.count == 1 or sent.outgoing.size <= limit
            inside = decoded(bytes(sent.data))
            acknowledged += [r._replace(offset=o) for r, o in zip(inside, sent.outgoing.offsets, strict=True)]
            assert sent.outgoing.covers == sent.outgoing.offsets[-1]
            append_sequence.on_ack(sent, len(acknowledged) - len(inside))
        assert acknowledged == wanted
        assert append_sequence.bytes_held == 0
