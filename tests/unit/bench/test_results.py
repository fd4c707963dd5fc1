"""The bench's arithmetic, its tables, which never hide what failed, and the flat keys that others read."""

from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.support.tree_usage import Cpu
from tools.bench import latency, resting
from tools.bench.copying import copy_readings, limit_readings
from tools.bench.parts import BY_DEFAULT, PARTS
from tools.bench.results import Failed, Readings, Result, Scalar, flat, markdown, percentile, show
from tools.bench.stage import Part


def copied(records_per_s: float, cpu_s_per_million: float, records: int = 3_000_000) -> Readings:
    """A copy of which half a million records lay on the target at the first look."""
    window = records - 500_000
    return copy_readings(
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


FACTS: dict[str, Scalar] = {
    "records": 3_000_000, "record_bytes": 470.0, "codec": "lz4", "partitions": 8, "batches": 10, "batch_records": 100.0,
    "batch_stored_bytes": 15_000.0,
}  # fmt: skip
BROKEN = Failed(reason="ended by itself", log="y.log")
LIMITS = limit_readings({"fetch_only": 1.2e6, "produce_only": 8e5, "both_at_once": 5e5}, 470.0)


def result(name: str, **systems: Readings | Failed) -> Result:
    """What a part of this name found."""
    part = PARTS[name]
    return Result(name=name, title=part.title, rows=part.rows, systems=systems)


LZ4 = replace(
    result(
        "lz4",
        lockstep=copied(960_000, 1.1),
        mm2_tuned=copied(300_000, 5.5),
        mm2=BROKEN,
        **LIMITS,
    ),
    facts=FACTS,
    notes=PARTS["lz4"].notes,
)
FAR = replace(
    LZ4,
    name="rtt_80",
    facts={**FACTS, "far": "source", "round_trip_ms": 80.0, "proxy_mb_per_s": 900.0, "proxy_records_per_s": 5e6},
    notes=PARTS["rtt_80"].notes,
    systems={**LZ4.systems, "undelayed": copied(1_200_000, 1.0)},
)


def spread(step: float) -> Readings:
    """Latencies of a thousand steps."""
    values = latency.latency_values([step * each for each in range(1, 1001)], [0.25])
    return Readings(values={**values, "cpu_share": 0.35, "brokers_cpu_share": 0.9})


LATENCY = result("latency_500", lockstep=spread(0.5), mm2=spread(1.0), floor=Readings(values={"p50_ms": 50.0}))


def cells(part: Result) -> dict[str, list[str]]:
    """The cells of each row."""
    return {row[0].strip(): row[1:] for row in part.table()[1]}


def test_a_percentile_is_the_nearest_rank() -> None:
    hundred = [float(each) for each in range(1, 101)]
    assert [percentile(hundred, share) for share in (0.5, 0.99, 0.999)] == [50, 99, 100]
    assert percentile([7.0], 0.5) == 7


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.001, 1.0))
def test_percentile_is_an_observed_value_and_covers_its_share(values: list[float], quantile: float) -> None:
    measured = percentile(sorted(values), quantile)
    assert measured in values
    assert sum(value <= measured for value in values) >= quantile * len(values)


@pytest.mark.parametrize("quantile", [0.0, -0.1, 1.1])
def test_a_quantile_outside_its_range_is_refused(quantile: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        percentile([1.0], quantile)


def test_copy_rate_leaves_out_records_that_were_there_at_the_first_sample() -> None:
    values = copied(1_000_000, 2.0).values
    assert values["records_per_s"] == pytest.approx(1_000_000)
    assert values["mb_per_s"] == pytest.approx(470)
    assert values["cpu_s_per_million"] == pytest.approx(2.0)
    assert values["cpu_user_s_per_million"] == pytest.approx(1.5)
    assert values["cpu_system_s_per_million"] == pytest.approx(0.5)
    assert values["records_per_s_from_start"] == pytest.approx(150_000)
    assert values["cpu_s_per_million_from_start"] == pytest.approx(10.0)


def test_copy_complete_at_the_first_sample_has_rate_zero() -> None:
    at_once = copied(1.0, 1.0, records=500_000).values
    assert (at_once["records_per_s"], at_once["cpu_s_per_million"]) == (0, 0)


def test_the_keys_of_a_throughput_part() -> None:
    keys = flat([LZ4], {"cores": 2})
    assert keys["environment.cores"] == 2
    assert keys["lz4.records"] == 3_000_000
    assert keys["lz4.records_per_s.lockstep"] == 960_000
    assert keys["lz4.records_per_s.limit"] == 800_000, "the lower of both bests"
    assert keys["lz4.brokers_cpu_s_per_million.lockstep"] == pytest.approx(0.8)
    assert keys["lz4.startup_s.lockstep"] == 4.0
    assert keys["lz4.peak_rss_mib.lockstep"] == 512
    assert keys["lz4.ratio_to_mm2_tuned"] == 3.2
    assert keys["lz4.cpu_ratio_to_mm2_tuned"] == 0.2
    assert keys["lz4.cpu_from_start_ratio_to_mm2_tuned"] == 1.0
    assert keys["lz4.ratio_to_limit"] == 1.2
    assert keys["lz4.ratio_to_both_at_once"] == 1.92
    assert flat([FAR], {})["rtt_80.ratio_to_undelayed"] == 0.8


def test_a_failed_system_has_its_failure_as_a_key_and_no_figure() -> None:
    keys = flat([LZ4], {})
    assert keys["lz4.failed.mm2"] == "FAILED: ended by itself (log: y.log)"
    assert not [key for key in keys if key.endswith(".mm2") and not key.startswith("lz4.failed")]
    assert "lz4.ratio_to_mm2" not in keys


def test_a_failed_limit_leaves_the_ratios_between_the_systems() -> None:
    systems = {name: readings for name, readings in LZ4.systems.items() if name not in LIMITS}
    measured = replace(LZ4, systems={**systems, "limit": Failed(reason="broke")})
    keys = flat([measured], {})
    assert keys["lz4.failed.limit"] == "FAILED: broke"
    assert keys["lz4.ratio_to_mm2_tuned"] == 3.2
    assert "lz4.ratio_to_limit" not in keys
    assert measured.table()[0][-1] == "limit"


def test_the_keys_of_a_latency_part() -> None:
    keys = flat([LATENCY], {})
    assert keys["latency_500.p50_ms.lockstep"] == 250
    assert keys["latency_500.p99_ms.mm2"] == 990
    assert keys["latency_500.p99_9_ms.mm2"] == 999
    assert keys["latency_500.p50_ms.floor"] == 50
    assert keys["latency_500.p50_ratio_to_mm2"] == 0.5
    assert keys["latency_500.samples.lockstep"] == 1000
    assert keys["latency_500.p99_acknowledged_ms.lockstep"] == 0.25


def test_a_start_is_compared_by_medians_with_each_mm2_that_was_started() -> None:
    def started(*seconds: float) -> Readings:
        return resting.start_readings(seconds, [("heartbeat", 50 << 20), ("cli", 30 << 20)], 0.02)

    measured = result("startup", lockstep=started(9.0, 6.0, 5.0), mm2=started(10.0, 8.0, 7.0), mm2_tuned=BROKEN)
    keys = flat([measured], {})
    assert (keys["startup.startup_s.lockstep"], keys["startup.idle_rss_mib.lockstep"]) == (6.0, 80)
    assert keys["startup.ratio_to_mm2"] == 0.75
    assert "startup.ratio_to_mm2_tuned" not in keys
    assert cells(measured)["to shipped MM2"] == ["0.75x", "1.00x", "-"]
    assert "Lockstep: each, s: 9.0, 6.0, 5.0; idle: heartbeat 50 MiB, cli 30 MiB." in measured.texts()


def test_a_throughput_table_has_the_rate_and_the_ratios_of_each_system() -> None:
    columns, _ = LZ4.table()
    assert columns == ["Lockstep", "MM2 tuned", "MM2 as shipped", "fetch only", "produce only", "both at once"]
    rows = cells(LZ4)
    assert rows["records/s"] == ["960,000", "300,000", "FAILED", "1,200,000", "800,000", "500,000"]
    assert rows["to tuned MM2"][:3] == ["3.20x", "1.00x", "-"]
    assert rows["to the limit"][0] == "1.20x"
    assert "to undelayed" not in rows
    assert cells(FAR)["to undelayed"][0] == "0.80x"
    assert any("before the source" in note and "80 ms" in note for note in FAR.texts())


def test_a_latency_table_compares_with_mm2_as_shipped() -> None:
    rows = cells(LATENCY)
    assert rows["p50 ms"] == ["250.00", "500.00", "50.00"]
    assert rows["p50 ms to shipped MM2"] == ["0.50x", "1.00x", "0.10x"]
    assert rows["CPU, % of a core"] == ["35", "35", "-"]


def test_readings_are_shown_beside_what_is_wanted() -> None:
    measured = result("idle_2000", lockstep=Readings(values={"idle_cpu_share": 0.021, "idle_rss_mib": 1100.4}))
    assert measured.table()[0] == ["Lockstep", "wanted"]
    rows = cells(measured)
    assert rows["CPU, % of a core"] == ["2.1", "below 5"]
    assert rows["RSS of all processes, MiB"] == ["1,100", "below 1,229"]
    assert rows["production to first record, s: median"] == ["-", ""]


def test_a_failure_is_on_the_page_and_on_the_terminal_with_its_log() -> None:
    line = "MM2 as shipped FAILED: ended by itself (log: y.log)"
    assert LZ4.failures() == [line]
    assert line in markdown([LZ4, FAR, LATENCY], {"cores": 2})
    out = StringIO()
    show([LZ4], Console(file=out, width=200))
    assert line in out.getvalue()


def test_markdown_tables_have_one_cell_a_column() -> None:
    for block in markdown([LZ4, FAR, LATENCY], {}).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_rows_of_a_part_have_words_of_their_own(part: Part) -> None:
    words = [row.words for row in part.rows if row.words]
    assert len(set(words)) == len(words), "a reader finds a cell by them"


def test_parts_with_nothing_to_reach_run_only_if_they_are_named() -> None:
    assert PARTS.keys() - set(BY_DEFAULT) == {"lz4_1k", "rtt_200", "far_target", "rf3", "control_plane", "scale"}
