"""`bench-figures.md` is what the recorded runs of the bench make of it."""

from tools.bench.parts import PARTS
from tools.bench.recorded import read
from tools.docs.bench_figures import PAGE, page


def test_page_matches_the_recorded_runs() -> None:
    assert PAGE.read_text() == page(read()), "bench-figures.md is stale: python -m tools.docs.bench_figures"


def test_each_part_has_one_run() -> None:
    assert [run.part for run in read()] == list(PARTS)
