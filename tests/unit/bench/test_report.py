"""The bench's tables, which never hide what failed."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tools.bench.figures import Busy, Copy, Latency, LatencyPart, Limit, Part, Start, StartPart, ThroughputPart
from tools.bench.outcome import Failed
from tools.bench.readings import SHEETS, Readings, ReadingsPart, Sheet
from tools.bench.report import markdown, show, table
from tools.bench.usage import Cpu

COPY = Copy(
    records=1000, window_records=1000, window_s=0.5, start_s=4.0, total_s=4.5, cpu_window=Cpu(0.002, 0.0005),
    cpu_total=Cpu(3.0, 1.0), peak_rss_bytes=1 << 20, record_bytes=470.0, compared=1000,
)  # fmt: skip
THROUGHPUT = ThroughputPart(
    name="lz4",
    facts={
        "records": 1000, "record_bytes": 470.0, "codec": "lz4", "partitions": 8, "batches": 10, "batch_records": 100.0,
        "batch_stored_bytes": 15_000.0,
    },
    limit=Limit(fetch_only=(8000.0,), produce_only=(4000.0,), both_at_once=(2500.0,)),
    systems={"lockstep": COPY, "mm2_tuned": COPY, "mm2": Failed(reason="ended by itself", log="lz4-mm2.log")},
)  # fmt: skip
BUSY = Busy(system=0.35, brokers=0.9, bench=0.4, compilers=0.01)
LATENCY = LatencyPart(
    name="latency_500",
    facts={"per_s": 500, "partitions": 8, "warm_up_s": 15, "measured_s": 30},
    floor=Latency(ordered_ms=(0.5,), acknowledged_ms=(0.25,), busy=BUSY, offered_per_s=500.0),
    systems={
        "lockstep": Latency(ordered_ms=(1.0,), acknowledged_ms=(0.25,), busy=BUSY, offered_per_s=500.0),
        "mm2": Latency(ordered_ms=(4.0,), acknowledged_ms=(0.25,), busy=BUSY, offered_per_s=500.0),
    },
)
START = StartPart(
    name="startup",
    facts={},
    systems={
        "lockstep": Start(seconds=(4.0, 5.0, 6.0), idle_rss=(("heartbeat", 50 << 20),), idle_cpu_share=0.02),
        "mm2": Start(seconds=(8.0,), idle_rss=(), idle_cpu_share=0.02),
    },
)
FAR = replace(
    THROUGHPUT,
    name="rtt_80",
    facts={
        **THROUGHPUT.facts,
        "far": "source",
        "round_trip_ms": 80.0,
        "proxy_mb_per_s": 900.0,
        "proxy_records_per_s": 5e6,
    },
    own=COPY,
)
READ = tuple(
    ReadingsPart(
        name=name, facts={"partitions": 8}, systems={"lockstep": Readings(values=dict.fromkeys(sheet.rows, 0.5))}
    )
    for name, sheet in SHEETS.items()
)
PARTS: tuple[Part, ...] = (THROUGHPUT, FAR, LATENCY, START, *READ)


def test_a_throughput_table_has_the_rate_and_both_ratios_of_each_system() -> None:
    rows = {row[0].strip(): row[1:] for row in table(THROUGHPUT).rows()}
    assert rows["records/s"] == ["2,000", "2,000", "FAILED", "8,000", "4,000", "2,500"]
    assert rows["to tuned MM2"][0] == "1.00x"
    assert rows["to the limit"][0] == "0.50x"
    assert rows["to both at once"][0] == "0.80x"
    assert rows["CPU s per million"][0] == "2.00"
    assert rows["user + system"][0] == "1.50 + 0.50"


def test_a_latency_table_compares_with_mm2_as_shipped() -> None:
    rows = {row[0].strip(): row[1:] for row in table(LATENCY).rows()}
    assert rows["p50 ms"] == ["1.00", "4.00", "0.50"]
    assert rows["p50 ms to shipped MM2"] == ["0.25x", "1.00x", "0.12x"]
    assert rows["p50 ms until A has it"] == ["0.25", "0.25", "0.25"]
    assert rows["CPU, % of a core"] == ["35", "35", "-"]


def test_a_start_has_its_ratio_to_each_mm2_that_was_started() -> None:
    rows = {row[0].strip(): row[1:] for row in table(START).rows()}
    assert rows["to shipped MM2"] == ["0.62x", "1.00x"]
    assert rows["to tuned MM2"] == ["-", "-"]


def test_every_row_is_as_wide_as_the_table() -> None:
    for part in PARTS:
        content = table(part)
        assert {len(row) for row in content.rows()} == {len(content.columns) + 1}


def test_every_figure_given_has_its_row() -> None:
    for part in PARTS:
        content = table(part)
        for column in content.columns.values():
            assert isinstance(column, Failed) or set(column) <= set(content.measures)


def test_a_failure_is_in_the_markdown_with_the_name_of_its_log() -> None:
    page = markdown(PARTS, {"cores": 2})
    assert "- cores: 2" in page
    assert "MM2 as shipped FAILED: ended by itself (log: lz4-mm2.log)" in page


def test_markdown_tables_have_one_cell_a_column() -> None:
    for block in markdown(PARTS, {}).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


def test_a_failure_is_on_the_terminal_with_the_name_of_its_log() -> None:
    out = StringIO()
    show(PARTS, Console(file=out, width=200))
    assert "MM2 as shipped FAILED: ended by itself (log: lz4-mm2.log)" in out.getvalue()
    assert "heartbeat 50 MiB" in out.getvalue()


def test_far_part_has_its_ratio_to_the_undelayed_run_and_proxy_notes() -> None:
    rows = {row[0].strip(): row[1:] for row in table(FAR).rows()}
    assert rows["to undelayed"][0] == "1.00x"
    assert "to undelayed" not in {row[0].strip() for row in table(THROUGHPUT).rows()}
    assert any("before the source" in note and "80 ms" in note for note in table(FAR).notes)
    assert any("900 stored MB/s" in note for note in table(FAR).notes)


def test_readings_are_shown_beside_their_limits() -> None:
    part = ReadingsPart(
        name="idle_2000", systems={"lockstep": Readings(values={"idle_cpu_share": 0.021, "idle_rss_mib": 1100.4})}
    )
    rows = {row[0]: row[1:] for row in table(part).rows()}
    assert rows["CPU, % of a core"] == ["2.1", "below 5"]
    assert rows["RSS of all processes, MiB"] == ["1,100", "below 1,229"]
    assert rows["production to first record, s: median"] == ["-", "-"]


@pytest.mark.parametrize("sheet", SHEETS.values(), ids=SHEETS.keys())
def test_rows_of_a_sheet_have_words_of_their_own(sheet: Sheet) -> None:
    words = [row.words for row in sheet.rows.values()]
    assert len(set(words)) == len(words), "a table finds its cells by them"
