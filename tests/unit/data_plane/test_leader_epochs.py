"""Up to where the source's log still is the one that was copied: an answer counts unless the log disproves it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.target_log.leader_epochs import EpochEvidence, PartingSearch
from lockstep_data_plane.record_batch.layout import Batch, scan
from tests.support.batch_bytes import batch_bytes, records


def of_epoch(leader_epoch: int, first: int = 9, count: int = 1) -> Batch:
    (batch,) = scan(batch_bytes(records(first, count), leader_epoch=leader_epoch))
    return batch


def evidence(answered: int | None, batch: Batch | None = None, *, start: int = 0, end: int = 20) -> EpochEvidence:
    """The record at offset 9, of epoch 3, was copied last."""
    return EpochEvidence(9, 3, start, end, answered, batch)


@pytest.mark.parametrize(
    ("answered", "start", "end", "needs"),
    [
        pytest.param(10, 0, 20, False, id="the epoch ends behind it"),
        pytest.param(-1, 0, 20, False, id="its leader does not know"),
        pytest.param(None, 0, 20, True, id="there is no answer"),
        pytest.param(9, 0, 20, True, id="the epoch ends before it"),
        pytest.param(None, 10, 20, False, id="the record is gone"),
        pytest.param(None, 0, 9, False, id="the log ends before it"),
    ],
)
def test_epoch_evidence_without_a_sure_answer_needs_the_log(
    answered: int | None, start: int, end: int, needs: bool
) -> None:
    assert evidence(answered, start=start, end=end).needs_batch == needs


@pytest.mark.parametrize(
    ("answer", "parted", "contradicts"),
    [
        pytest.param(evidence(10), False, False, id="the answer reaches it"),
        pytest.param(evidence(-1), False, False, id="its leader does not know"),
        pytest.param(evidence(None), False, False, id="nothing is known"),
        pytest.param(evidence(0, of_epoch(3)), False, True, id="it is there, the answer says it is gone"),
        pytest.param(evidence(9, of_epoch(3)), False, True, id="it is there, the answer is off by one"),
        pytest.param(evidence(0, of_epoch(3, 12)), False, True, id="compacted, its epoch goes on behind it"),
        pytest.param(evidence(0, start=12), False, True, id="the log begins behind the answer"),
        pytest.param(evidence(5, of_epoch(4)), True, False, id="another epoch is in its place"),
        pytest.param(evidence(5, of_epoch(2)), True, False, id="an earlier epoch is in its place"),
        pytest.param(evidence(5, of_epoch(4, 12)), True, False, id="compacted, and another epoch behind it"),
        pytest.param(evidence(5, end=7), True, False, id="the log ends before it"),
        pytest.param(evidence(None, of_epoch(3)), False, False, id="no answer, it is there"),
        pytest.param(evidence(None, of_epoch(4)), True, False, id="no answer, another epoch is in its place"),
        pytest.param(evidence(None, of_epoch(-1)), False, False, id="no answer, a batch without an epoch"),
        pytest.param(evidence(None, of_epoch(4, 12)), False, False, id="no answer, compacted"),
    ],
)
def test_epoch_evidence_believes_the_log_before_the_answer(
    answer: EpochEvidence, parted: bool, contradicts: bool
) -> None:
    assert (answer.parted, answer.contradicts) == (parted, contradicts)


@pytest.mark.parametrize(
    ("found", "agreed"),
    [
        pytest.param(evidence(10), 10, id="the epoch ends there"),
        pytest.param(evidence(30), 20, id="not beyond the end"),
        pytest.param(evidence(-1), 20, id="its leader does not know"),
        pytest.param(evidence(None, of_epoch(3)), 20, id="no answer, it is there"),
        pytest.param(evidence(0, of_epoch(3)), 20, id="the answer is disproved"),
        pytest.param(evidence(5, end=7), 5, id="the log ends before it"),
        pytest.param(evidence(None, of_epoch(2), start=4), 4, id="no answer, all is another log"),
        pytest.param(evidence(6, of_epoch(2), start=4), 6, id="all is another log, and the answer says where"),
    ],
)
def test_parting_search_without_a_later_epoch_is_over_at_once(found: EpochEvidence, agreed: int) -> None:
    search = found.search()
    assert (search.is_open, search.agreed) == (False, agreed)


@given(data=st.data())
def test_parting_search_finds_the_first_batch_of_a_later_epoch(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=12))
    later_from = data.draw(st.integers(0, len(sizes) - 1))
    gaps = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    log: list[Batch] = []
    end = 0
    for number, size in enumerate(sizes):
        if not gaps[number] or number == len(sizes) - 1:  # compaction leaves the last one
            log.append(of_epoch(3 if number < later_from else 4, end, size))
        end += size
    earlier = [batch for batch in log if batch.leader_epoch == 3]
    search = EpochEvidence(end - 1, 3, 0, end, None, log[-1]).search()
    for _ in range(40):
        if not search.is_open:
            break
        middle = search.middle
        search.narrow(next((batch for batch in log if batch.last_offset >= middle), None))
    assert not search.is_open
    assert search.agreed == (earlier[-1].last_offset + 1 if earlier else 0)


def test_parting_search_without_a_batch_goes_on_before_it() -> None:
    search = PartingSearch(3, 0, 8)
    while search.is_open:
        search.narrow(None)
    assert search.agreed == 0
