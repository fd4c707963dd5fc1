"""Where a transformed copy ends: each of our last records has to be what the transform leaves of the source."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.target_log.content_match import AmbiguousMatch
from lockstep_data_plane.core.target_log.transformed_match import TransformedComparison, TransformedMatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from tests.support.batch_bytes import record


def kept(*offsets: int) -> list[PlainRecord]:
    """Return what a transform leaves of the source."""
    return [record(offset, b"v%d" % offset, timestamp=offset) for offset in offsets]


def tail(first: int, *offsets: int) -> list[PlainRecord]:
    """Return copies of these records, from `first` on in the target's log."""
    return [r._replace(offset=first + index) for index, r in enumerate(kept(*offsets))]


def matched(ours: Sequence[PlainRecord], *parts: Sequence[PlainRecord]) -> TransformedMatch:
    comparison = TransformedComparison(ours)
    for part in parts:
        if comparison.compare(part):
            break
    return comparison.result()


def test_the_copy_ends_behind_the_last_equal_record() -> None:
    match = matched(tail(50, 3, 4, 9), kept(3), kept(4, 9, 12))
    assert match.next == 10
    assert [tuple(run) for run in match.runs] == [(3, 50, 2), (9, 52, 1)]


def test_a_record_of_another_stands_in_between_without_harm() -> None:
    ours = [*tail(50, 3), *tail(53, 4)]
    assert [tuple(run) for run in matched(ours, kept(3, 4)).runs] == [(3, 50, 1), (4, 53, 1)]


def test_a_record_that_differs_proves_nothing() -> None:
    with pytest.raises(AmbiguousMatch, match=r"at offset 51 is not what the transform makes of .* record at offset 5"):
        matched(tail(50, 3, 4), kept(3, 5))


def test_fewer_records_than_ours_prove_nothing() -> None:
    with pytest.raises(AmbiguousMatch, match="the transform leaves 1 records of the source behind it"):
        matched(tail(50, 3, 4), kept(3))


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.integers(0, 12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_the_end_of_a_copy_is_found_exactly(contents: list[int], ended: int, drops: list[bool]) -> None:
    """Also where records are equal: the transform is asked for the same records in the same order."""
    log = [record(offset, b"%d" % content) for offset, content in enumerate(contents) if not drops[offset]]
    copied = log[:ended]
    ours = [r._replace(offset=90 + index) for index, r in enumerate(copied)]
    if not copied:
        return
    match = matched(ours, log)
    assert match.next == copied[-1].offset + 1
    places = {run.upstream + i: run.downstream + i for run in match.runs for i in range(run.length)}
    assert places == {r.offset: 90 + index for index, r in enumerate(copied)}
