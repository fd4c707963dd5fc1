"""`bench-figures.md` has a run of each part of the bench."""

from tools.bench.parts import PARTS
from tools.bench.recorded import read


def test_each_part_has_one_run() -> None:
    assert [run.part for run in read()] == list(PARTS)
