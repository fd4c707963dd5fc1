"""Rows of partitions and slots that are read late are the rows that are read at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_console.followed.raw_fold import RawFold
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.rows.row import MalformedRow, NewerVersion
from lockstep_state.rows.state_rows import Leader, MirroredTopic, PartitionProgress, Row, SlotStatus


def progress(number: int, upstream: int, epoch: int, producer: int, topic_id: str) -> PartitionProgress:
    return PartitionProgress(
        topic="orders",
        partition=number,
        upstream=upstream,
        producer_id=producer,
        producer_epoch=epoch,
        source_topic_id=topic_id,
    )


rows = st.one_of(
    st.builds(
        progress,
        st.integers(0, 2),
        st.integers(-1, 9),
        st.integers(0, 2),
        st.integers(1, 2),
        st.sampled_from(["x", "y"]),
    ),
    st.builds(SlotStatus, slot=st.integers(0, 1), phase=st.just("started"), partitions=st.integers(0, 3)),
    st.builds(Leader, service=st.just("topic-sync"), instance=st.sampled_from(["a", "b"])),
    st.builds(
        MirroredTopic,
        source_topic=st.just("orders"),
        target_topic=st.just("A.orders"),
        partitions=st.integers(0, 3),
        term=st.integers(0, 5),
    ),
)


def encode_reversed(row: Row) -> tuple[bytes, bytes]:
    """Return a row as no release of ours writes it: its fields are in another order."""
    key, value = row.encode()
    return key, json.dumps(dict(reversed(json.loads(value).items()))).encode()


steps = st.one_of(
    rows.map(Row.encode),
    rows.map(encode_reversed),
    st.integers(0, 2).map(lambda number: (f"partition/orders/{number}".encode(), None)),
    st.just(None),  # somebody looks
    st.just(1),  # so many rows are read
    st.just(2),
)


def record(offset: int, key: bytes | None, value: bytes | None) -> Record:
    return Record("state", 0, offset, key, value, 0)


@given(st.lists(steps, max_size=40))
def test_rows_are_those_of_a_fold_that_reads_each_at_once(
    written: list[tuple[bytes, bytes | None] | int | None],
) -> None:
    late, at_once = RawFold(), StateFold()
    for offset, step in enumerate(written):
        if step is None:
            assert late.rows == at_once.rows
            continue
        if isinstance(step, int):
            late.read_some(step)
            continue
        late.add(record(offset, *step))
        at_once.fold(offset, *step)
    assert [late.get(key) for key in sorted(at_once.rows)] == [row for _, row in sorted(at_once.rows.items())]
    assert late.get("partition/other/0") is None
    assert late.rows == at_once.rows
    assert late.position == at_once.position


def test_rows_that_were_kept_are_read_in_pieces_oldest_first() -> None:
    fold = RawFold()
    for offset, number in enumerate((0, 1, 2, 0)):
        fold.add(record(offset, *progress(number, offset, 0, 1, "x").encode()))
    assert fold.read_some(2)
    assert sorted(fold._late_fold.rows) == ["partition/orders/1", "partition/orders/2"]
    assert not fold.read_some(2)
    assert [row.upstream for row in fold.rows.values() if isinstance(row, PartitionProgress)] == [1, 2, 3]


def test_record_that_is_no_row_is_a_sentence_until_another_one_comes() -> None:
    fold = RawFold()
    key = b"partition/orders/0"
    fold.add(record(0, key, b"garbage"))
    assert list(fold.unreadable) == [key]
    with pytest.raises(MalformedRow):
        StateFold().fold(0, key, b"garbage")
    fold.add(record(1, *progress(0, 5, 0, 1, "x").encode()))
    assert not fold.unreadable
    assert [row.key() for row in fold.rows.values()] == ["partition/orders/0"]


def test_row_of_a_newer_release_is_raised_until_another_one_comes() -> None:
    fold = RawFold()
    key, value = progress(0, 5, 0, 1, "x").encode()
    fold.add(record(0, key, json.dumps({**json.loads(value), "version": 9}).encode()))
    with pytest.raises(NewerVersion):
        assert fold.rows
    fold.add(record(1, key, value))
    assert list(fold.rows) == ["partition/orders/0"]


def test_record_that_came_before_changes_nothing() -> None:
    fold = RawFold()
    fold.add(record(3, *progress(0, 5, 0, 1, "x").encode()))
    fold.add(record(2, *progress(0, 9, 0, 1, "x").encode()))
    assert [row.upstream for row in fold.rows.values() if isinstance(row, PartitionProgress)] == [5]
