"""When a replica reports what fails in it."""

from lockstep_runtime.membership.trouble_reporter import (
    COUNTS_RENEWED_AFTER_S,
    COUNTS_VALID_MS,
    RENEWED_AFTER_S,
    TROUBLES_VALID_MS,
    ReportSchedule,
)
from lockstep_state.reasons.reason_catalogue import ReasonCode

REFUSED = (("target", ReasonCode.REQUEST_REFUSED.to_reason(cluster="B", error=17, text="refused")),)
OTHER = (*REFUSED, ("topic refresh", ReasonCode.REPORTED.to_reason(text="another one")))


def test_replica_in_which_nothing_fails_reports_nothing() -> None:
    schedule = ReportSchedule()
    assert all(schedule.check((), (), now) is None for now in (0.0, 5.0, 1e6))


def test_trouble_is_reported_when_two_checks_find_it() -> None:
    schedule = ReportSchedule()
    assert schedule.check(REFUSED, (), 0) is None
    assert schedule.check((), (), 5) is None
    assert schedule.check(REFUSED, (), 10) is None
    assert schedule.check(REFUSED, (), 15) == (REFUSED, (), TROUBLES_VALID_MS)
    assert schedule.check(REFUSED, (), 20) is None


def test_trouble_that_lasts_is_reported_again_while_it_is_valid() -> None:
    schedule = ReportSchedule()
    schedule.check(REFUSED, (), 0)
    assert schedule.check(REFUSED, (), 5) is not None
    assert schedule.check(REFUSED, (), 5 + RENEWED_AFTER_S) == (REFUSED, (), TROUBLES_VALID_MS)
    assert RENEWED_AFTER_S * 1000 < TROUBLES_VALID_MS


def test_end_of_a_trouble_is_reported_once() -> None:
    schedule = ReportSchedule()
    schedule.check(REFUSED, (), 0)
    schedule.check(REFUSED, (), 5)
    report = schedule.check((), (), 10)
    assert report is not None
    assert report[0] == ()
    assert schedule.check((), (), 1e6) is None


def test_second_trouble_is_reported_beside_the_first() -> None:
    schedule = ReportSchedule()
    schedule.check(REFUSED, (), 0)
    schedule.check(REFUSED, (), 5)
    assert schedule.check(OTHER, (), 10) is None
    assert schedule.check(OTHER, (), 15) == (OTHER, (), TROUBLES_VALID_MS)


def test_counts_of_unreadable_records_are_reported_and_renewed() -> None:
    schedule, counts = ReportSchedule(), (("t", 1),)
    assert schedule.check((), counts, 0) == ((), counts, COUNTS_VALID_MS)
    assert schedule.check((), counts, 5) is None
    assert schedule.check((), (("t", 2),), 10) == ((), (("t", 2),), COUNTS_VALID_MS)
    assert schedule.check((), (("t", 2),), 10 + COUNTS_RENEWED_AFTER_S) is not None
    assert COUNTS_RENEWED_AFTER_S * 1000 < COUNTS_VALID_MS


def test_report_that_was_not_written_is_due_again() -> None:
    schedule = ReportSchedule()
    schedule.check(REFUSED, (), 0)
    report = schedule.check(REFUSED, (), 5)
    schedule.retry_at_next_check()
    assert schedule.check(REFUSED, (), 10) == report
    schedule.check((), (), 15)
    schedule.retry_at_next_check()
    assert schedule.check((), (), 20) is not None
