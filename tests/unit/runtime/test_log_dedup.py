"""What of many failures of one cause is worth a line."""

from lockstep_runtime.telemetry.log_dedup import LogDedup
from lockstep_state.reasons.reason_catalogue import ReasonCode
from tests.support.reasons import reported

WRITE, READ = (
    ReasonCode.REPORTED.to_reason(text="we lack it", grant=command) for command in ("grant write", "grant read")
)
AWAY = reported("away")


def test_log_dedup_counts_each_cause_but_no_empty_one() -> None:
    dedup = LogDedup()
    assert [dedup.count(cause) for cause in (WRITE, WRITE, READ, AWAY, WRITE, AWAY)] == [1, 2, 1, 0, 3, 0]


def test_log_dedup_logs_a_cause_again_after_its_end() -> None:
    dedup = LogDedup()
    dedup.count(WRITE)
    dedup.count(READ)
    dedup.keep_only([WRITE, AWAY])
    assert (dedup.count(WRITE), dedup.count(READ)) == (2, 1)
    dedup.keep_only([])
    assert dedup.count(WRITE) == 1
