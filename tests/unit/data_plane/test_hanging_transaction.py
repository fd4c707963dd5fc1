"""What becomes of a transaction that its coordinator ended without all of its markers (`hanging_transaction.py`)."""

import pytest

from lockstep_data_plane.core.target_log.hanging_transaction import (
    ProgressRecord,
    TransactionOutcome,
    is_to_be_committed,
)
from lockstep_data_plane.progress.committed_progress import CommittedProgress, appended_to_header
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.codecs.mm2_codec import encode_source_progress
from tests.support.batch_bytes import TRANSACTIONAL, batch
from tests.unit.data_plane.test_committed_progress import ended

OPEN, COMMITTED, ABORTED = TransactionOutcome.OPEN, TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED
OURS = 7


def progress_up_to(outcome: TransactionOutcome, **appended_to: int) -> ProgressRecord:
    if not appended_to:
        return ProgressRecord(outcome)
    return ProgressRecord(outcome, {int(number.removeprefix("p")): offset for number, offset in appended_to.items()})


@pytest.mark.parametrize(
    ("last", "hanging", "ended_elsewhere", "commits"),
    [
        pytest.param(progress_up_to(OPEN, p0=9), {0: 5}, (), True, id="no marker anywhere: it is whole"),
        pytest.param(progress_up_to(OPEN, p0=9), {}, (True,), True, id="records committed"),
        pytest.param(progress_up_to(OPEN, p0=9), {}, (False,), False, id="records aborted"),
        pytest.param(progress_up_to(OPEN, p0=9), {}, (), False, id="the marker of the records is gone"),
        pytest.param(progress_up_to(OPEN, p0=9, p1=3), {1: 2}, (True,), True, id="one of two committed"),
        pytest.param(progress_up_to(OPEN, p0=9, p1=3), {1: 2}, (False,), False, id="one of two aborted"),
        pytest.param(progress_up_to(OPEN), {0: 5}, (), True, id="whole, by an earlier release"),
        pytest.param(progress_up_to(COMMITTED, p0=9), {0: 5}, (), True, id="progress committed"),
        pytest.param(progress_up_to(COMMITTED, p0=5), {0: 5}, (), True, id="progress of one record committed"),
        pytest.param(progress_up_to(COMMITTED, p0=4), {0: 5}, (), False, id="the last progress is of the one before"),
        pytest.param(progress_up_to(ABORTED, p0=9), {0: 5}, (), False, id="progress aborted"),
        pytest.param(progress_up_to(COMMITTED), {0: 5}, (), True, id="committed, by an earlier release"),
        pytest.param(ProgressRecord(COMMITTED, {}), {0: 5}, (), False, id="committed, of a topic that is gone"),
        pytest.param(None, {0: 5}, (), False, id="no progress at all"),
    ],
)
def test_a_hanging_transaction_ends_as_its_markers_say(
    last: ProgressRecord | None, hanging: dict[int, int], ended_elsewhere: tuple[bool, ...], commits: bool
) -> None:
    assert is_to_be_committed(last, hanging, ended_elsewhere) is commits


def transaction_progress(at: int, offset: int, header: tuple[str, bytes | None]) -> Batch:
    key, value = encode_source_progress("S", "t", 0, offset)
    return batch([PlainRecord(at, 1_000, key, value, (header,))], producer=(OURS, 0, 0), attributes=TRANSACTIONAL)


def test_the_fold_has_the_last_transaction_of_each_producer() -> None:
    fold = CommittedProgress()
    first, second = appended_to_header("id", {0: 9}), appended_to_header("id", {0: 19, 3: 4})
    fold.apply([transaction_progress(0, 9, first), ended(1, OURS, commit=True), transaction_progress(2, 18, second)])
    outcome, record = fold.last_records[OURS]
    assert (outcome, list(record.headers)) == (OPEN, [second])
    assert list(fold.last_committed[OURS].headers) == [first]
    fold.apply([ended(3, OURS, commit=False), ended(4, OURS, commit=True)])
    assert fold.last_records[OURS] == (ABORTED, record)
    assert list(fold.last_committed[OURS].headers) == [first]
