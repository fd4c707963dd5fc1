"""Rows of progress that are kept as bytes say what they would say if each were decoded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.slot.progress_rows import ProgressRows
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import Assignment, MalformedRow, NewerVersion, PartitionProgress, decode_row
from tests.support.reasons import reported

ROW = PartitionProgress(topic="t", partition=0, producer_id=7, upstream=5)
KEY, VALUE = ROW.encode()
EPOCH_DETAIL = Reason("of-a-newer-release", (("producer_epoch", 9),))

histories = st.lists(
    st.builds(
        PartitionProgress,
        topic=st.sampled_from(["t", "t.u"]),
        partition=st.integers(0, 1),
        producer_id=st.integers(1, 2),
        producer_epoch=st.integers(0, 11),
        upstream=st.integers(0, 3),
        cause=st.sampled_from([NO_REASON, reported('a "producer_epoch":9, in words'), EPOCH_DETAIL]),
        source_topic_id=st.sampled_from(["", "one"]),
    ),
    max_size=12,
)


@given(histories, st.integers(0, 3))
def test_progress_rows_equal_those_that_are_decoded_at_once(history: list[PartitionProgress], read_each: int) -> None:
    wanted: dict[TopicPartition, PartitionProgress] = {}
    progress_rows = ProgressRows()
    for number, row in enumerate(history):
        tp = row.topic, row.partition
        if tp not in wanted or not row.is_outdated_by(wanted[tp]):
            wanted[tp] = row
        assert progress_rows.fold(*row.encode())
        if read_each and number % read_each == 0:
            assert progress_rows[tp] == wanted[tp]
    assert dict(progress_rows) == wanted
    assert len(progress_rows) == len(wanted)


def test_row_that_nobody_asks_for_is_not_decoded() -> None:
    malformed: list[MalformedRow] = []
    rows = ProgressRows(malformed.append)
    rows.fold(KEY, VALUE)
    assert rows.fold(KEY, VALUE[:-1] + b", no JSON}")
    assert malformed == []
    assert rows.get(("t", 0)) == decode_row(KEY, VALUE)
    assert len(malformed) == 1


@pytest.mark.parametrize("value", [b'{"version":2,"topic":"t"}', b'{ "version": 2 }'])
def test_row_of_a_newer_release_is_refused_at_once(value: bytes) -> None:
    with pytest.raises(NewerVersion):
        ProgressRows().fold(KEY, value)


def test_row_in_another_spelling_is_decoded_and_kept() -> None:
    rows = ProgressRows()
    rows.fold(KEY, b'{"topic": "t", "partition": 0, "upstream": 9, "version": 1}')
    assert rows["t", 0].upstream == 9
    rows.fold(KEY, VALUE)
    assert rows["t", 0] == ROW


def test_removed_row_leaves_what_was_known() -> None:
    rows = ProgressRows()
    rows.fold(KEY, VALUE)
    assert rows.fold(KEY, None)
    assert dict(rows) == {("t", 0): ROW}


def test_rows_of_other_kinds_are_left_to_others() -> None:
    rows = ProgressRows()
    assert not rows.fold(*Assignment(slot=0).encode())
    assert rows.get(("t", 1)) is None
    assert ("t", 1) not in rows
