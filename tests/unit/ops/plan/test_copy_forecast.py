"""Forecast of a copy: its first offset, size and time, and the records that retention removes before."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config import FlowSettings
from lockstep_ops.plan.rules.copy_forecast import ASSUMED, CopyRate, settled_rate
from lockstep_ops.plan.rules.flow_facts import ReachedPosition
from lockstep_ops.plan.rules.flow_plan import LOCKSTEP, MIRROR_MAKER, treatments
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


@pytest.mark.parametrize(
    ("lines", "fields", "start", "begins", "records", "gone"),
    [
        ("", {"logs": {("orders", 0): log(100, begin=50)}}, 50, "earliest", 100, 0),
        ("A->B.consumer.auto.offset.reset = latest", {}, 100, "latest", 0, 0),
        ("", {"dated": {("orders", 0): 40}}, 40, "timestamp", 60, 0),
        ("", {"reached": {("orders", 0): ReachedPosition(90, LOCKSTEP)}}, 90, LOCKSTEP, 10, 0),
        ("", {"reached": {("orders", 0): ReachedPosition(90, MIRROR_MAKER)}}, 90, MIRROR_MAKER, 10, 0),
        (
            "",
            {"logs": {("orders", 0): log(100, begin=50)}, "reached": {("orders", 0): ReachedPosition(40, LOCKSTEP)}},
            *(40, LOCKSTEP, 100, 10),
        ),
        ("", {"reached": {("orders", 0): ReachedPosition(500, LOCKSTEP)}}, 500, LOCKSTEP, 0, 0),
    ],
)
def test_copy_of_a_partition_begins_where_the_file_or_its_progress_has_it(
    settings: Settings, lines: str, fields: dict[str, Any], start: int, begins: str, records: int, gone: int
) -> None:
    partition = only_partition(forecast(facts(settings(*lines.splitlines()), **fields)))
    assert (partition.start, partition.begins, partition.gone) == (start, begins, gone)
    assert (partition.records, partition.bytes) == (records, 10 * records)
    assert records or not partition.seconds


@pytest.mark.parametrize(
    ("logs", "records", "size", "seconds"),
    [
        ({("orders", 0): log(0, size=0, age_ms=None)}, 0, 0, 0),
        ({("orders", 0): log(size=None)}, 100, None, None),
        ({}, None, None, None),
    ],
    ids=["an empty log", "bytes unknown", "not read"],
)
def test_copy_of_a_log_has_the_time_of_its_bytes(
    settings: Settings, logs: Any, records: int | None, size: int | None, seconds: float | None
) -> None:
    copy = forecast(facts(settings(), logs=logs))
    assert (copy.records, copy.bytes, copy.seconds) == (records, size, seconds)
    if logs:
        assert only_partition(copy).loses_ms == seconds, "retention is finite, so a loss is possible"
    else:
        assert only_topic(copy).begins == ""


def test_rate_is_assumed_where_none_is_given_and_never_beyond_the_limit_of_the_file() -> None:
    assert settled_rate(None, None) == ASSUMED
    given_rate = CopyRate(1000, "stated")
    assert settled_rate(given_rate, 10) == CopyRate(10, "limited")
    assert settled_rate(given_rate, 5000) == given_rate


def test_copy_of_a_topic_ends_with_its_slowest_partition(settings: Settings) -> None:
    flow = facts(
        settings(),
        source=cluster("A", {"orders": topic(2)}),
        logs={
            ("orders", 0): log(size=1_000_000, age_ms=HOUR_MS // 2),
            ("orders", 1): log(size=3_000_000, age_ms=HOUR_MS // 2),
        },
    )
    copy = forecast(flow, 1_000_000)
    assert [partition.seconds for partition in only_topic(copy).partitions] == [2, 4]
    assert (copy.seconds, copy.growth) == (4, None)


@pytest.mark.parametrize(
    ("lines", "found", "phrases"),
    [
        ("", (0, "", ()), ()),
        ("lockstep.delay = orders=30m, x=2h", (1_800_000, "", ()), ("delayed 30 min",)),
        ("lockstep.filter = tombstone", (0, "", ("filter",)), ("filter",)),
        ("lockstep.filter = tombstone and topic x", (0, "", ()), ()),
        ("lockstep.headers = drop x", (0, "", ("headers",)), ("headers",)),
        (
            "lockstep.delay = 1d\nlockstep.transform.pii.topics = ord.*\nlockstep.transform.pii.mask = $.a: mask",
            (DAY_MS, "pii", ()),
            ("delayed 1.0 d", "transform pii"),
        ),
    ],
)
def test_topic_has_what_becomes_of_its_records(
    settings: Settings, lines: str, found: tuple[int, str, tuple[str, ...]], phrases: tuple[str, ...]
) -> None:
    forecast_topic = only_topic(forecast(facts(settings(*lines.splitlines()), logs={("orders", 0): log()})))
    assert (forecast_topic.delay_ms, forecast_topic.transform, forecast_topic.rules) == found
    assert treatments(forecast_topic) == phrases


def test_topic_with_several_beginnings_is_mixed(settings: Settings) -> None:
    flow = facts(
        settings(),
        source=cluster("A", {"orders": topic(2)}),
        logs={("orders", 0): log(), ("orders", 1): log()},
        reached={("orders", 1): ReachedPosition(5, LOCKSTEP)},
    )
    assert only_topic(forecast(flow)).begins == "mixed"


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


HALF_AN_HOUR_MS = HOUR_MS // 2


@pytest.mark.parametrize(
    ("retention_ms", "age_ms", "size", "rate", "configs", "lost"),
    [
        pytest.param(DAY_MS, HALF_AN_HOUR_MS, 1_000_000, 1000, {}, 0, id="longer than the catch-up"),
        # The log is 30 min old and kept for an hour, and the copy needs two: a quarter of an hour is lost.
        pytest.param(HOUR_MS, HALF_AN_HOUR_MS, 7_200_000, 1000, {}, HOUR_MS // 4, id="shorter"),
        pytest.param(1000, HALF_AN_HOUR_MS, 10**9, 1, {}, pytest.approx(HALF_AN_HOUR_MS, abs=5), id="the whole log"),
        pytest.param(-1, HALF_AN_HOUR_MS, 10**9, 1, {}, 0, id="without limit"),
        pytest.param(1000, HALF_AN_HOUR_MS, 10**9, 1, {"cleanup_policy": "compact"}, 0, id="compacted"),
        pytest.param(-1, 1000, 1000, 1, {"retention_bytes": "1000"}, None, id="bytes, growth unknown"),
        pytest.param(-1, 1000, 1000, 1, {"retention_bytes": str(10**9)}, 0, id="bytes far from the limit"),
    ],
)
def test_retention_takes_what_the_copy_has_not_reached(
    settings: Settings, retention_ms: int, age_ms: int, size: int, rate: int, configs: dict[str, Any], lost: Any
) -> None:
    flow = facts(
        settings(),
        source=cluster("A", {"orders": topic(retention_ms=str(retention_ms), **configs)}),
        logs={("orders", 0): log(1000, size, age_ms)},
    )
    assert only_partition(forecast(flow, rate)).loses_ms == lost


def test_retention_by_bytes_is_passed_by_a_slow_copy(settings: Settings) -> None:
    """A full log of one day grows by 100 bytes a second; the copy shares 150 with a partition that is as large."""
    size = 100 * DAY_MS // 1000
    flow = facts(
        settings(),
        source=cluster("A", {"orders": topic(2, retention_ms="-1", retention_bytes=str(size))}),
        logs={("orders", 0): log(1000, size, DAY_MS), ("orders", 1): log(1000, size, DAY_MS)},
    )
    losses = [partition.loses_ms for partition in only_topic(forecast(flow, 350)).partitions]
    assert losses[0] == losses[1]
    assert losses[0]


@given(st.integers(1, 10**7), st.integers(1, 10**10), st.integers(1, 10**9), st.integers(1, 10**9))
def test_loss_is_never_more_than_the_log(rate: int, size: int, age_ms: int, retention_ms: int) -> None:
    flow = facts(
        settings_for(),
        source=cluster("A", {"orders": topic(retention_ms=str(retention_ms))}),
        logs={("orders", 0): log(1000, size, age_ms)},
    )
    partition = only_partition(forecast(flow, rate))
    assert partition.loses_ms is not None
    assert 0 <= partition.loses_ms <= max(age_ms, 1)
    assert partition.loses_records is not None
    assert 0 <= partition.loses_records <= 1000


# -- rates -------------------------------------------------------------------------------------------------------------


def test_refused_topics_are_not_copied(settings: Settings) -> None:
    assert forecast(facts(settings(), refused={"A.orders": "no"})).topics == ()
    assert forecast(facts(settings(), unreadable={"orders": "no"})).topics == ()
    assert forecast(facts(settings(), selection=Selection({}))).topics == ()
