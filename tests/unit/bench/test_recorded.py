"""The figures of a run are kept for its parts only, and the page shows them."""

from pathlib import Path

from tools.bench.recorded import Run, read, replaced, runs_of, write
from tools.bench.results import Scalar
from tools.docs.bench_figures import figures

KEYS: dict[str, Scalar] = {
    "environment.cores": 2,
    "environment.memory_gib": 15.6,
    "environment.additions_s": 0.11,
    "lz4.records_per_s.lockstep": 3000000.0,
    "lz4.records_per_s.mm2_tuned": 250000.0,
    "lz4.records_per_s.limit": 5000000.0,
    "none.records_per_s.lockstep": 800000.0,
    "none.failed.mm2": "FAILED: it did not start",
}
COMMANDS = {"lz4": "make bench ONLY=lz4", "none": "make bench ONLY=none"}
OLDER = Run(part="lz4", date="2026-01-01", commit="0123abcd", machine="2 cores", command=COMMANDS["lz4"], figures={})
OTHER = Run(part="kills", date="2026-01-01", commit="0123abcd", machine="2 cores", command="", figures={})


def _runs() -> list[Run]:
    return runs_of(KEYS, ["lz4", "none"], date="2026-11-29", commit="89abcdef", commands=COMMANDS)


def test_a_part_in_which_a_system_failed_is_not_recorded() -> None:
    (run,) = _runs()
    assert run.part == "lz4"
    assert run.machine == "2 cores, 15.6 GiB, additions 0.11 s"
    assert run.figures["records_per_s.mm2_tuned"] == 250000.0


def test_a_run_replaces_the_one_of_its_part_and_no_other() -> None:
    runs = replaced([OTHER, OLDER], _runs(), ["lz4", "none", "kills"])
    assert [(run.part, run.date) for run in runs] == [("lz4", "2026-11-29"), ("kills", "2026-01-01")]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(_runs(), tmp_path / "recorded.json")
    assert read(tmp_path / "recorded.json") == _runs()


def test_the_page_has_ratios_and_what_was_measured_beside() -> None:
    text = figures(_runs())
    assert (
        "| `lz4` | records/s | 3,000,000 | 250,000 |  | 12.0x; - | limit 5,000,000 | 2026-11-29<br>`89abcdef`" in text
    )
