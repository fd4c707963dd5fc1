"""The sliding window of Kafka's quotas: two samples of 30 seconds."""

import math

from lockstep_rules.sliding_window import SAMPLE_MS, WINDOW_MS, Rate, Window, window_stats

T = 1_700_000_000_000


def test_window_before_the_first_sample_is_unknown() -> None:
    assert Window().summary == ()
    assert all(math.isnan(value) for value in window_stats((), T))


def test_last_least_most_and_mean() -> None:
    window = Window()
    for at, value in ((T, 10), (T + 1, 40), (T + 2, 25)):
        window.record(at, value)
    assert window.summary == (T + 2, 25, 10, 40, 25)
    assert window_stats(window.summary, T + 3) == (25, 10, 40, 25)


def test_window_counts_several_samples_at_once() -> None:
    window = Window()
    window.record(T, 0, least=0, most=10, mean=5, count=9)
    window.record(T, 105)
    assert window.summary == (T, 105, 0, 105, 15)


def test_window_forgets_samples_older_than_two() -> None:
    window = Window()
    window.record(T, 1000)
    window.record(T + SAMPLE_MS, 10)
    assert window.summary[2:] == (10, 1000, 505)
    window.record(T + WINDOW_MS, 20)
    assert window.summary[2:] == (10, 20, 15)
    window.record(T + 10 * WINDOW_MS, 7)
    assert window.summary[1:] == (7, 7, 7, 7)


def test_window_without_recent_samples_has_only_the_last() -> None:
    window = Window()
    window.record(T, 5)
    last, *rest = window_stats(window.summary, T + WINDOW_MS)
    assert last == 5
    assert all(math.isnan(value) for value in rest)


def test_a_rate_that_has_just_begun_counts_as_thirty_seconds_long() -> None:
    rate = Rate()
    assert rate.per_second(T) == 0
    rate.record(T, 300)
    assert rate.per_second(T) == 10
    assert rate.per_second(T + 20_000) == 6


def test_a_steady_rate_is_shown_as_it_is() -> None:
    rate = Rate()
    for second in range(200):
        rate.record(T + 1000 * second, 50)
    assert 48 <= rate.per_second(T + 200_000) <= 52


def test_a_rate_ends_when_nothing_comes_any_more() -> None:
    rate = Rate()
    rate.record(T, 300)
    assert rate.per_second(T + WINDOW_MS - 1) > 0
    assert rate.per_second(T + WINDOW_MS) == 0
