"""Where a copy without producer ids ends, by the records of both logs alone."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.target_log.log_read_back import ComparedCopy, CopyComparison, ReadBackTail
from lockstep_data_plane.core.target_log.target_tail import LogContradiction, NotReplicated
from lockstep_data_plane.record_batch.layout import LOG_APPEND_TIME, Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_rules.offsets.gap_policy import GapCase
from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch, record, records

COPIED = 10
"""So many records are copied by the row, each to its own offset."""


def row(copied: int = COPIED) -> PartitionProgress:
    return PartitionProgress(
        topic="t",
        partition=0,
        upstream=copied - 1,
        downstream=copied - 1,
        producer_id=1,
        sequence=copied - 1,
        read_back=True,
        open_run=(0, 0, copied) if copied else (),
    )


def tail_of(*batches: Batch, log_end: int = -1, copied: int = COPIED) -> ReadBackTail:
    end = batches[-1].last_offset + 1 if log_end < 0 else log_end
    tail = ReadBackTail(row(copied), log_end=end, name="A.t-0")
    tail.add_batches(batches)
    tail.replicated(end)
    return tail


def copies(first: int, *numbers: int) -> Batch:
    """A batch at offset `first` of the target that has the source's records with these numbers."""
    return batch([records(number, 1)[0]._replace(offset=first + i) for i, number in enumerate(numbers)])


def compared(tail: ReadBackTail, source: Sequence[PlainRecord], copied: int = COPIED) -> ComparedCopy:
    """Compare as the edge does: behind the row first, and then everything before it."""
    comparison = CopyComparison(row(copied), tail)
    if comparison.is_open:
        comparison.compare(record for record in source if record.offset >= copied)
    comparison.ends(source[-1].offset + 1 if source else 0)
    if comparison.strangers:
        comparison.search(record for record in source if record.offset < copied)
    return comparison.result()


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        pytest.param([copies(9, 9)], ComparedCopy(10, 10), id="nothing behind the row"),
        pytest.param(
            [copies(9, 9, 10, 11)], ComparedCopy(12, 12, (Run(10, 10, 2),)), id="a batch across the row's end"
        ),
        pytest.param([copies(10, 10), copies(11, 11)], ComparedCopy(12, 12, (Run(10, 10, 2),)), id="two batches"),
        pytest.param([copies(10, 8, 9)], ComparedCopy(10, 10, (), 2), id="an earlier batch again"),
        pytest.param(
            [copies(10, 10, 11), copies(12, 10, 11), copies(14, 12)],
            ComparedCopy(
                13,
                13,
                (
                    Run(10, 10, 2),
                    Run(12, 14, 1),
                ),
                2,
            ),
            id="a batch twice",
        ),
        pytest.param(
            [copies(10, 10), copies(11, 10, 11, 12), copies(14, 11), copies(15, 12), copies(16, 13)],
            ComparedCopy(
                14,
                14,
                (
                    Run(10, 10, 1),
                    Run(11, 12, 2),
                    Run(13, 16, 1),
                ),
                3,
            ),
            id="two writers cut batches in other places",
        ),
    ],
)
def test_comparison_of_the_tail_finds_the_place_and_the_doubles(tail: list[Batch], expected: ComparedCopy) -> None:
    assert compared(tail_of(*tail), records(0, 20)) == expected


def test_comparison_with_records_that_the_source_lost_goes_on_behind_them() -> None:
    tail = tail_of(copies(10, 10, 11, 12, 13))
    source = [record for record in records(0, 20) if record.offset not in (11, 13)]
    assert compared(tail, source) == ComparedCopy(14, 14, (Run(10, 10, 1), Run(12, 12, 1)))


def test_comparison_with_a_source_that_begins_later_names_what_is_wanted() -> None:
    result = compared(tail_of(copies(10, 10, 11)), records(15, 5))
    assert result == ComparedCopy(15, 12), "offsets 12 to 14 were never copied"


def test_comparison_with_a_record_of_another_program_is_in_doubt() -> None:
    with pytest.raises(LogContradiction) as raised:
        compared(tail_of(copies(10, 10), copies(11, 900)), records(0, 20))
    assert raised.value.case is GapCase.DOUBT


def test_comparison_ignores_times_that_the_target_sets() -> None:
    stamped = batch([record(10, b"value-10", timestamp=77)], attributes=LOG_APPEND_TIME, max_timestamp=77)
    assert compared(tail_of(stamped), records(0, 20)) == ComparedCopy(11, 11, (Run(10, 10, 1),))


@pytest.mark.parametrize(
    ("tail", "log_end"),
    [
        pytest.param([copies(11, 11)], 12, id="in front"),
        pytest.param([copies(10, 10), copies(12, 12)], 13, id="in between"),
        pytest.param([copies(10, 10)], 12, id="at the end"),
        pytest.param([batch(records(10, 1), last_offset=11)], 12, id="within a batch"),
    ],
)
def test_tail_with_records_that_the_target_lost_is_in_doubt(tail: list[Batch], log_end: int) -> None:
    with pytest.raises(LogContradiction) as raised:
        tail_of(*tail, log_end=log_end)
    assert raised.value.case is GapCase.DOUBT


def test_tail_with_too_many_records_to_compare_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep_data_plane.core.target_log.log_read_back.COMPARED_AT_MOST", 2)
    assert tail_of(copies(10, 10, 11)).is_whole
    with pytest.raises(LogContradiction) as raised:
        tail_of(copies(10, 10, 11), copies(12, 12))
    assert raised.value.case is GapCase.DOUBT


def test_tail_that_is_not_replicated_has_no_end_yet() -> None:
    tail = ReadBackTail(row(), log_end=11, name="A.t-0")
    tail.add_batches([copies(10, 10)])
    tail.replicated(12)
    assert not tail.is_whole
    assert not tail.is_settled
    with pytest.raises(NotReplicated):
        tail.last_append()


def test_last_record_of_the_run_that_differs_is_in_doubt_and_not_truncated() -> None:
    comparison = CopyComparison(row(), tail_of(copies(9, 900), copies(10, 10)))
    with pytest.raises(LogContradiction) as raised:
        comparison.require_run(records(9, 1)[0])
    assert raised.value.case is GapCase.DOUBT
    comparison.require_run(None)


@given(
    values=st.lists(st.integers(0, 2), min_size=1, max_size=30),
    sizes=st.lists(st.integers(1, 4), max_size=12),
    late=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=4),
    known=st.integers(0, 11),
)
def test_comparison_loses_nothing_and_sends_nothing_again(
    values: list[int], sizes: list[int], late: list[tuple[int, int]], known: int
) -> None:
    """One writer appends batch after batch; some are appended once more, at most as late as the log is long. The row is
    any that was true once. Many records are equal."""
    source = [record(i, b"%d" % value) for i, value in enumerate(values)]
    begins, at = [], 0
    for size in sizes:
        if at < len(source):
            begins.append((at, min(at + size, len(source))))
            at = begins[-1][1]
    log: list[tuple[PlainRecord, bool]] = []
    rows = [(0, 0)]
    for index, (first, end) in enumerate(begins):
        log += [(record, True) for record in source[first:end]]
        rows.append((end, len(log)))
        for which, when in late:
            if when == index and which <= index:
                log += [(record, False) for record in source[slice(*begins[which])]]
    copied, target_end = rows[known % len(rows)]
    before = PartitionProgress(
        topic="t", partition=0, upstream=copied - 1, downstream=target_end - 1, producer_id=1, read_back=True
    )
    tail = ReadBackTail(before, log_end=len(log))
    placed = [record._replace(offset=offset) for offset, (record, _) in enumerate(log)]
    tail.add_batches([batch([record]) for record in placed[target_end:]])
    tail.replicated(len(log))
    comparison = CopyComparison(before, tail)
    if comparison.is_open:
        comparison.compare(source[copied:])
    comparison.ends(len(source))
    comparison.search(source[:copied])
    result = comparison.result()
    assert result.next >= at, "nothing that was appended is sent again"
    if len(set(values)) == len(values):
        assert result.next == at
        assert result.doubled == sum(not first for _, first in log[target_end:])
    assert sum(count for *_, count in result.runs) + result.doubled == len(log) - target_end
    for upstream, downstream, count in result.runs:
        for i in range(count):
            assert placed[downstream + i].value == source[upstream + i].value
    assert sum(count for *_, count in result.runs) == result.next - copied, "nothing is passed over"
