"""How often the lead of a service may change until a warning says so."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lockstep_runtime.membership.leader_loop import OFTEN, PERIOD_S, LeadChanges


def test_lead_changes_of_normal_restarts_are_not_reported() -> None:
    changes = LeadChanges()
    for second in range(OFTEN):
        changes.count("topic-sync", "one", second)
    assert list(changes.find_frequent("one", OFTEN)) == []


def test_lead_changes_beyond_the_limit_are_reported_by_the_last_claimer() -> None:
    changes = LeadChanges()
    for second in range(OFTEN + 1):
        changes.count("topic-sync", "one" if second % 2 else "two", second)
    assert list(changes.find_frequent("two", OFTEN)) == []
    assert list(changes.find_frequent("one", OFTEN)) == [("topic-sync", OFTEN + 1, ("one", "two"))]
    changes.count("topic-sync", "one", OFTEN + 1)
    assert list(changes.find_frequent("one", OFTEN + 1)) == []


def test_each_label_is_counted_by_itself() -> None:
    changes = LeadChanges()
    for second in range(OFTEN + 1):
        changes.count(f"checkpoint-{second}", "one", second)
    assert list(changes.find_frequent("one", OFTEN)) == []


def test_lead_changes_of_many_shares_are_reported_once_a_period() -> None:
    changes, reports = LeadChanges(), list[float]()
    for now in range(300):
        changes.count(f"checkpoint-{now % 6}", "one", now)
        changes.count(f"checkpoint-{now % 6}", "two", now)
        reports += [now for _ in changes.find_frequent("two", now)]
    times = sorted(set(reports))
    assert 2 <= len(times) <= 300 / PERIOD_S
    assert all(later - earlier >= PERIOD_S for earlier, later in pairwise(times))


@given(st.lists(st.floats(0, 20), max_size=60))
def test_a_report_means_that_many_changes_within_the_period(gaps: list[float]) -> None:
    changes, times, now, reported = LeadChanges(), [0.0], 0.0, float("-inf")
    for gap in gaps:
        now += gap
        times.append(now)
        changes.count("x", "one", now)
        recent = sum(now - time <= PERIOD_S for time in times[1:])
        due = recent > OFTEN and now - reported >= PERIOD_S
        assert list(changes.find_frequent("one", now)) == ([("x", recent, ("one",))] if due else [])
        reported = now if due else reported
