"""What a batch's producer id says about where it came from, and what a flow makes of it (`kafka-wire.md` §4)."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_data_plane.core.append_sequence import WINDOW, AppendSequence
from lockstep_data_plane.core.provenance import ProvenanceRule, appended_since, origins_by_producer, producers_of_copy
from lockstep_data_plane.core.target_log.target_tail import LastAppend, last_append_in
from lockstep_data_plane.provenance.origin_lookup import rows_in
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, OutgoingBatch, as_outgoing
from lockstep_state.names import Flow, is_state_topic, state_topic
from lockstep_state.offsets import SEQUENCES
from lockstep_state.rows.state_rows import Origin, PartitionProgress
from tests.support.batch_bytes import CONTROL, LZ4, TRANSACTIONAL, batch, record, records
from tests.unit.data_plane.append_steps import stamped

OURS, OTHER = 4000, 4001


@pytest.mark.parametrize(
    ("mode", "origin", "copied"),
    [
        ("local", "s", True),
        ("local", "x", False),
        ("local", "t", False),
        ("relay", "s", True),
        ("relay", "x", True),
        ("relay", "t", False),
    ],
)
def test_provenance_rule_copies_by_mode_and_origin(mode: str, origin: str, copied: bool) -> None:
    rule = ProvenanceRule(mode="relay" if mode == "relay" else "local", source="s", target="t")
    assert rule.copies(origin) is copied


ROW = Origin(producer_id=7, source="A", target="B", origin_cluster_id="id-a", target_cluster_id="id-b")


def test_rows_about_a_cluster_that_is_no_more_do_not_count() -> None:
    rows = [ROW, replace(ROW, producer_id=8, target_cluster_id="id-before"), PartitionProgress(topic="t", partition=0)]
    assert origins_by_producer(rows, "id-b") == {7: "id-a"}


def test_rows_are_found_among_whatever_else_a_state_topic_holds() -> None:
    key, value = ROW.encode()
    other = replace(ROW, producer_id=9)
    content = [
        record(0, value, key=key),
        record(1, None, key=b"origin/8"),
        record(2, b"{}", key=b"origin/10"),
        record(3, b"x"),
        record(4, PartitionProgress(topic="t", partition=0).encode()[1], key=b"partition/t/0"),
        record(5, other.encode()[1], key=other.encode()[0]),
    ]
    marker = batch(records(6, 1), attributes=CONTROL | TRANSACTIONAL)
    passed_over: list[tuple[str, int, int]] = []

    def pass_over(*place_and_error: Any) -> None:
        passed_over.append(place_and_error[:3])

    assert rows_in([batch(content, codec=LZ4), marker], "state", pass_over) == [ROW, other]
    assert passed_over == [("state", 0, 2)]
    spoilt = batch(content)._replace(record_count=9)
    assert rows_in([spoilt, batch(content[5:]), marker], "state", pass_over) == [other]
    assert passed_over == [("state", 0, 2), ("state", 0, 0)], "what cannot be read is passed over"


@pytest.mark.parametrize(
    ("topic", "is_one"),
    [
        (state_topic(Flow("A", "B")), True),
        (state_topic(Flow("A.x", "B"), "team-1"), True),
        ("mm2-lockstep-events.A.internal", False),
        ("mm2-lockstep-state.A.internal.copy", False),
        ("A.mm2-lockstep-state.B.internal", False),
        ("orders", False),
    ],
)
def test_state_topics_are_known_by_name(topic: str, is_one: bool) -> None:
    assert is_state_topic(topic) is is_one


class TestTheChain:
    def append_sequence(self, *ids: int) -> AppendSequence:
        append_sequence = AppendSequence(OURS, 2, 9, 99, [(OTHER, 4)])
        for offset, producer_id in enumerate(ids):
            append_sequence.enqueue(self.outgoing(offset), producer_id)
        return append_sequence

    @staticmethod
    def outgoing(offset: int) -> OutgoingBatch:
        return as_outgoing(batch(records(offset, 2)))

    def test_chain_continues_each_producer_id_with_its_sequences(self) -> None:
        append_sequence = self.append_sequence(-1, OTHER, -1)
        appended = []
        for downstream in (100, 102, 104):
            sent = append_sequence.launch()
            sent_batch = stamped(sent)
            appended.append((sent_batch.producer_id, sent_batch.producer_epoch, sent_batch.base_sequence))
            assert len(append_sequence.on_ack(sent, downstream)) == 1
        assert appended == [(OURS, 2, 10), (OTHER, 2, 5), (OURS, 2, 12)]
        assert (append_sequence.sequence, append_sequence.others, append_sequence.downstream) == (
            13,
            ((OTHER, 6),),
            105,
        )

    def test_an_id_that_was_never_used_begins_at_zero(self) -> None:
        assert stamped(self.append_sequence(OTHER + 1).launch()).base_sequence == 0

    def test_a_change_of_id_waits_until_nothing_flies(self) -> None:
        append_sequence = self.append_sequence(-1, -1, OTHER, OTHER)
        append_sequence.on_ack(append_sequence.launch(), 100)  # answered: from now on several may fly
        sent = append_sequence.launch()
        assert not append_sequence.may_launch(WINDOW), "another id is next"
        append_sequence.on_ack(sent, 102)
        first = append_sequence.launch()
        assert not append_sequence.may_launch(WINDOW), "alone until the target has shown that it knows the id"
        append_sequence.on_ack(first, 104)
        assert append_sequence.may_launch(WINDOW)

    def test_batches_with_different_producer_ids_are_never_merged(self) -> None:
        append_sequence = self.append_sequence(-1, -1, OTHER, OTHER, -1)
        merged = []
        for downstream in (100, 104, 108):
            sent = append_sequence.launch(TargetLimits())
            merged.append((stamped(sent).producer_id, sent.outgoing.count))
            append_sequence.on_ack(sent, downstream)
        assert merged == [(OURS, 4), (OTHER, 4), (OURS, 2)]


def of_ours(first: int, sequence: int, producer_id: int, epoch: int = 2) -> Batch:
    return batch(records(first, 2), producer=(producer_id, epoch, sequence))


def test_chain_end_is_found_for_each_producer_id() -> None:
    log = [of_ours(100, 10, OURS), of_ours(102, 5, OTHER), of_ours(104, 50, 7), of_ours(106, 0, OTHER + 1)]
    end = last_append_in(LastAppend(9, 99, others=((OTHER, 4),)), log, OURS, 2, {OTHER, OTHER + 1})
    assert (end.sequence, end.others, end.downstream) == (11, ((OTHER, 6), (OTHER + 1, 1)), 107)
    row = PartitionProgress(topic="t", partition=0, producer_id=OURS, sequence=9, others=((OTHER, 4),))
    assert appended_since(row, end.sequence, end.others) == 6


def test_chain_end_ignores_an_earlier_epoch_of_our_producer_ids() -> None:
    end = last_append_in(LastAppend(9, 99), [of_ours(100, 5, OTHER, epoch=1)], OURS, 2, {OTHER})
    assert end == LastAppend(9, 99)


def test_sequences_begin_again_under_each_id() -> None:
    row = PartitionProgress(
        topic="t", partition=0, producer_id=OURS, sequence=SEQUENCES - 1, others=((OTHER, SEQUENCES - 2),)
    )
    assert appended_since(row, 1, ((OTHER, 0),)) == 4
    assert appended_since(row, row.sequence, row.others) == 0


def test_a_row_with_nothing_of_its_own_but_something_passed_on_has_begun() -> None:
    row = PartitionProgress(topic="t", partition=0, producer_id=OURS)
    assert not row.begun
    assert replace(row, others=((OTHER, 0),)).begun


@pytest.mark.parametrize(("read_back", "producers"), [(False, {1, 2, 3}), (True, {-1, 1, 2, 3})])
def test_producers_of_a_copy_are_none_where_it_is_read_back(read_back: bool, producers: set[int]) -> None:
    row = PartitionProgress(topic="t", partition=0, producer_id=1, others=((2, 5),), read_back=read_back)
    assert producers_of_copy(row, [-1, 3]) == producers
