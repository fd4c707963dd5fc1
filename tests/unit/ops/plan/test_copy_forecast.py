"""Where a copy begins, how much it is, how long it takes, and what retention removes before."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config import FlowSettings
from lockstep_ops.plan.rules.copy_forecast import ASSUMED, CopyRate, settled_rate
from lockstep_ops.plan.rules.flow_facts import ReachedPosition
from lockstep_ops.plan.rules.flow_plan import LOCKSTEP, MIRROR_MAKER
from lockstep_rules.topic_plan import Selection
from tests.support.plan_facts import (
    DAY_MS,
    HOUR_MS,
    cluster,
    facts,
    forecast,
    log,
    only_partition,
    only_topic,
    settings_for,
    topic,
)

Settings = Callable[..., FlowSettings]


def test_copy_of_a_new_partition_begins_at_the_earliest(settings: Settings) -> None:
    one = only_partition(forecast(facts(settings(), logs={("orders", 0): log(100, begin=50)})))
    assert (one.start, one.end, one.begins, one.records, one.bytes) == (50, 150, "earliest", 100, 1000)


def test_copy_begins_at_the_end_with_reset_to_latest(settings: Settings) -> None:
    found = facts(settings("A->B.consumer.auto.offset.reset = latest"))
    one = only_partition(forecast(found))
    assert (one.start, one.begins, one.records, one.bytes, one.seconds) == (100, "latest", 0, 0, 0)


def test_copy_begins_at_the_start_timestamp_of_the_file(settings: Settings) -> None:
    one = only_partition(forecast(facts(settings(), dated={("orders", 0): 40})))
    assert (one.start, one.begins, one.records, one.bytes) == (40, "timestamp", 60, 600)


@pytest.mark.parametrize("program", [LOCKSTEP, MIRROR_MAKER])
def test_copy_goes_on_where_a_program_has_come(settings: Settings, program: str) -> None:
    reached = {("orders", 0): ReachedPosition(90, program)}
    one = only_partition(forecast(facts(settings(), reached=reached)))
    assert (one.start, one.begins, one.records, one.bytes, one.gone) == (90, program, 10, 100, 0)


def test_copy_counts_the_offsets_that_are_gone(settings: Settings) -> None:
    reached = {("orders", 0): ReachedPosition(40, LOCKSTEP)}
    one = only_partition(forecast(facts(settings(), logs={("orders", 0): log(100, begin=50)}, reached=reached)))
    assert (one.start, one.gone, one.records) == (40, 10, 100)


def test_copy_beyond_the_end_has_no_records(settings: Settings) -> None:
    one = only_partition(forecast(facts(settings(), reached={("orders", 0): ReachedPosition(500, LOCKSTEP)})))
    assert (one.records, one.bytes) == (0, 0)


def test_copy_of_an_empty_log_needs_no_time(settings: Settings) -> None:
    copy = forecast(facts(settings(), logs={("orders", 0): log(0, size=0, age_ms=None)}))
    assert (copy.records, copy.bytes, copy.seconds) == (0, 0, 0)
    assert only_partition(copy).loses_ms == 0


def test_copy_of_unknown_bytes_has_no_time(settings: Settings) -> None:
    copy = forecast(facts(settings(), logs={("orders", 0): log(size=None)}))
    assert (copy.records, copy.bytes, copy.seconds) == (100, None, None)
    assert only_partition(copy).loses_ms is None, "retention is finite, so a loss is possible"


def test_copy_of_an_unread_partition_is_unknown(settings: Settings) -> None:
    copy = forecast(facts(settings(), logs={}))
    assert (only_topic(copy).begins, copy.records, copy.bytes) == ("", None, None)


def test_copy_of_a_topic_ends_with_its_slowest_partition(settings: Settings) -> None:
    found = facts(
        settings(),
        source=cluster("A", {"orders": topic(2)}),
        logs={
            ("orders", 0): log(size=1_000_000, age_ms=HOUR_MS // 2),
            ("orders", 1): log(size=3_000_000, age_ms=HOUR_MS // 2),
        },
    )
    copy = forecast(found, 1_000_000)
    assert [one.seconds for one in only_topic(copy).partitions] == [2, 4]
    assert (copy.seconds, copy.growth) == (4, None)


def test_topic_with_several_beginnings_is_mixed(settings: Settings) -> None:
    found = facts(
        settings(),
        source=cluster("A", {"orders": topic(2)}),
        logs={("orders", 0): log(), ("orders", 1): log()},
        reached={("orders", 1): ReachedPosition(5, LOCKSTEP)},
    )
    assert only_topic(forecast(found)).begins == "mixed"


def test_growth_of_producers_slows_the_copy_down(settings: Settings) -> None:
    size = 400_000 * DAY_MS // 1000
    copy = forecast(facts(settings(), logs={("orders", 0): log(size=size, age_ms=DAY_MS)}), 1_000_000)
    assert copy.growth == 400_000
    assert copy.seconds == pytest.approx(size / 600_000)


def test_copy_that_never_catches_up_has_no_time(settings: Settings) -> None:
    size = 2_000_000 * DAY_MS // 1000
    copy = forecast(facts(settings(), logs={("orders", 0): log(size=size, age_ms=DAY_MS)}), 1_000_000)
    assert copy.growth == 2_000_000
    assert copy.seconds is None
    assert only_partition(copy).loses_ms == DAY_MS


def test_young_log_has_no_growth(settings: Settings) -> None:
    copy = forecast(facts(settings(), logs={("orders", 0): log(size=10**12, age_ms=1000)}))
    assert copy.growth is None
    assert copy.seconds is not None


# -- retention ---------------------------------------------------------------------------------------------------------


def kept(settings: Settings, *, retention_ms: int, age_ms: int, size: int, rate: int, **configs: Any) -> int | None:
    """What `orders` loses, in milliseconds."""
    found = facts(
        settings(),
        source=cluster("A", {"orders": topic(retention_ms=str(retention_ms), **configs)}),
        logs={("orders", 0): log(1000, size, age_ms)},
    )
    return only_partition(forecast(found, rate)).loses_ms


def test_retention_longer_than_the_catch_up_loses_nothing(settings: Settings) -> None:
    assert kept(settings, retention_ms=DAY_MS, age_ms=HOUR_MS // 2, size=1_000_000, rate=1000) == 0


def test_retention_shorter_than_the_catch_up_loses_the_difference(settings: Settings) -> None:
    """The log is 30 min old and kept for one hour; the copy needs two hours, so a quarter of the log an hour's way."""
    lost = kept(settings, retention_ms=HOUR_MS, age_ms=HOUR_MS // 2, size=7_200_000, rate=1000)
    assert lost == HOUR_MS // 4


def test_retention_that_is_short_enough_loses_the_whole_log(settings: Settings) -> None:
    assert kept(settings, retention_ms=1000, age_ms=HOUR_MS // 2, size=10**9, rate=1) == pytest.approx(
        HOUR_MS // 2, abs=5
    )


def test_retention_without_limit_loses_nothing(settings: Settings) -> None:
    assert kept(settings, retention_ms=-1, age_ms=HOUR_MS // 2, size=10**9, rate=1) == 0


def test_compacted_topic_loses_nothing_by_age(settings: Settings) -> None:
    compacted = {"cleanup_policy": "compact"}
    assert kept(settings, retention_ms=1000, age_ms=HOUR_MS // 2, size=10**9, rate=1, **compacted) == 0


def test_retention_by_bytes_without_a_known_growth_is_unknown(settings: Settings) -> None:
    full = {"retention_bytes": "1000"}
    assert kept(settings, retention_ms=-1, age_ms=1000, size=1000, rate=1, **full) is None


def test_retention_by_bytes_far_from_its_limit_loses_nothing(settings: Settings) -> None:
    wide = {"retention_bytes": str(10**9)}
    assert kept(settings, retention_ms=-1, age_ms=1000, size=1000, rate=1, **wide) == 0


def test_retention_by_bytes_is_passed_by_a_slow_copy(settings: Settings) -> None:
    """A full log of one day grows by 100 bytes a second; the copy shares 150 with a partition that is as large."""
    size = 100 * DAY_MS // 1000
    found = facts(
        settings(),
        source=cluster("A", {"orders": topic(2, retention_ms="-1", retention_bytes=str(size))}),
        logs={("orders", 0): log(1000, size, DAY_MS), ("orders", 1): log(1000, size, DAY_MS)},
    )
    losses = [one.loses_ms for one in only_topic(forecast(found, 350)).partitions]
    assert losses[0] == losses[1]
    assert losses[0]


@given(
    st.integers(1, 10**7),
    st.integers(1, 10**10),
    st.integers(1, 10**9),
    st.integers(1, 10**9),
)
def test_loss_is_never_more_than_the_log(rate: int, size: int, age_ms: int, retention_ms: int) -> None:
    found = facts(
        settings_for(),
        source=cluster("A", {"orders": topic(retention_ms=str(retention_ms))}),
        logs={("orders", 0): log(1000, size, age_ms)},
    )
    one = only_partition(forecast(found, rate))
    assert one.loses_ms is not None
    assert 0 <= one.loses_ms <= max(age_ms, 1)
    assert one.loses_records is not None
    assert 0 <= one.loses_records <= 1000


# -- rates -------------------------------------------------------------------------------------------------------------


def test_rate_is_assumed_where_nothing_is_given() -> None:
    assert settled_rate(None, None) == ASSUMED


def test_rate_is_never_beyond_the_limit_of_the_file() -> None:
    given_rate = CopyRate(1000, "stated")
    assert settled_rate(given_rate, 10) == CopyRate(10, "limited")
    assert settled_rate(given_rate, 5000) == given_rate


def test_refused_topics_are_not_copied(settings: Settings) -> None:
    assert forecast(facts(settings(), refused={"A.orders": "no"})).topics == ()
    assert forecast(facts(settings(), unreadable={"orders": "no"})).topics == ()
    assert forecast(facts(settings(), selection=Selection({}))).topics == ()
