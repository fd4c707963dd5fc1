"""The records tell where the copy stands when the source has lost some that were copied."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep_data_plane.core.target_log.content_match import AmbiguousMatch, ContentMatch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from tests.support.batch_bytes import record, records


@given(total=st.integers(1, 30), copied=st.integers(1, 30), gone=st.sets(st.integers(0, 29)), chunk=st.integers(1, 7))
def test_content_match_finds_the_first_record_missing_on_the_target(
    total: int, copied: int, gone: set[int], chunk: int
) -> None:
    log = records(0, total)
    copied = min(copied, total)
    alignment = ContentMatch(log[:copied])
    remaining = [r for r in log if r.offset not in gone]
    matched = any(alignment.compare(remaining[i : i + chunk]) for i in range(0, len(remaining), chunk))
    expected = [r.offset for r in remaining if r.offset >= copied]
    assert matched == bool(expected)
    assert alignment.next == (expected[0] if expected else None)
    assert alignment.upstream == max((r.offset for r in remaining if r.offset < copied), default=-1)


@given(
    total=st.integers(1, 14),
    copied=st.integers(1, 14),
    gone=st.sets(st.integers(0, 13)),
    gone_there=st.sets(st.integers(0, 13)),
)
@example(total=3, copied=2, gone={1}, gone_there={0})
@example(total=3, copied=3, gone={2}, gone_there={0, 1})
@example(total=4, copied=2, gone=set(), gone_there={0, 1})
def test_content_match_with_losses_on_the_target_is_right_or_ambiguous(
    total: int, copied: int, gone: set[int], gone_there: set[int]
) -> None:
    log = records(0, total)
    copied = min(copied, total)
    target = [r for r in log[:copied] if r.offset not in gone_there]
    lost_there = gone_there & set(range(copied))
    gone_before = sum(1 for r in target if r.offset < max(lost_there)) if lost_there else -1
    alignment = ContentMatch(target, gone_before, copied)
    remaining = [r for r in log if r.offset not in gone]
    expected = [r.offset for r in remaining if r.offset >= copied]
    try:
        matched = alignment.compare(remaining)
        if not matched:
            alignment.ends()
    except AmbiguousMatch:
        behind = max((r.offset for r in remaining if r in target), default=-1)
        assert max(lost_there, default=-1) > behind, "the last one that both have leaves some untold"
        return
    assert (alignment.next if matched else None) == (expected[0] if expected else None)


def test_content_match_of_equal_records_is_ambiguous() -> None:
    with pytest.raises(AmbiguousMatch, match="the same record twice"):
        ContentMatch([record(0, b"x"), record(1, b"x")])


def test_content_match_of_another_order_is_ambiguous() -> None:
    first, second = records(0, 2)
    with pytest.raises(AmbiguousMatch, match="at offset 7 is in another place"):
        ContentMatch([first, second]).compare([second._replace(offset=6), first._replace(offset=7)])


def test_content_match_requires_equality_in_every_field() -> None:
    alignment = ContentMatch([record(0, b"x", timestamp=1)])
    assert alignment.compare([record(5, b"x", timestamp=2)])
    assert alignment.next == 5


Pass = tuple[int, bool]
"""A run of a cleaner: the end of what it has in its map, and whether it finds tombstones old enough to be removed."""


def cleaned(log: list[PlainRecord], passes: list[Pass], end: int) -> list[PlainRecord]:
    """What compaction leaves of a log that ended at `end`: of the records in a cleaner's map the last of each key. A
    tombstone that is old goes too. The last record lies in the active segment, which is not cleaned."""
    remaining = [r for r in log if r.offset < end]
    for upto, expires in passes:
        mapped = [r for r in remaining if r.offset < min(upto, end - 1)]
        last = {r.key: r.offset for r in mapped}
        gone = {r.offset for r in mapped if last[r.key] > r.offset or (expires and r.value is None)}
        remaining = [r for r in remaining if r.offset not in gone]
    return remaining


def keyed(writes: list[tuple[int, bool]]) -> list[PlainRecord]:
    return [
        record(n, None if deletes else b"value-%d" % n, key=b"key-%d" % key, timestamp=1000 + n)
        for n, (key, deletes) in enumerate(writes)
    ]


def aligned(
    log: list[PlainRecord], remaining: list[PlainRecord], there: list[PlainRecord], copied: int, since: int | None
) -> int | None:
    """The first upstream offset that the target does not have. Raises AmbiguousMatch."""
    lost = {r.offset for r in log[:copied]} - {r.offset for r in there}
    gone_before = sum(r.offset < max(lost) for r in there) if lost else -1
    alignment = ContentMatch(there, gone_before, copied, since)
    if not alignment.compare(remaining):
        alignment.ends()
    return alignment.next


def passes(*, expires: bool) -> st.SearchStrategy[list[Pass]]:
    return st.lists(
        st.tuples(st.integers(0, 24), st.booleans() if expires else st.just(False)), max_size=4
    )  # hypothesis takes a value


@given(
    writes=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=24),
    copied=st.integers(1, 24),
    here=passes(expires=True),
    there=passes(expires=False),
)
@example(
    writes=[(0, False), (1, False), (0, False), (1, False), (1, False)], copied=4, here=[(5, False)], there=[(4, False)]
)
def test_content_match_after_compaction_on_both_sides_is_never_in_doubt(
    writes: list[tuple[int, bool]], copied: int, here: list[Pass], there: list[Pass]
) -> None:
    log = keyed(writes)
    copied = min(copied, len(log))
    remaining = cleaned(log, here, len(log))
    expected = [r.offset for r in remaining if r.offset >= copied]
    assert aligned(log, remaining, cleaned(log, there, copied), copied, 0) == (expected[0] if expected else None)


@given(
    writes=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=24),
    copied=st.integers(1, 24),
    here=passes(expires=True),
    there=passes(expires=True),
    since=st.sampled_from((None, 10_000)),
)
def test_content_match_with_lost_tombstones_is_right_or_ambiguous(
    writes: list[tuple[int, bool]], copied: int, here: list[Pass], there: list[Pass], since: int | None
) -> None:
    log = keyed(writes)
    copied = min(copied, len(log))
    remaining = cleaned(log, here, len(log))
    expected = [r.offset for r in remaining if r.offset >= copied]
    try:
        match = aligned(log, remaining, cleaned(log, there, copied), copied, since)
    except AmbiguousMatch:
        return
    assert match == (expected[0] if expected else None)


def test_without_a_key_nothing_is_known_of_what_compaction_leaves() -> None:
    log = [record(n, b"value-%d" % n, key=None, timestamp=n) for n in range(4)]
    with pytest.raises(AmbiguousMatch, match="offset 3"):
        aligned(log, [log[3]], [log[2]], 3, 0)
