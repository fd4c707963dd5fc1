"""What of many failures of one cause is worth a line."""

from lockstep_config.credentials.permissions import Remedy
from lockstep_runtime.telemetry.log_dedup import LogDedup

WRITE, READ = (f"topic x: {Remedy('we lack it', command)}" for command in ("grant write", "grant read"))


def test_log_dedup_counts_each_cause_but_no_empty_one() -> None:
    sayings = LogDedup()
    assert [sayings.count(one) for one in (WRITE, WRITE, READ, "away", WRITE, "away")] == [1, 2, 1, 0, 3, 0]


def test_log_dedup_logs_a_cause_again_after_its_end() -> None:
    sayings = LogDedup()
    sayings.count(WRITE)
    sayings.count(READ)
    sayings.only([WRITE, "away"])
    assert (sayings.count(WRITE), sayings.count(READ)) == (2, 1)
    sayings.only([])
    assert sayings.count(WRITE) == 1
