"""When records were first seen, and which of them a delay lets through."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.first_seen import (
    MOST,
    TOLERANCE_MS,
    SeenEnd,
    SeenLog,
    due_end,
    late_ms,
    observe,
    released_offset,
)
from lockstep_state.rows.state_rows import MirroredTopic, SeenEnds

DELAY = 10_000
EMPTY = SeenEnds(topic="t", partition=0)


def seen(
    row: SeenEnds,
    end: int,
    at_ms: int,
    *,
    upstream: int = -1,
    topic_id: str = "",
    whole: bool = True,
    delay: int = DELAY,
) -> SeenEnds:
    return observe(row, SeenLog(SeenEnd(end, at_ms, whole), topic_id, upstream), delay, at_ms)


def after(*ends: tuple[int, int]) -> SeenEnds:
    row = EMPTY
    for end, at_ms in ends:
        row = seen(row, end, at_ms)
    return row


def test_record_is_released_when_its_delay_is_over_and_not_before() -> None:
    row = after((10, 1_000), (20, 5_000))
    assert row.released == 0
    assert seen(row, 20, 10_999).released == 0
    assert seen(row, 20, 11_000).released == 10
    assert seen(row, 20, 14_999).released == 10
    assert seen(row, 20, 15_000).released == 20


def test_log_that_was_never_seen_is_held_from_its_first_check_on() -> None:
    row = seen(EMPTY, 1_000_000, 50_000)
    assert (row.released, row.ends) == (0, ((1_000_000, 50_000, True),))
    assert seen(row, 1_000_000, 60_000).released == 1_000_000


def test_idle_log_changes_no_row() -> None:
    row = after((10, 1_000))
    assert seen(row, 10, 3_000) == row
    released = seen(row, 10, 11_000)
    assert seen(released, 10, 99_000) == released


def test_longer_delay_takes_nothing_back() -> None:
    row = seen(after((10, 1_000), (20, 5_000)), 20, 11_000)
    assert row.released == 10
    assert seen(row, 20, 12_000, delay=60_000).released == 10, "those records are copied already"
    assert seen(row, 20, 61_000, delay=60_000).released == 10
    assert seen(row, 20, 65_000, delay=60_000).released == 20


def test_topic_that_was_created_again_begins_anew() -> None:
    row = seen(seen(EMPTY, 10, 1_000, topic_id="x"), 10, 11_000, topic_id="x")
    assert row.released == 10
    again = seen(row, 30, 12_000, topic_id="y")
    assert (again.released, again.ends, again.source_topic_id) == (0, ((30, 12_000, True),), "y")
    unknown = seen(row, 30, 12_000)
    assert (unknown.released, unknown.source_topic_id) == (10, "x"), "an id that is not known is no other one"


def test_log_that_became_shorter_is_seen_anew_from_there() -> None:
    row = seen(after((10, 1_000), (20, 2_000)), 20, 12_000)
    assert row.released == 20
    cut = seen(row, 15, 13_000)
    assert cut.released == 15
    grown = seen(cut, 25, 14_000)
    assert grown.released == 15
    assert due_end([SeenEnd(*end) for end in grown.ends], 13_999) == 15


def test_clock_that_goes_back_makes_records_younger_only() -> None:
    row = seen(after((10, 5_000)), 20, 1_000, delay=1)
    assert row.ends == ((10, 5_000, True), (20, 5_000, True)), "not at a time before the one of earlier records"
    assert seen(row, 20, 14_999).released == 0
    assert seen(row, 20, 15_000).released == 20


def test_copied_ends_are_forgotten_but_for_the_last() -> None:
    row = after((10, 1_000), (20, 2_000), (30, 3_000), (40, 4_000))
    assert [end for end, _, _ in seen(row, 40, 13_000, upstream=19).ends] == [20, 30, 40]
    assert [end for end, _, _ in seen(row, 40, 13_000, upstream=18).ends] == [10, 20, 30, 40], "20 is not copied yet"
    assert [end for end, _, _ in seen(row, 40, 11_500, upstream=19).ends] == [10, 20, 30, 40], "20 is not due yet"


def test_checks_that_are_close_together_are_one_unless_only_the_later_cuts_no_transaction() -> None:
    delay = MOST * 1_000
    row = seen(EMPTY, 10, 5_000, whole=False, delay=delay)
    assert seen(row, 20, 5_999, whole=False, delay=delay).ends == row.ends
    assert seen(row, 20, 5_999, delay=delay).ends[-1] == (20, 5_999, True)
    assert seen(row, 20, 6_000, whole=False, delay=delay).ends[-1] == (20, 6_000, False)


@pytest.mark.parametrize(
    ("row", "topic_id", "released"),
    [(None, "x", 0), ("x", "x", 7), ("x", "y", 0), ("", "y", 7), ("x", "", 7)],
    ids=["no row", "the same topic", "another topic", "row without id", "topic without id"],
)
def test_only_a_row_of_the_same_topic_releases(row: str | None, topic_id: str, released: int) -> None:
    present = None if row is None else replace(EMPTY, released=7, source_topic_id=row)
    topic = MirroredTopic(source_topic="t", target_topic="s.t", source_topic_id=topic_id)
    assert released_offset(present, topic) == released
    assert released_offset(present, None) == (0 if row is None else 7)


@pytest.mark.parametrize(
    ("lag_ms", "delay_ms", "late"),
    [
        (0, DELAY, 0),
        (DELAY, DELAY, 0),
        (DELAY + TOLERANCE_MS + DELAY // 20, DELAY, 0),
        (DELAY + TOLERANCE_MS + DELAY // 20 + 1, DELAY, TOLERANCE_MS + DELAY // 20 + 1),
    ],
)
def test_delayed_copy_is_late_only_beyond_its_tolerance(lag_ms: int, delay_ms: int, late: int) -> None:
    assert late_ms(lag_ms, delay_ms) == late


@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4_000), st.integers(0, 60)), max_size=400),
    delay=st.sampled_from([1, 500, 10_000, 300_000]),
)
def test_no_record_is_released_before_its_delay_and_each_is_in_the_end(
    steps: list[tuple[int, int, int]], delay: int
) -> None:
    """Each step: records written, milliseconds passed, records copied. Compared with the time of each record."""
    row, written_at, now_ms, copied = EMPTY, list[int](), 1, 0
    for written, passed, copies in steps:
        written_at += [now_ms] * written
        now_ms += passed
        before = row
        row = seen(row, len(written_at), now_ms, upstream=copied - 1, delay=delay)
        assert len(row.ends) <= MOST
        assert row.released >= before.released
        assert all(now_ms - at_ms >= delay for at_ms in written_at[: row.released])
        copied = min(row.released, copied + copies)
    for _ in range(2):  # the last end may have been too close to the one before
        now_ms += delay + 1
        row = seen(row, len(written_at), now_ms, upstream=copied - 1, delay=delay)
    assert row.released == len(written_at)
