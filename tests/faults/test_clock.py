"""The time of day of all that Lockstep runs jumps, and nothing is lost, doubled, or ended for it."""

from pathlib import Path

import pytest

from tests.faults.deployment import one_broker_each
from tests.faults.striking import Fault, clock_jumped
from tests.faults.suite import strike
from tests.support.shifted_clock import can_shift


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(not can_shift(), reason="needs Linux and a C compiler as cc")
def test_a_time_of_day_that_jumps_is_no_reason_to_stop(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    jump = Fault("clock jumps", lambda scene: clock_jumped(scene, (48.0,), 40.0))  # `make faults` has more of them
    with one_broker_each(tmp_path, log) as there:
        outcome = strike(there, jump, 1, print)
    assert outcome.good, outcome
    said = log.read_text()
    assert "slot frozen" not in said
    assert "crashed" not in said
