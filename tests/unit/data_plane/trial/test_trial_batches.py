"""Batches of a trial are those that a slot would fetch, and its answers say what became of each record."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.evaluation import REQUEST_BYTES
from lockstep_data_plane.core.record_transform import RecordFailure
from lockstep_data_plane.record_batch.layout import GappedOffsets
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_data_plane.transform.evaluation_answer import AnswerEnd, TransformAnswer
from lockstep_data_plane.trial.trial_batches import (
    BATCH_BYTES,
    batches_of,
    outcomes_of,
    requests_of,
)
from lockstep_state.codecs.transform_trial import TrialPartition, TrialRecord
from tests.support.batch_bytes import batch_bytes, crc_is_right, record, record_lists


def plain(each: TrialRecord) -> PlainRecord:
    return PlainRecord(each.offset, each.timestamp, each.key, each.value, each.headers)


def trial(each: PlainRecord, log_append: bool = False) -> TrialRecord:
    return TrialRecord(each.offset, each.timestamp, each.key, each.value, tuple(each.headers), log_append)


@given(record_lists(), st.booleans())
def test_records_come_back_as_they_are(content: list[PlainRecord], log_append: bool) -> None:
    batches = list(batches_of(trial(each, log_append) for each in content))
    assert all(crc_is_right(batch.data) for batch in batches)
    read = [each for batch in batches for each in read_records(batch)]
    assert [each._replace(headers=tuple(each.headers)) for each in read] == [
        each._replace(headers=tuple(each.headers)) for each in content
    ]


def test_batches_and_requests_end_at_their_size() -> None:
    large = [TrialRecord(n, 0, None, b"x" * (BATCH_BYTES // 2)) for n in range(100)]
    batches = list(batches_of(large))
    assert len(batches) == 50
    requests = list(requests_of(batches))
    assert [batch for request in requests for batch in request] == batches
    assert all(sum(len(batch.data) for batch in request) <= REQUEST_BYTES for request in requests)
    huge = list(batches_of(TrialRecord(n, 0, None, b"y" * (2 * REQUEST_BYTES)) for n in range(2)))
    assert list(requests_of(huge)) == [(huge[0],), (huge[1],)]


def test_outcomes() -> None:
    content = tuple(trial(record(n, b"v")) for n in (3, 4, 5, 9))
    answer = TransformAnswer(
        batch_bytes([record(0, b"new"), record(1, b"same")]),
        GappedOffsets.gather([4, 9]),
        9,
        AnswerEnd.WHOLE,
        (RecordFailure(5, "CAST_INVALID_INPUT", "CAST(value AS INT)"),),
        4,
        0,
    )
    outcomes = list(outcomes_of(TrialPartition("t", 2, content), [answer]))
    assert [(each.offset, each.state, each.condition) for each in outcomes] == [
        (3, "dropped", ""),
        (4, "kept", ""),
        (5, "failed", "CAST_INVALID_INPUT"),
        (9, "kept", ""),
    ]
    assert [each.record.value for each in outcomes if each.record] == [b"new", b"same"]
    assert [each.record.offset for each in outcomes if each.record] == [4, 9]
