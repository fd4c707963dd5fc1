"""The short form of `make faults`: a whole `lockstep run` is struck at random moments, and comes back by itself.

The same strikes each time, so that a failure can be looked at; SEED gives others, as does `make faults`.
"""

import os
from pathlib import Path

import pytest

from tests.faults.deployment import one_broker_each
from tests.faults.striking import SHORT
from tests.faults.suite import strike


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_run_that_is_struck_at_random_moments_loses_and_doubles_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED") or 686_717)
    print(f"SEED={seed}")  # noqa: T201 - pytest shows it with the failure
    with one_broker_each(tmp_path, tmp_path / "run.log") as there:
        outcome = strike(there, SHORT, seed, print)
    assert outcome.good, outcome
