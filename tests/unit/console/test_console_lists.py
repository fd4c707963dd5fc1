"""Lists page by page, the lag of the last minutes, and static files."""

import tracemalloc
from pathlib import Path

from lockstep_console.static_files import StaticFiles
from lockstep_console.views.lag_series import STEP_MS, STEPS, LagSeries
from lockstep_console.views.listing import ListQuery, partition_page, worst_partitions
from lockstep_ops.status.report import PartitionLine


def line(number: int, lag_ms: int | None, state: str = "copying", topic: str = "orders") -> PartitionLine:
    return PartitionLine(topic, number, "copying", "running", lag_ms, lag_ms, 9, 10, 0, 1, state=state)


LINES = [line(0, 0), line(1, 500), line(2, None), line(3, 90_000, "stalled"), line(10, 0, topic="Payments")]


def numbers(query: ListQuery) -> list[int]:
    return [shown.partition for shown in partition_page(LINES, query).lines]


def test_worst_come_first_and_unknown_before_them() -> None:
    assert numbers(ListQuery()) == [2, 3, 1, 10, 0] or numbers(ListQuery()) == [2, 3, 1, 0, 10]
    assert numbers(ListQuery(order="asc"))[-1] == 2
    assert [shown.partition for shown in worst_partitions(LINES, 2)] == [2, 3]


def test_names_are_in_the_order_of_numbers() -> None:
    assert numbers(ListQuery(sort="name", order="asc")) == [10, 0, 1, 2, 3]
    assert numbers(ListQuery(sort="name", order="desc")) == [3, 2, 1, 0, 10]


def test_page_counts_all_and_those_that_match() -> None:
    page = partition_page(LINES, ListQuery(filter="pay", limit=5))
    assert (page.total, page.matching, len(page.lines)) == (5, 1, 1)
    page = partition_page(LINES, ListQuery(sort="name", order="asc", limit=2, offset=4))
    assert (page.total, page.matching, len(page.lines)) == (5, 5, 1)
    assert numbers(ListQuery(only="trouble")) == [3]


def test_lag_series_shows_unknown_as_unknown_and_is_bounded() -> None:
    series = LagSeries()
    start = 1_000_000 * STEP_MS
    for step in range(STEPS + 30):
        series.add(start + step * STEP_MS, LINES)
    now = start + (STEPS + 29) * STEP_MS
    assert series.spark(("orders", 1), now, {}) == [500] * STEPS
    assert series.spark(("orders", 0), now, {}) == [0] * STEPS
    assert series.spark(("orders", 2), now, {}) == [None] * STEPS
    assert series.spark(("orders", 77), now, {}) == [None] * STEPS
    later = now + 10 * STEP_MS
    assert series.spark(("orders", 1), later, {})[-10:] == [None] * 10
    assert len(series._samples) == STEPS


def test_lag_of_a_row_that_no_clock_has_written_is_shown() -> None:
    series = LagSeries()
    series.add(0, [line(0, 2**63 + 5), line(1, 7)])
    assert (series.spark(("orders", 0), 0, {})[-1], series.spark(("orders", 1), 0, {})[-1]) == (2**63 - 1, 7)


def test_lag_series_of_a_source_that_is_away_is_small() -> None:
    lines, series = [line(number, None) for number in range(20_000)], LagSeries()
    tracemalloc.start()
    try:
        for step in range(STEPS):
            series.add(step * STEP_MS, lines)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / len(lines) < 8 * STEPS + 300, "eight bytes for each sample, and one place"
    assert series.spark(("orders", 19_999), STEPS * STEP_MS, {})[0] is None


def test_lag_of_the_data_plane_fills_the_time_in_which_nobody_looked() -> None:
    series, now = LagSeries(), 90_000_000
    by_minute = {("orders", 1): tuple(range(15))}
    spark = series.spark(("orders", 1), now, by_minute)
    assert spark[-1] == 14
    assert spark[-7] == 13
    series.add(now, LINES)
    assert series.spark(("orders", 1), now, by_minute)[-2:] == [13, 500]


def test_static_files_are_those_of_their_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "static"
    (folder / "parts").mkdir(parents=True)
    (folder / "index.html").write_text("<p>hello</p>" * 50)
    (folder / "parts" / "a.js").write_text("export const a = 1;")
    (folder / "key.pem").write_text("secret")
    (tmp_path / "outside.js").write_text("secret")
    (folder / "link.js").symlink_to(tmp_path / "outside.js")
    files = StaticFiles(folder)
    first = files.find("index.html")
    assert first is not None
    assert first.content_type.startswith("text/html")
    assert 0 < len(first.zipped) < len(first.body)
    assert files.find("parts/a.js") is not None
    for name in ("../outside.js", "parts/../../outside.js", "/etc/passwd", ".a.js", "parts/.b.js", "key.pem", "link.js",
                 "none.js", "", "parts", "index.html/", "a\0.js"):  # fmt: skip
        assert files.find(name) is None, name
    (folder / "index.html").write_text("<p>other</p>")
    second = files.find("index.html")
    assert second is not None
    assert second.tag != first.tag
