"""`bench-figures.md` has a run of each part of the bench."""

from tools.bench.parts import PARTS
from tools.bench.recorded import read

NOT_YET = ("transforms",)
"""Parts without a run on a machine that does nothing else."""


def test_each_part_has_one_run() -> None:
    assert [run.part for run in read()] == [part for part in PARTS if part not in NOT_YET]
