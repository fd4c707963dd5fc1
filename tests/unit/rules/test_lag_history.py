"""The ring of rows with the lag of a day."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.lag_history import (
    BLOCK_MS,
    BLOCKS,
    MOST_WORST,
    NOT_KNOWN,
    SAMPLE_MS,
    WORST_SAMPLE_MS,
    LagSample,
    block_of,
    read_history,
    read_worst,
    recent_lags,
    sample_of,
    summarize,
    with_sample,
    with_worst,
)
from lockstep_state.rows.state_rows import LagBlock, WorstLags, decode_row

DAY_MS = BLOCK_MS * BLOCKS
T = 20_000 * DAY_MS
"""A moment at which block 0 begins."""


def sample(lag_ms: int | None, unknown: int = 0, records: int | None = 1, rate: int | None = 7) -> LagSample:
    return LagSample(lag_ms, records, unknown, rate)


class Ring:
    """The rows as the state topic has them after a fold."""

    def __init__(self) -> None:
        self.blocks: dict[int, LagBlock] = {}
        self.worst: dict[int, WorstLags] = {}

    def measure(self, at_ms: int, lag: LagSample) -> None:
        number, _ = block_of(at_ms)
        row = with_sample(self.blocks.get(number), at_ms, lag)
        decoded = decode_row(*row.encode())
        assert isinstance(decoded, LagBlock)
        self.blocks[number] = decoded

    def rank(self, at_ms: int, lags: dict[tuple[str, int], int | None], most: int = MOST_WORST) -> None:
        number, _ = block_of(at_ms)
        row = with_worst(self.worst.get(number), at_ms, lags, most)
        decoded = decode_row(*row.encode())
        assert isinstance(decoded, WorstLags)
        self.worst[number] = decoded


class TestSampleOf:
    def test_the_longest_lag_and_all_records_count(self) -> None:
        assert sample_of([(500, 3), (1_200, 4), (0, 0)], 9) == LagSample(1_200, 7, 0, 9)

    def test_unknown_partitions_count_in_no_sum(self) -> None:
        assert sample_of([(500, 3), None, None], None) == LagSample(500, 3, 2, None)

    def test_without_a_known_partition_nothing_is_known(self) -> None:
        assert sample_of([None, None], 0) == LagSample(None, None, 2, 0)

    def test_a_flow_without_partitions_lags_by_nothing(self) -> None:
        assert sample_of([], 0) == LagSample(0, 0, 0, 0)


class TestWriting:
    def test_samples_of_ten_minutes_are_in_one_row(self) -> None:
        ring = Ring()
        for place in range(60):
            ring.measure(T + place * SAMPLE_MS, sample(place))
        ring.measure(T + BLOCK_MS, sample(60))
        assert ring.blocks[0].lag_ms == tuple(range(60))
        assert ring.blocks[1] == LagBlock(
            block=1, begins_ms=T + BLOCK_MS, lag_ms=(60,), lag_records=(1,), unknown=(0,), records_per_s=(7,)
        )

    def test_a_gap_is_unknown_in_every_list(self) -> None:
        ring = Ring()
        ring.measure(T, sample(5))
        ring.measure(T + 3 * SAMPLE_MS + 9_999, sample(6, unknown=2, rate=None))
        row = ring.blocks[0]
        assert row.lag_ms == (5, NOT_KNOWN, NOT_KNOWN, 6)
        assert row.unknown == (0, NOT_KNOWN, NOT_KNOWN, 2)
        assert row.records_per_s == (7, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)

    def test_a_row_of_another_day_is_begun_anew(self) -> None:
        ring = Ring()
        ring.measure(T + 5 * SAMPLE_MS, sample(5))
        ring.measure(T + DAY_MS + SAMPLE_MS, sample(1))
        assert ring.blocks[0].begins_ms == T + DAY_MS
        assert ring.blocks[0].lag_ms == (NOT_KNOWN, 1)

    @pytest.mark.parametrize(
        ("first", "second", "stays"),
        [
            (sample(5), sample(9), 9),
            (sample(9), sample(5), 9),
            (sample(9), sample(5, unknown=1), 9),
            (sample(9, unknown=1), sample(5), 5),
            (sample(9), sample(None, unknown=3), 9),
            (sample(None, unknown=3), sample(0), 0),
        ],
    )
    def test_a_moment_that_comes_twice_keeps_what_says_more(
        self, first: LagSample, second: LagSample, stays: int
    ) -> None:
        ring = Ring()
        ring.measure(T + 1, first)
        ring.measure(T + 9_000, second)
        assert ring.blocks[0].lag_ms == (stays,)

    def test_a_clock_that_goes_back_fills_no_later_sample(self) -> None:
        ring = Ring()
        ring.measure(T + 9 * SAMPLE_MS, sample(9))
        ring.measure(T + 2 * SAMPLE_MS, sample(2))
        assert ring.blocks[0].lag_ms == (*(NOT_KNOWN,) * 2, 2, *(NOT_KNOWN,) * 6, 9)

    def test_the_ring_never_has_more_rows_than_a_day(self) -> None:
        ring = Ring()
        for block in range(3 * BLOCKS):
            ring.measure(T + block * BLOCK_MS, sample(block))
            ring.rank(T + block * BLOCK_MS, {("t", 0): block + 1})
        assert sorted(ring.blocks) == sorted(ring.worst) == list(range(BLOCKS))


class TestWorst:
    def test_only_lagging_partitions_are_named(self) -> None:
        ring = Ring()
        ring.rank(T, {("t", 0): 0, ("t", 1): None, ("t", 2): 5})
        assert ring.worst[0].partitions == (("t", 2, (5,)),)

    def test_a_named_partition_is_sampled_also_when_its_lag_is_over(self) -> None:
        ring = Ring()
        ring.rank(T, {("t", 0): 5})
        ring.rank(T + WORST_SAMPLE_MS, {("t", 0): 0})
        ring.rank(T + 2 * WORST_SAMPLE_MS, {("t", 0): None})
        ring.rank(T + 4 * WORST_SAMPLE_MS, {})
        assert ring.worst[0].partitions == (("t", 0, (5, 0, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)),)

    def test_a_longer_lag_takes_the_place_of_a_shorter_one(self) -> None:
        ring = Ring()
        ring.rank(T, {("t", 0): 5, ("t", 1): 9}, most=2)
        ring.rank(T + WORST_SAMPLE_MS, {("t", 0): 4, ("t", 1): 1, ("t", 2): 7}, most=2)
        assert ring.worst[0].partitions == (("t", 1, (9, 1)), ("t", 2, (NOT_KNOWN, 7)))

    def test_of_equal_lags_the_partition_that_is_named_stays(self) -> None:
        ring = Ring()
        ring.rank(T, {("t", 5): 9}, most=1)
        ring.rank(T + WORST_SAMPLE_MS, {("t", 5): 3, ("t", 0): 9}, most=1)
        assert ring.worst[0].partitions == (("t", 5, (9, 3)),)

    def test_of_ten_thousand_partitions_twenty_are_named(self) -> None:
        row = with_worst(None, T, {("t", number): number for number in range(10_000)})
        assert [number for _, number, _ in row.partitions] == list(range(9_980, 10_000))

    def test_history_begins_with_the_first_sample_and_ends_with_the_last(self) -> None:
        ring = Ring()
        ring.rank(T, {("t", 0): 5})
        ring.rank(T + BLOCK_MS, {("t", 0): 0, ("u", 1): 8})
        ring.rank(T + BLOCK_MS + WORST_SAMPLE_MS, {("u", 1): 70})
        longest, shorter = read_worst(ring.worst.values(), T + 2 * BLOCK_MS, 1)
        assert (longest.topic, longest.begins_ms, longest.lag_ms) == ("u", T + BLOCK_MS, (8, 70))
        assert (shorter.topic, shorter.begins_ms, shorter.lag_ms) == ("t", T, (5,))

    def test_recent_lags_are_those_of_the_last_minutes(self) -> None:
        ring = Ring()
        for minute in range(20):
            ring.rank(T + minute * WORST_SAMPLE_MS, {("t", 0): minute + 1})
        lags = recent_lags(ring.worst.values(), T + 19 * WORST_SAMPLE_MS + 5_000)
        assert lags == {("t", 0): tuple(range(6, 21))}
        assert recent_lags(ring.worst.values(), T + DAY_MS) == {}


class TestReading:
    def test_history_has_a_value_for_each_ten_seconds_up_to_now(self) -> None:
        ring = Ring()
        ring.measure(T, sample(5, records=50))
        ring.measure(T + 2 * SAMPLE_MS, sample(7, records=70))
        history = read_history(ring.blocks.values(), T + 3 * SAMPLE_MS + 5, 1)
        assert len(history.lag_ms) == 360
        assert history.begins_ms + 356 * SAMPLE_MS == T
        assert history.lag_ms[-4:] == (5, None, 7, None)
        assert history.lag_records[-4:] == (50, None, 70, None)
        assert history.records_per_s[-4:] == (7, None, 7, None)

    def test_a_lag_with_unknown_partitions_is_a_least_one(self) -> None:
        ring = Ring()
        ring.measure(T, sample(5, unknown=1, records=50))
        history = read_history(ring.blocks.values(), T, 1)
        assert (history.lag_ms[-1], history.lag_records[-1]) == (None, None)
        assert (history.least_lag_ms[-1], history.least_lag_records[-1]) == (5, 50)
        assert history.records_per_s[-1] == 7

    def test_rows_of_yesterday_and_of_the_future_do_not_count(self) -> None:
        ring = Ring()
        ring.measure(T, sample(5))
        ring.measure(T + 50 * BLOCK_MS, sample(9))
        before_yesterday = read_history(ring.blocks.values(), T + DAY_MS + BLOCK_MS)
        assert [lag_ms for lag_ms in before_yesterday.lag_ms if lag_ms is not None] == [9]
        before_both = read_history(ring.blocks.values(), T - BLOCK_MS)
        assert not any(before_both.lag_ms)

    def test_only_the_part_of_a_row_within_the_hours_counts(self) -> None:
        ring = Ring()
        for place in range(60):
            ring.measure(T + place * SAMPLE_MS, sample(place))
        now_ms = T + 3_600_000 + 29 * SAMPLE_MS
        history = read_history(ring.blocks.values(), now_ms, 1)
        assert history.lag_ms[:30] == tuple(range(30, 60))
        assert summarize(ring.blocks.values(), now_ms, 1).known_s == 300

    def test_more_samples_than_a_row_may_have_are_not_read(self) -> None:
        row = LagBlock(block=0, begins_ms=T, lag_ms=(1,) * 100, unknown=(0,) * 100)
        history = read_history([row], T + 2 * BLOCK_MS, 1)
        assert sum(lag_ms is not None for lag_ms in history.lag_ms) == 60
        assert summarize([row], T + 2 * BLOCK_MS, 1).known_s == 600
        worst = WorstLags(block=0, begins_ms=T, partitions=(("t", 0, (1,) * 100),))
        assert [len(found.lag_ms) for found in read_worst([worst], T + 2 * BLOCK_MS, 1)] == [10]


class TestSummary:
    def test_nothing_measured_is_unknown(self) -> None:
        summary = summarize([], T)
        assert (summary.worst_ms, summary.worst_at_ms, summary.known_s, summary.now_ms) == (None, None, 0, None)

    def test_the_longest_lag_and_its_last_time_are_found(self) -> None:
        ring = Ring()
        for place, lag_ms in enumerate((3, 900, 4, 900, 5)):
            ring.measure(T + place * BLOCK_MS, sample(lag_ms))
        summary = summarize(ring.blocks.values(), T + 4 * BLOCK_MS)
        assert (summary.worst_ms, summary.worst_at_ms) == (900, T + 3 * BLOCK_MS)
        assert (summary.known_s, summary.now_ms) == (50, 5)

    def test_a_lag_of_zero_is_known(self) -> None:
        ring = Ring()
        ring.measure(T, sample(0))
        summary = summarize(ring.blocks.values(), T)
        assert (summary.worst_ms, summary.known_s, summary.now_ms) == (0, 10, 0)

    def test_a_sample_with_unknown_partitions_is_a_least_one_and_not_known(self) -> None:
        ring = Ring()
        ring.measure(T, sample(800, unknown=1))
        summary = summarize(ring.blocks.values(), T)
        assert (summary.worst_ms, summary.known_s, summary.now_ms) == (800, 0, None)

    @pytest.mark.parametrize(("age_ms", "now"), [(0, 5), (29_999, 5), (30_000, None), (-50_000, 5), (-70_000, None)])
    def test_the_present_lag_is_a_fresh_sample(self, age_ms: int, now: int | None) -> None:
        ring = Ring()
        ring.measure(T, sample(5))
        assert summarize(ring.blocks.values(), T + age_ms).now_ms == now

    def test_the_newest_sample_is_the_present_one_and_a_gap_is_not(self) -> None:
        ring = Ring()
        ring.measure(T, sample(5))
        ring.measure(T + SAMPLE_MS, sample(6))
        row = replace(ring.blocks[0], lag_ms=(*ring.blocks[0].lag_ms, -1), unknown=(*ring.blocks[0].unknown, -1))
        assert summarize([row], T + 2 * SAMPLE_MS).now_ms == 6

    @given(st.lists(st.tuples(st.integers(0, 2 * DAY_MS), st.integers(0, 10**6), st.integers(0, 2)), max_size=60))
    def test_summary_agrees_with_the_history(self, measured: list[tuple[int, int, int]]) -> None:
        ring = Ring()
        for at_ms, lag_ms, unknown in measured:
            ring.measure(T + at_ms, sample(lag_ms, unknown=unknown))
        rows, now_ms = list(ring.blocks.values()), T + 2 * DAY_MS
        history, summary = read_history(rows, now_ms), summarize(rows, now_ms)
        assert summary.worst_ms == max((lag for lag in history.least_lag_ms if lag is not None), default=None)
        assert summary.known_s == 10 * sum(lag is not None for lag in history.lag_ms)
