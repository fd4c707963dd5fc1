"""The short form of `make faults`: a whole `lockstep run` is struck at random moments, and comes back by itself.

The same strikes each time, so that a failure can be looked at; SEED gives others, as does `make faults`. What came out
is written as `make faults` writes it, to a folder of its own.
"""

import os
from pathlib import Path

import pytest

from tests.faults.deployment import one_broker_each
from tests.faults.striking import SHORT
from tests.faults.suite import as_markdown, strike, write

WRITTEN = Path("build/faults/short")


@pytest.mark.timeout(600)
def test_a_run_that_is_struck_at_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED") or 686_717)
    print(f"SEED={seed}")  # noqa: T201 - pytest shows it with the failure
    with one_broker_each(tmp_path, tmp_path / "run.log") as there:
        outcome = strike(there, SHORT, seed, print)
    write(WRITTEN, [outcome], seed)
    print(as_markdown([outcome]))  # noqa: T201 - as above
    assert outcome.good, outcome
    counted = outcome.count
    assert (counted.lost, counted.doubled, counted.displaced) == (0, 0, 0)
    assert counted.records > SHORT.rate, "else nothing was written while it was struck"
