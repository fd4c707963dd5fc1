"""What a transform is asked about the batches of a fetch, and what its answer decides."""

from collections.abc import Collection

import pytest

from lockstep_data_plane.core.evaluation import (
    DecidedRecords,
    EvaluationRequest,
    PassedOver,
    RejectedBatch,
    decide,
    evaluation_requests,
    refuse_failed,
    without_content,
)
from lockstep_data_plane.core.provenance import NO_PROVENANCE, OWN, Provenance
from lockstep_data_plane.core.quarantine_entry import QuarantineEntry, RefusedRecords
from lockstep_data_plane.core.record_transform import RecordFailure, TransformedRecords
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, OutgoingBatch
from lockstep_data_plane.record_batch.rebuild import build, read_records
from lockstep_rules.statement_outline import COLUMNS
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, batch, record, records, with_head

LIMITS = TargetLimits()


def asked(
    *batches: Batch,
    position: int = 0,
    aborted: AbortedTransactions | None = None,
    provenance: Provenance = NO_PROVENANCE,
) -> list[EvaluationRequest | PassedOver | RejectedBatch]:
    return list(evaluation_requests(batches, position, aborted or AbortedTransactions(), provenance, LIMITS))


def offsets(request: EvaluationRequest | PassedOver | RejectedBatch) -> list[int]:
    assert isinstance(request, EvaluationRequest)
    return [r.offset for each in request.batches for r in read_records(each)]


def test_batches_of_one_fetch_are_one_request() -> None:
    (request,) = asked(batch(records(0, 3)), batch(records(3, 2)))
    assert offsets(request) == [0, 1, 2, 3, 4]
    assert isinstance(request, EvaluationRequest)
    assert (request.last_offset, request.leader_epoch, request.producer_id) == (4, 3, OWN)


def test_markers_and_aborted_transactions_are_passed_over_before_anything_is_asked() -> None:
    producer = (7, 0, 0)
    marker = batch([record(2, b"\0\0\0\0", key=b"\0\0\0\0")], attributes=CONTROL | TRANSACTIONAL, producer=producer)
    aborted = batch(records(0, 2), attributes=TRANSACTIONAL, producer=producer)
    first, second, request = asked(aborted, marker, batch(records(3, 1)), aborted=AbortedTransactions([(7, 0)]))
    assert isinstance(first, PassedOver)
    assert isinstance(second, PassedOver)
    assert (first.batch.last_offset, second.batch.last_offset) == (1, 2)
    assert offsets(request) == [3]


def test_an_open_transaction_is_asked_about() -> None:
    (request,) = asked(batch(records(0, 2), attributes=TRANSACTIONAL, producer=(7, 0, 0)))
    assert offsets(request) == [0, 1]


class ByProducer:
    """Batches of producer 1 have the id 11 there, those of producer 2 the id 12, and others are not copied."""

    def copy_producer_id(self, one: Batch) -> int | None:
        return {1: 11, 2: 12}.get(one.producer_id)


def test_what_came_from_elsewhere_is_passed_over_and_ids_of_the_copy_are_not_mixed() -> None:
    batches = [batch(records(n, 1), producer=(p, 0, 0)) for n, p in enumerate([1, 1, 3, 2, 1])]
    first, gone, second, third = asked(*batches, provenance=ByProducer())  # type: ignore[arg-type]  # no more is asked
    assert isinstance(gone, PassedOver)
    made = [r for r in (first, second, third) if isinstance(r, EvaluationRequest)]
    assert [(r.producer_id, offsets(r)) for r in made] == [(11, [0, 1]), (12, [3]), (11, [4])]


def test_leader_epochs_are_not_mixed() -> None:
    first, second = asked(batch(records(0, 1), leader_epoch=1), batch(records(1, 1), leader_epoch=2))
    assert isinstance(first, EvaluationRequest)
    assert isinstance(second, EvaluationRequest)
    assert (first.leader_epoch, second.leader_epoch) == (1, 2)


def test_a_request_is_limited_and_a_larger_batch_goes_alone() -> None:
    large = [batch([record(n, bytes(700_000))]) for n in range(3)]
    assert [offsets(request) for request in asked(*large)] == [[0], [1], [2]]


def test_a_damaged_batch_ends_what_is_asked() -> None:
    good = batch(records(0, 1))
    damaged = with_head(bytes(batch(records(1, 2)).data), 17, ">I", 1)
    first, rejected = asked(good, damaged, batch(records(3, 1)))
    assert offsets(first) == [0]
    assert isinstance(rejected, RejectedBatch)
    assert rejected.batch is damaged
    assert "CRC" in rejected.reason


def test_batch_in_quarantine_is_passed_over_and_never_asked_about() -> None:
    damaged = with_head(bytes(batch(records(1, 2)).data), 17, ">I", 1)
    batches = (batch(records(0, 1)), damaged, batch(records(3, 2)))
    skips = [(1, 2), (4, 4)]
    first, passed, last = evaluation_requests(batches, 0, AbortedTransactions(), NO_PROVENANCE, LIMITS, skips)
    assert offsets(first) == [0]
    assert isinstance(passed, PassedOver)
    assert offsets(last) == [3, 4], "what a transform makes of a part is left out later"


def answer(*kept: int, covers: int, is_whole: bool = True, failures: tuple[int, ...] = ()) -> TransformedRecords:
    outgoing: OutgoingBatch | None = None
    if kept:
        (outgoing,) = build([record(offset) for offset in kept], 0, 1_000_000, -1)
    failed = tuple(RecordFailure(offset, "JSON_MALFORMED", "value") for offset in failures)
    return TransformedRecords(outgoing, covers, is_whole, failed)


REQUEST = EvaluationRequest((batch(records(10, 10), last_offset=25),), OWN)


def covered(part: DecidedRecords | None) -> tuple[list[int], int]:
    assert part is not None
    kept = [] if part.outgoing is None else list(part.outgoing.offsets)
    if part.outgoing is not None:
        assert (part.outgoing.covers, part.outgoing.leader_epoch) == (part.covers, 3)
    return kept, part.covers


def test_a_whole_answer_decides_up_to_the_end_of_the_batches() -> None:
    part, failure = decide(REQUEST, 10, answer(11, 13, covers=19), ())
    assert covered(part) == ([11, 13], 25)
    assert failure is None


def test_a_whole_answer_without_records_decides_as_much() -> None:
    part, failure = decide(REQUEST, 10, answer(covers=19), ())
    assert covered(part) == ([], 25)
    assert failure is None


def test_an_answer_that_ends_early_decides_up_to_there() -> None:
    part, failure = decide(REQUEST, 10, answer(11, covers=14, is_whole=False), ())
    assert covered(part) == ([11], 14)
    assert failure is None


@pytest.mark.parametrize("kept", [(), (10, 11)])
def test_nothing_from_a_failed_record_on_is_decided(kept: tuple[int, ...]) -> None:
    """Else a batch that is acknowledged would let the row pass the record, and it would be lost."""
    part, failure = decide(REQUEST, 10, answer(*kept, covers=13, is_whole=False, failures=(13,)), ())
    assert covered(part) == (list(kept), 12)
    assert failure is not None
    assert failure.offset == 13


def test_a_failure_of_the_first_record_decides_nothing() -> None:
    part, failure = decide(REQUEST, 10, answer(covers=10, is_whole=False, failures=(10,)), ())
    assert part is None
    assert failure is not None


def test_a_failed_record_that_is_in_quarantine_is_passed_over() -> None:
    part, failure = decide(REQUEST, 10, answer(11, covers=13, is_whole=False, failures=(13,)), ((12, 13),))
    assert covered(part) == ([11], 13)
    assert failure is None


@pytest.mark.parametrize(
    "made",
    [
        answer(covers=9, is_whole=False),
        answer(12, covers=11, is_whole=False),
        answer(11, 15, covers=13, is_whole=False, failures=(13,)),
    ],
)
def test_an_answer_that_contradicts_itself_is_a_mistake(made: TransformedRecords) -> None:
    with pytest.raises(ValueError, match="decided"):
        decide(REQUEST, 10, made, ())


SECRET = EvaluationRequest((batch([record(5, b"the value", key=b"key", timestamp=77, headers=[("h", b"1")])]),), OWN)
FAILURE = RecordFailure(5, "JSON_MALFORMED")


@pytest.mark.parametrize(
    ("made_columns", "key", "headers"),
    [
        ({"value"}, b"key", (("h", b"1"),)),
        ({"value", "key"}, None, (("h", b"1"),)),
        ({"headers"}, b"key", ()),
        (COLUMNS, None, ()),
    ],
)
def test_quarantine_keeps_what_the_transform_leaves_of_a_failed_record_but_its_value(
    made_columns: Collection[str], key: bytes | None, headers: tuple[tuple[str, bytes], ...]
) -> None:
    """What a statement makes anew may be what it masks: a key of a person, as well as the value."""
    refusal = refuse_failed(SECRET, FAILURE, "why", "quarantine", made_columns)
    assert refusal.entries == (QuarantineEntry(5, 5, key, None, headers, 77),)
    assert refusal.is_decided


def test_quarantine_without_knowledge_of_the_columns_keeps_neither_key_nor_headers() -> None:
    assert refuse_failed(SECRET, FAILURE, "why", "quarantine").entries == (QuarantineEntry(5, 5, None, None, (), 77),)


def test_quarantine_metadata_keeps_where_a_failed_record_was() -> None:
    refusal = refuse_failed(SECRET, FAILURE, "why", "quarantine-metadata")
    assert refusal.entries == (QuarantineEntry(5, 5, None, None, (), 77),)


def test_a_batch_that_cannot_be_read_is_in_quarantine_without_its_bytes() -> None:
    refusal = RefusedRecords("why", (QuarantineEntry(5, 9, None, b"raw bytes", (), 77, batch=True),))
    kept = without_content(refusal)
    assert kept is not None
    assert kept.entries == (QuarantineEntry(5, 9, None, None, (), 77, batch=True),)
    assert without_content(None) is None


def test_decided_records_are_a_batch_with_gaps() -> None:
    part, _ = decide(REQUEST, 10, answer(11, 13, covers=19), ())
    assert part is not None
    made = part.as_batch()
    assert [r.offset for r in read_records(made)] == [11, 13]
    assert (made.last_offset, made.leader_epoch) == (25, 3)
