"""When a broker is asked again: at once, but for single records that come by the thousand, missing room and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.keys.key_values import PerTopic
from lockstep_data_plane.fetch.fetch_schedule import (
    COUNTED_S,
    MANY_PER_S,
    NO_ROOM_WAIT_MS,
    PACE_S,
    PAUSE_FACTOR,
    SMALL_BYTES,
    FetchSchedule,
)
from lockstep_rules.filters import NameFilter

TOOK_S = 0.001
NO_LIMIT: PerTopic[int | None] = PerTopic(None)


def timing(limits: PerTopic[int | None] = NO_LIMIT) -> FetchSchedule:
    return FetchSchedule(500, limits)


def rest_after(
    made: FetchSchedule,
    per_s: float,
    *,
    connection: str = "c",
    size: int = 500,
    seconds: float = 10 * COUNTED_S,
    begin: float = 0.0,
    took_s: float = TOOK_S,
) -> float:
    """The rest after a while of so many batches a second, one in each answer of so many bytes."""
    moments = [begin + (number + 1) / per_s for number in range(round(seconds * per_s))]
    return [made.pause_s(connection, 1, size, now - took_s, now) for now in moments][-1]


@pytest.mark.parametrize(
    ("per_s", "rests"), [(MANY_PER_S / 10, False), (MANY_PER_S * 0.9, False), (MANY_PER_S * 1.1, True)]
)
def test_pause_only_where_many_small_batches_come(per_s: float, rests: bool) -> None:
    assert (rest_after(timing(), per_s) > 0) is rests


def test_no_pause_after_a_large_or_an_empty_answer() -> None:
    often = MANY_PER_S * 2
    assert rest_after(timing(), often, size=SMALL_BYTES) > 0
    assert rest_after(timing(), often, size=SMALL_BYTES + 1) == 0
    assert rest_after(timing(), often, size=0) == 0


def test_no_pause_when_batches_are_few_again() -> None:
    made = timing()
    assert rest_after(made, MANY_PER_S * 2) > 0
    assert made.pause_s("c", 1, 500, 9.9, 10.0) == 0
    assert rest_after(made, MANY_PER_S / 2, begin=10.0) == 0


def test_pause_follows_the_request_time_up_to_a_bound() -> None:
    for took_s in (0.0002, 0.001, 0.0014):
        assert rest_after(timing(), MANY_PER_S * 2, took_s=took_s) == pytest.approx(PAUSE_FACTOR * took_s)
    for took_s in (0.002, 0.004, 0.005):
        assert took_s + rest_after(timing(), MANY_PER_S * 2, took_s=took_s) == pytest.approx(PACE_S)
    assert rest_after(timing(), MANY_PER_S * 2, took_s=1.0) == 0


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2 * SMALL_BYTES), st.floats(0, 0.1)), max_size=80))
def test_no_pause_is_longer_than_the_pace(answers: list[tuple[int, int, float]]) -> None:
    made, now = timing(), 100.0
    for batches, size, took_s in answers:
        rest = made.pause_s("c", batches, size, now, now + took_s)
        assert 0 <= rest <= max(0.0, PACE_S - took_s) + 1e-9
        now += took_s + rest


def test_batches_of_one_connection_do_not_delay_another() -> None:
    made = timing()
    assert rest_after(made, MANY_PER_S * 2, connection="busy") > 0
    assert rest_after(made, MANY_PER_S / 2, connection="calm") == 0


@pytest.mark.parametrize(("max_wait_ms", "crowded_ms"), [(500, NO_ROOM_WAIT_MS), (3, 3)])
def test_request_that_leaves_out_partitions_comes_back_soon(max_wait_ms: int, crowded_ms: int) -> None:
    made = FetchSchedule(max_wait_ms, NO_LIMIT)
    assert made.wait_ms(leaves_out=False) == max_wait_ms
    assert made.wait_ms(leaves_out=True) == crowded_ms


def test_topic_over_its_limit_waits_until_the_limit_allows_it() -> None:
    made = timing(PerTopic(None, ((NameFilter(("slow",)), 100), (NameFilter(("slower",)), 10))))
    made.rates.set_shares({"slow": 1, "slower": 1, "free": 1}, {})
    topics = ["slow", "slower", "free"]
    assert made.allowed_in_s(topics, 0.0) is None
    made.rates.on_fetched("slow", 150, 0.0)
    made.rates.on_fetched("slower", 20, 0.0)
    assert [made.allows(topic, 0.0) for topic in topics] == [False, False, True]
    assert made.allowed_in_s(topics, 0.0) == pytest.approx(0.5), "the first that may be fetched again"
    assert made.allows("slow", 0.5)
    assert made.allowed_in_s(topics, 0.5) == pytest.approx(0.5), "then the next"
    assert made.allowed_in_s(["free"], 0.5) is None


def test_topics_without_limits_wait_for_nothing() -> None:
    made = timing()
    made.rates.set_shares({"t": 4}, {"t": 4})
    made.rates.on_fetched("t", 10**9, 0.0)
    assert made.allows("t", 0.0)
    assert made.allowed_in_s(["t"], 0.0) is None
