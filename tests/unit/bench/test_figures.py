"""The bench's arithmetic: percentiles, ratios, and the flat keys that others read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.bench.figures import (
    Busy,
    Copy,
    Latency,
    LatencyPart,
    Limit,
    Start,
    StartPart,
    ThroughputPart,
    percentile,
    ratio,
)
from tools.bench.flat_keys import failures, flat
from tools.bench.outcome import Failed
from tools.bench.readings import Readings, ReadingsPart
from tools.bench.usage import Cpu


def copied(records_per_s: float, cpu_s_per_million: float, records: int = 3_000_000) -> Copy:
    """A copy of which half a million records lay on the target at the first look."""
    window = records - 500_000
    return Copy(
        records=records,
        window_records=window,
        window_s=window / records_per_s,
        start_s=4.0,
        total_s=20.0,
        cpu_window=Cpu(cpu_s_per_million * window / 1e6, cpu_s_per_million * window / 4e6),
        cpu_total=Cpu(30.0, 10.0),
        peak_rss_bytes=512 << 20,
        record_bytes=470.0,
        compared=7200,
        brokers_cpu_s=0.8 * window / 1e6,
    )


PART = ThroughputPart(
    name="lz4",
    facts={"records": 3_000_000},
    limit=Limit(
        fetch_only=(900_000.0, 1_200_000.0, 1_000_000.0),
        produce_only=(700_000.0, 800_000.0, 600_000.0),
        both_at_once=(500_000.0, 400_000.0),
    ),
    systems={
        "lockstep": copied(960_000, 1.1),
        "mm2_tuned": copied(300_000, 5.5),
        "mm2": Failed(reason="x", log="y.log"),
    },
)


def test_a_percentile_is_the_nearest_rank() -> None:
    hundred = [float(each) for each in range(1, 101)]
    assert percentile(hundred, 0.5) == 50
    assert percentile(hundred, 0.99) == 99
    assert percentile(hundred, 0.999) == 100
    assert percentile([7.0], 0.5) == 7


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.001, 1.0))
def test_percentile_is_an_observed_value_and_covers_its_share(values: list[float], at: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, at)
    assert found in values
    assert sum(value <= found for value in values) >= at * len(values)


@pytest.mark.parametrize("quantile", [0.0, -0.1, 1.1])
def test_a_quantile_outside_its_range_is_refused(quantile: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        percentile([1.0], quantile)


def test_a_ratio_with_a_missing_side_is_missing() -> None:
    assert ratio(3.0, 2.0) == 1.5
    assert ratio(None, 2.0) is None
    assert ratio(2.0, None) is None
    assert ratio(2.0, 0.0) is None


def test_copy_rate_leaves_out_records_that_were_there_at_the_first_sample() -> None:
    copy = copied(1_000_000, 2.0)
    assert copy.window_s == pytest.approx(2.5)
    assert copy.records_per_s == pytest.approx(1_000_000)
    assert copy.mb_per_s == pytest.approx(470)
    assert copy.cpu_s_per_million == pytest.approx(2.0)
    assert copy.cpu_user_s_per_million == pytest.approx(1.5)
    assert copy.cpu_system_s_per_million == pytest.approx(0.5)
    assert copy.records_per_s_from_start == pytest.approx(150_000)
    assert copy.cpu_s_per_million_from_start == pytest.approx(10.0)


def test_copy_complete_at_the_first_sample_has_rate_zero() -> None:
    at_once = Copy(
        records=8, window_records=0, window_s=0.0, start_s=1.0, total_s=1.0, cpu_window=Cpu(0.0, 0.0),
        cpu_total=Cpu(1.0, 0.5), peak_rss_bytes=0, record_bytes=470.0, compared=8,
    )  # fmt: skip
    assert at_once.records_per_s == 0
    assert at_once.cpu_s_per_million == 0


def test_the_limit_is_the_lower_of_both_bests() -> None:
    assert isinstance(PART.limit, Limit)
    assert PART.limit.records_per_s == 800_000


def test_the_keys_of_a_throughput_part() -> None:
    keys = flat([PART], {"cores": 2})
    assert keys["environment.cores"] == 2
    assert keys["lz4.records"] == 3_000_000
    assert keys["lz4.records_per_s.lockstep"] == 960_000
    assert keys["lz4.records_per_s.mm2_tuned"] == 300_000
    assert keys["lz4.records_per_s.limit"] == 800_000
    assert keys["lz4.cpu_s_per_million.lockstep"] == 1.1
    assert keys["lz4.brokers_cpu_s_per_million.lockstep"] == pytest.approx(0.8)
    assert keys["lz4.startup_s.lockstep"] == 4.0
    assert keys["lz4.peak_rss_mib.lockstep"] == 512
    assert keys["lz4.ratio_to_mm2_tuned"] == 3.2
    assert keys["lz4.cpu_ratio_to_mm2_tuned"] == 0.2
    assert keys["lz4.ratio_to_limit"] == 1.2
    assert keys["lz4.ratio_to_both_at_once"] == 1.92


def test_a_failed_system_has_its_failure_as_a_key_and_no_figure() -> None:
    keys = flat([PART], {})
    assert keys["lz4.failed.mm2"] == "FAILED: x (log: y.log)"
    assert not [key for key in keys if key.endswith(".mm2") and not key.startswith("lz4.failed")]
    assert "lz4.ratio_to_mm2" not in keys


def test_a_failed_limit_leaves_the_ratios_between_the_systems() -> None:
    part = ThroughputPart(name="none", limit=Failed(reason="broke"), systems=PART.systems)
    keys = flat([part], {})
    assert keys["none.failed.limit"] == "FAILED: broke"
    assert keys["none.ratio_to_mm2_tuned"] == 3.2
    assert "none.ratio_to_limit" not in keys


def test_the_keys_of_a_latency_part() -> None:
    def spread(step: float) -> Latency:
        return Latency(
            ordered_ms=tuple(step * each for each in range(1, 1001)),
            acknowledged_ms=(0.25,),
            busy=Busy(system=0.35, brokers=0.9, bench=0.4, compilers=0.01),
            offered_per_s=500.0,
        )

    part = LatencyPart(
        name="latency_500", floor=spread(0.1), systems={"lockstep": spread(0.5), "mm2": spread(1.0)}, facts={}
    )
    keys = flat([part], {})
    assert keys["latency_500.p50_ms.lockstep"] == 250
    assert keys["latency_500.p99_ms.mm2"] == 990
    assert keys["latency_500.p99_9_ms.mm2"] == 999
    assert keys["latency_500.p50_ms.floor"] == 50
    assert keys["latency_500.p50_ratio_to_mm2"] == 0.5
    assert keys["latency_500.samples.lockstep"] == 1000
    assert keys["latency_500.p99_acknowledged_ms.lockstep"] == 0.25
    assert keys["latency_500.brokers_cpu_share.mm2"] == 0.9
    assert keys["latency_500.compilers_cpu_share.mm2"] == 0.01


def test_busy_since_is_cpu_seconds_per_second() -> None:
    before = Busy(system=1.0, brokers=10.0, bench=2.0, compilers=4.0)
    after = Busy(system=7.0, brokers=46.0, bench=17.0, compilers=7.0)
    assert after.since(before, 30.0) == Busy(system=0.2, brokers=1.2, bench=0.5, compilers=0.1)


def test_the_keys_of_a_start_part() -> None:
    held = (("lockstep_heartbeat", 50 << 20), ("lockstep_cli", 30 << 20))
    part = StartPart(
        name="startup", systems={"lockstep": Start(seconds=(9.0, 4.0, 5.0), idle_rss=held, idle_cpu_share=0.02)}
    )
    keys = flat([part], {})
    assert keys["startup.startup_s.lockstep"] == 5.0
    assert keys["startup.idle_rss_mib.lockstep"] == 80
    assert not [key for key in keys if "ratio" in key]


def test_a_start_is_compared_by_medians_with_each_mm2_that_was_started() -> None:
    def started(*seconds: float) -> Start:
        return Start(seconds=seconds, idle_rss=(), idle_cpu_share=0.0)

    systems: dict[str, Start | Failed] = {"lockstep": started(9.0, 6.0, 5.0), "mm2": started(10.0, 8.0, 7.0)}
    keys = flat([StartPart(name="startup", systems=systems | {"mm2_tuned": started(7.5)})], {})
    assert keys["startup.ratio_to_mm2"] == 0.75
    assert keys["startup.ratio_to_mm2_tuned"] == 0.8
    failed = flat([StartPart(name="startup", systems=systems | {"mm2": Failed(reason="x")})], {})
    assert "startup.ratio_to_mm2" not in failed


def test_everything_that_failed_is_listed() -> None:
    latency = LatencyPart(name="latency_500", floor=Failed(reason="late"), systems={"lockstep": Failed(reason="gone")})
    assert failures([PART, latency]) == [
        "lz4: mm2 FAILED: x (log: y.log)",
        "latency_500: floor FAILED: late",
        "latency_500: lockstep FAILED: gone",
    ]


def test_the_keys_of_a_part_with_a_distance() -> None:
    part = ThroughputPart(
        name="rtt_80", facts={"proxy_mb_per_s": 900.0}, limit=PART.limit, systems=PART.systems,
        own=copied(1_200_000, 1.0),
    )  # fmt: skip
    keys = flat([part], {})
    assert keys["rtt_80.ratio_to_mm2_tuned"] == 3.2
    assert keys["rtt_80.ratio_to_undelayed"] == 0.8
    assert keys["rtt_80.records_per_s.undelayed"] == 1_200_000
    assert keys["rtt_80.proxy_mb_per_s"] == 900
    failed = ThroughputPart(
        name="rtt_80", limit=PART.limit, systems=PART.systems, own=Failed(reason="no proxy")
    )  # fmt: skip
    assert flat([failed], {})["rtt_80.failed.undelayed"] == "FAILED: no proxy"
    assert "rtt_80: undelayed FAILED: no proxy" in failures([failed])


def test_the_keys_of_readings() -> None:
    read = Readings(values={"median_s": 1.25, "longest_s": 2.5, "shortest_s": 0.5})
    part = ReadingsPart(name="new_topic", facts={"partitions": 8}, systems={"lockstep": read})
    assert flat([part], {}) == {
        "new_topic.partitions": 8,
        "new_topic.median_s.lockstep": 1.25,
        "new_topic.longest_s.lockstep": 2.5,
        "new_topic.shortest_s.lockstep": 0.5,
    }
    broken = ReadingsPart(name="catch_up", systems={"lockstep": Failed(reason="no room")})
    assert failures([broken]) == ["catch_up: lockstep FAILED: no room"]
