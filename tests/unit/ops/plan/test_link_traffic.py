"""Forecast of the bytes that go over a flow's links each day."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lockstep_cli.rendering.traffic_lines import traffic_lines
from lockstep_ops.plan.rules.batch_sample import CodecSample
from lockstep_ops.plan.rules.flow_facts import LogFacts
from lockstep_ops.plan.rules.flow_plan import TrafficForecast
from lockstep_ops.plan.rules.link_traffic import forecast_traffic
from lockstep_rules.clusters.cluster_capabilities import Role, missing_capabilities
from lockstep_rules.topic_plan import Selection
from lockstep_state.kafka.kafka_requests import KafkaRequest
from tests.support.plan_facts import DAY_MS, HOUR_MS, NOW_MS, cluster, facts, log, settings_for, topic

GZIP = "A->B.producer.override.compression.type = gzip"
ZSTD = "A->B.producer.override.compression.type = zstd"


def of_a_week(day_ago: int | None, records: int = 7000, size: int | None = 70_000, **fields: Any) -> LogFacts:
    """A log of seven days with records of 40 bytes, which take 10 on disk."""
    return replace(log(records, size, 7 * DAY_MS), day_ago=day_ago, record_bytes=40.0, **fields)


def traffic(*logs: LogFacts, lines: tuple[str, ...] = (), **fields: Any) -> TrafficForecast:
    partitions = {("orders", number): each for number, each in enumerate(logs)}
    source = cluster("A", {"orders": topic(len(logs))})
    return forecast_traffic(facts(settings_for(*lines), **{"source": source, "logs": partitions, **fields}))


def test_traffic_is_what_the_last_day_brought() -> None:
    forecast = traffic(of_a_week(day_ago=6900))
    assert (forecast.records_a_day, forecast.record_bytes_a_day) == (100, 4000)
    links = [(link.bytes_a_day, link.basis, link.direction) for link in (forecast.source, forecast.target)]
    assert links == [(1000, "stored", "received"), (1000, "unchanged", "sent")]
    assert (forecast.partitions, forecast.uncounted, forecast.compacted) == (1, 0, 0)


YOUNG = replace(of_a_week(day_ago=0, records=600, size=6000), oldest_ms=NOW_MS - 6 * HOUR_MS)
SEVERAL = (of_a_week(day_ago=6900), of_a_week(day_ago=6800), log(0, 0, None))


@pytest.mark.parametrize(
    ("logs", "fields", "records", "size", "partitions", "uncounted"),
    [
        pytest.param([of_a_week(day_ago=None)], {}, 1000, 10_000, 1, 0, id="average"),
        pytest.param([YOUNG], {}, 2400, 24_000, 1, 0, id="hours scaled to a day"),
        pytest.param(SEVERAL, {}, 300, 3000, 3, 0, id="partitions add up"),
        pytest.param(SEVERAL[:1], {"source": cluster("A", {"orders": topic(3)})}, 100, 1000, 1, 2, id="not read"),
        pytest.param(SEVERAL[:1], {"refused": {"A.orders": "no"}}, None, None, 0, 0, id="refused"),
    ],
)
def test_traffic_counts_the_partitions_that_are_copied(
    logs: Sequence[LogFacts], fields: dict[str, Any], records: int, size: int, partitions: int, uncounted: int
) -> None:
    forecast = traffic(*logs, **fields)
    assert (forecast.records_a_day, forecast.source.bytes_a_day) == (records, size)
    assert (forecast.partitions, forecast.uncounted) == (partitions, uncounted)


def test_traffic_of_a_log_under_an_hour_is_not_counted() -> None:
    forecast = traffic(of_a_week(day_ago=6900), log(1000, 1000, HOUR_MS - 1))
    assert (forecast.records_a_day, forecast.partitions, forecast.uncounted) == (100, 1, 1)
    assert any("not counted: 1 partition" in line for line in traffic_lines(forecast))


def test_traffic_of_young_logs_alone_is_unknown() -> None:
    forecast = traffic(log(1000, 1000, 1000))
    assert (forecast.records_a_day, forecast.record_bytes_a_day, forecast.source.bytes_a_day) == (None, None, None)
    assert [*traffic_lines(forecast)] == [
        "not known: 1 partition with a log younger than an hour, or one that cannot be read"
    ]


def test_sizes_of_a_sample_say_nothing_of_the_link() -> None:
    """They are uncompressed."""
    forecast = traffic(of_a_week(day_ago=6900), bytes_basis="sampled")
    assert (forecast.record_bytes_a_day, forecast.source.bytes_a_day) == (4000, None)
    assert (forecast.source.basis, forecast.target.basis) == ("unknown", "unknown")


def test_records_that_were_not_read_leave_their_size_unknown() -> None:
    forecast = traffic(replace(of_a_week(day_ago=6900), record_bytes=None))
    assert (forecast.record_bytes_a_day, forecast.source.bytes_a_day) == (None, 1000)
    assert "producers: 100 records, uncompressed bytes not known: no record could be read, by the last 24 hours" in [
        *traffic_lines(forecast)
    ]


@pytest.mark.parametrize(
    ("lines", "size", "basis"),
    [
        ((ZSTD, "A->B.lockstep.recompress = true"), None, "recompressed"),
        ((ZSTD,), 1000, "at-most"),
        (("A->B.producer.override.compression.type = none",), 1000, "unchanged"),
    ],
)
def test_traffic_to_the_target_depends_on_compression(lines: tuple[str, ...], size: int | None, basis: str) -> None:
    forecast = traffic(of_a_week(day_ago=6900), lines=lines)
    assert (forecast.source.bytes_a_day, forecast.target.bytes_a_day, forecast.target.basis) == (1000, size, basis)


SAMPLE = (CodecSample("zstd", 3, 100, 1000, {"none": 4000, "gzip": 1200, "snappy": 2000, "lz4": 1500, "zstd": 1000}),)
OLD = cluster(
    "B", product="Kafka 2.0", lacks=tuple(missing_capabilities({KafkaRequest.PRODUCE: (0, 6)}, [Role.TARGET]))
)


@pytest.mark.parametrize(
    ("lines", "fields", "size", "basis"),
    [
        ((ZSTD, "A->B.lockstep.recompress = true"), {}, 1000, "unchanged"),
        (
            (GZIP, "A->B.lockstep.recompress = true"),
            {},
            1200,
            "recompressed",
        ),
        ((), {"target": OLD}, 1500, "recompressed"),
        ((), {"target": OLD, "batches": {}}, None, "recompressed"),
        ((GZIP,), {}, 1000, "unchanged"),
    ],
)
def test_traffic_to_the_target_is_measured_on_a_sample(
    lines: tuple[str, ...], fields: dict[str, Any], size: int | None, basis: str
) -> None:
    forecast = traffic(of_a_week(day_ago=6900), lines=lines, **{"batches": {"orders": SAMPLE}, **fields})
    assert (forecast.source.bytes_a_day, forecast.target.bytes_a_day, forecast.target.basis) == (1000, size, basis)


def test_sample_of_batches_gives_the_bytes_that_brokers_do_not() -> None:
    forecast = traffic(of_a_week(day_ago=6900), bytes_basis="sampled", batches={"orders": SAMPLE})
    assert (forecast.source.bytes_a_day, forecast.source.basis) == (1000, "sampled")
    assert (forecast.target.bytes_a_day, forecast.target.basis) == (1000, "unchanged")
    assert (forecast.codecs, forecast.unsampled) == ({"zstd": 1}, 0)
    assert "codecs of the newest batches: zstd in 1 topic" in [*traffic_lines(forecast)]


def test_topics_without_records_need_no_sample() -> None:
    source = cluster("A", {"orders": topic(), "empty": topic()})
    logs = {("orders", 0): of_a_week(day_ago=6900), ("empty", 0): log(0, 0, None)}
    selection = Selection({"orders": "A.orders", "empty": "A.empty"})
    fields = {"source": source, "logs": logs, "selection": selection, "batches": {"orders": SAMPLE}, "target": OLD}
    assert forecast_traffic(facts(settings_for(), **fields)).target.bytes_a_day == 1500


def test_compacted_topics_are_counted_apart() -> None:
    forecast = traffic(of_a_week(day_ago=6900), source=cluster("A", {"orders": topic(cleanup_policy="compact")}))
    assert forecast.compacted == 1
    assert "1 partition of compacted topics count as compaction has left them" in [*traffic_lines(forecast)]


def test_lines_say_both_links_and_what_compression_saves() -> None:
    assert [*traffic_lines(traffic(of_a_week(day_ago=6900)))] == [
        "producers: 100 records, 4 kB uncompressed, by the last 24 hours",
        "received from A: 1 kB, as the brokers have it on disk, 25% of the uncompressed bytes",
        "sent to B: 1 kB, as batches pass unchanged",
    ]


def test_flow_without_topics_has_no_traffic() -> None:
    forecast = forecast_traffic(facts(settings_for(), selection=Selection({}), logs={}))
    assert (forecast.partitions, forecast.uncounted, forecast.records_a_day) == (0, 0, None)
