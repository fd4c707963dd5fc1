"""What becomes of a transaction that its coordinator ended without all of its markers (`hanging_transaction.py`)."""

from dataclasses import replace

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
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import TRANSACTIONAL, batch
from tests.unit.data_plane.resume_cases_fenced import COMMITTED as IN_TRANSACTIONS
from tests.unit.data_plane.resume_cases_fenced import OURS_FENCED, committed_log, in_transactions
from tests.unit.data_plane.resume_scene import FIRST_ID, Scene, source_of
from tests.unit.data_plane.test_committed_progress import ended, progress

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


def test_the_fold_has_the_last_transaction_of_each_key() -> None:
    fold, (key, _) = CommittedProgress(), encode_source_progress("S", "t", 0, 0)
    first, second = appended_to_header("id", {0: 9}), appended_to_header("id", {0: 19, 3: 4})
    fold.apply([transaction_progress(0, 9, first), ended(1, OURS, commit=True), transaction_progress(2, 18, second)])
    producer, outcome, record = fold.last_records[key]
    assert (producer, outcome, list(record.headers)) == (OURS, OPEN, [second])
    assert list(fold.last_committed[key][2].headers) == [first]
    fold.apply([ended(3, OURS, commit=False), ended(4, OURS, commit=True)])
    assert fold.last_records[key] == (OURS, ABORTED, record)
    assert list(fold.last_committed[key][2].headers) == [first]
    fold.apply([progress(5, 0, 3)])
    assert (fold.last_records, fold.last_committed) == ({}, {}), "a decision outside of transactions replaces both"


# -- as a resume meets it: T0 has records 0 to 9 at offsets 0 to 9, T1 records 10 and 11 at 11 and 12 ----------------

ROW = replace(IN_TRANSACTIONS, downstream=10)
ACKED = replace(IN_TRANSACTIONS, upstream=11, downstream=13, sequence=1)


def resumed(
    row: PartitionProgress = ROW,
    markers: tuple[bool | None, bool | None] = (None, None),
    *lines: str,
    by_key: bool = False,
    first_header: bool | None = True,
    **more: object,
) -> Scene:
    """`markers`: whether T1 is committed in the records and in the progress; None: it has no marker there. T0's
    progress has a header, or it has none, or (None) there is no T0."""
    target = committed_log(10).append([10, 11], OURS_FENCED, transactional=True)
    scene = in_transactions(row, source_of(14), target, *lines, by_key=by_key, **more)

    def committed(upstream: int, last: int, commit: bool | None, *, has_header: bool = True) -> None:
        key, value = encode_source_progress("A", "t", 0, upstream)
        headers = (appended_to_header(FIRST_ID, {0: last}),) if has_header else ()
        scene.progress.append_records([PlainRecord(0, 1_000, key, value, headers)], OURS_FENCED, transactional=True)
        if commit is not None:
            scene.progress.end_transaction(OURS_FENCED, commit=commit)

    if first_header is None:
        scene.commit(9)
    else:
        committed(9, 9, True, has_header=first_header)
    committed(11, 12, markers[1])
    if markers[0] is not None:
        target.end_transaction(OURS_FENCED, commit=markers[0])
    scene.clusters[1].leaves_out_markers = True
    return scene


def goes_on_from(trail: list[str]) -> str:
    return next(line for line in trail if line.startswith("from "))


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize(
    ("markers", "outcome"),
    [
        ((None, None), "commit"),
        ((True, None), "commit"),
        ((None, True), "commit"),
        ((False, None), "abort"),
        ((None, False), "abort"),
    ],
)
def test_resume_ends_what_hangs(markers: tuple[bool | None, bool | None], outcome: str, *, by_key: bool) -> None:
    """A copy that spreads by keys as well, also before it knows the partitions of its target."""
    scene = resumed(replace(ROW, downstream=-1) if by_key else ROW, markers, by_key=by_key)
    trail = scene.play()
    assert f"outcome={outcome}" in next(line for line in trail if line.startswith("HangingTransactionEnded"))
    assert ("upstream=11" in goes_on_from(trail)) is (outcome == "commit")
    assert not scene.target.open_transactions
    assert not scene.progress.open_transactions


def test_resume_without_describe_producers_ends_what_its_progress_names() -> None:
    scene = resumed(without=["describe_producers"])
    assert "upstream=11" in goes_on_from(scene.play())
    assert not scene.target.open_transactions


def test_resume_halts_where_committed_records_are_aborted() -> None:
    for scene in (
        resumed(markers=(False, True)),
        resumed(ACKED, (False, False)),
        resumed(ACKED, (False, False), first_header=False),
        resumed(ACKED, (False, False), first_header=None),
        resumed(ACKED, (False, False), rests=True),
    ):
        trail = scene.play()
        assert any(line.startswith("halted in-doubt") for line in trail), trail


def test_policy_progress_copies_the_aborted_records_again_and_once() -> None:
    scene = resumed(ROW, (False, True), "lockstep.on.doubt = progress")
    trail = scene.play()
    assert any(line.startswith("ResumedWithDoubt") for line in trail)
    assert "upstream=" not in goes_on_from(trail), "records 10 and 11 are not passed over"
    again = resumed(ROW, (False, True), "lockstep.on.doubt = progress")
    again.commit(9)  # as the policy has written it
    assert not any(line.startswith("GapFound") for line in again.play())


def test_marker_of_a_later_transaction_says_nothing_of_one_that_retention_removed() -> None:
    scene = resumed(ROW, (False, False))
    scene.target.delete_before(11)
    assert not any(line.startswith("halted") for line in scene.play())
