"""Bytes a second: never more on the mean, shared out among slots by partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.keys.key_values import PerTopic
from lockstep_data_plane.fetch.fetch_schedule import RateLimits, TokenBucket
from lockstep_rules.filters import NameFilter


@given(sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=60), per_s=st.integers(100, 2000))
def test_the_mean_never_exceeds_the_limit_by_more_than_one_fetch(sizes: list[int], per_s: int) -> None:
    throttle, now, came = TokenBucket(per_s), 10.0, 0
    for size in sizes:
        now += throttle.wait_s(now)
        came += size
        throttle.consume(size, now)
        assert came <= per_s * (now - 10.0 + 1) + size + 1e-6


def test_token_bucket_saves_unused_bytes_for_one_second() -> None:
    throttle = TokenBucket(100)
    throttle.consume(1, 0.0)
    throttle.consume(150, 50.0)
    assert throttle.wait_s(50.0) == pytest.approx(0.5)


def test_rate_limit_of_a_slot_is_its_share_of_the_partitions() -> None:
    limits = RateLimits(PerTopic(1000, ((NameFilter(("logs.*",)), 100),)))
    assert limits.any
    limits.set_shares({"orders": 1, "logs-1": 2}, {"orders": 4, "logs-1": 2})
    assert limits.wait_s("orders", 0.0) == 0
    limits.on_fetched("orders", 1000, 0.0)
    assert limits.wait_s("orders", 0.0) == pytest.approx(1.0), "half of the flow's 1000 a second"
    assert limits.wait_s("logs-1", 0.0) == pytest.approx(1.0), "the flow's limit holds for every topic"
    limits.on_fetched("logs-1", 300, 2.0)
    assert limits.wait_s("logs-1", 2.0) == pytest.approx(2.0), "its own limit, all of whose partitions are here"
    assert limits.wait_s("orders", 2.0) == 0


def test_rate_limit_without_partitions_or_without_a_limit_never_waits() -> None:
    idle = RateLimits(PerTopic(10))
    idle.set_shares({}, {"orders": 4})
    assert idle.wait_s("orders", 0.0) == 0
    free = RateLimits(PerTopic(None))
    free.set_shares({"orders": 4}, {"orders": 4})
    free.on_fetched("orders", 10**9, 0.0)
    assert not free.any
    assert free.wait_s("orders", 0.0) == 0


def test_rate_limits_follow_the_partitions_and_keep_what_was_used() -> None:
    limits = RateLimits(PerTopic(None, ((NameFilter(("logs",)), 100),)))
    limits.set_shares({"logs": 1}, {"logs": 2})
    limits.on_fetched("logs", 100, 0.0)
    assert limits.wait_s("logs", 0.0) == pytest.approx(1.0), "half of it"
    limits.set_shares({"logs": 2}, {"logs": 2})
    assert limits.wait_s("logs", 0.0) == pytest.approx(0.5), "all of it, and what came counts"
    limits.set_shares({}, {"logs": 2})
    assert limits.wait_s("logs", 0.0) == 0
    limits.set_shares({"logs": 3}, {"logs": 2})
    limits.on_fetched("logs", 200, 0.0)
    assert limits.wait_s("logs", 0.0) == pytest.approx(1.0), "never more than the limit, also where others lag behind"
