"""When a driver says that a run of a slot is late, frozen, or does not drain: each once, whatever it said before."""

from dataclasses import replace

import pytest

from lockstep_data_plane.driver.slot_supervisor import (
    DRAINS_ALONE_WITHIN_S,
    FIRST_REPORT_WITHIN_S,
    FROZEN_AFTER_S,
    STARTS_WITHIN_S,
    SlotHealth,
    SlotProblem,
    not_started_text,
)
from lockstep_state.rows.state_rows import SlotStatus

STATUS = SlotStatus(slot=0, phase="started", run="a", at_ms=1)
LONG_AGO = -1e9


@pytest.fixture
def health() -> SlotHealth:
    return SlotHealth(0.0)


def problems(
    health: SlotHealth, status: SlotStatus | None, begin: float, end: float, *, target_away_at: float = LONG_AGO
) -> list[tuple[float, SlotProblem]]:
    """What it tells at each second of a stretch of time in which nothing new is heard."""
    reported = ((float(now), health.check(status, float(now), target_away_at)) for now in range(int(begin), int(end)))
    return [(now, problem) for now, problem in reported if problem is not None]


def test_silent_slot_is_late_once(health: SlotHealth) -> None:
    assert problems(health, None, 0, 1_000) == [(STARTS_WITHIN_S + 1, SlotProblem.LATE)]
    assert health.late


def test_slot_started_in_time_is_frozen_when_it_falls_silent(health: SlotHealth) -> None:
    assert problems(health, STATUS, 5, 1_000) == [(5 + FROZEN_AFTER_S + 1, SlotProblem.FROZEN)]
    assert health.silent_s == FROZEN_AFTER_S + 1


def test_slot_started_late_is_frozen_when_it_falls_silent(health: SlotHealth) -> None:
    problems(health, None, 0, 30)
    assert health.late
    assert problems(health, STATUS, 30, 200) == [(30 + FROZEN_AFTER_S + 1, SlotProblem.FROZEN)]
    assert not health.late
    assert health.started_at == 30.0


def test_slot_with_regular_status_has_no_problem(health: SlotHealth) -> None:
    for now in range(0, 600, 10):
        assert health.check(replace(STATUS, at_ms=now), float(now), LONG_AGO) is None


def test_silence_counts_from_when_the_target_was_back() -> None:
    assert problems(SlotHealth(0.0), STATUS, 0, 200, target_away_at=100.0) == [
        (100 + FROZEN_AFTER_S + 1, SlotProblem.FROZEN)
    ]


@pytest.mark.parametrize("away", [False, True], ids=["looked at all the time", "not looked at for a while"])
def test_working_slot_without_a_status_is_frozen(away: bool) -> None:
    health = SlotHealth(0.0)
    reported = []
    for now in range(500):
        if away and 100 < now < 140:
            continue
        if health.late:
            health.note_task(now >= 50, float(now))
        if (problem := health.check(None, float(now), LONG_AGO)) is not None:
            reported.append((float(now), problem))
    begun = 140 if away else 50
    assert reported == [
        (STARTS_WITHIN_S + 1, SlotProblem.LATE),
        (begun + FIRST_REPORT_WITHIN_S + 1, SlotProblem.FROZEN),
    ]


def test_slot_that_lost_its_executor_waits_again(health: SlotHealth) -> None:
    for now in range(1_000):
        health.note_task(now % 100 != 0, float(now))
        assert health.check(None, float(now), LONG_AGO) in (None, SlotProblem.LATE)


@pytest.mark.parametrize("late", [False, True])
def test_slot_that_does_not_drain_is_reported_once(late: bool) -> None:
    health = SlotHealth(0.0)
    if late:
        problems(health, None, 0, 30)
    reported = [health.check_ending(100.0, float(now)) for now in range(100, 200)]
    assert reported[: int(DRAINS_ALONE_WITHIN_S) + 1] == [None] * (int(DRAINS_ALONE_WITHIN_S) + 1)
    assert [each for each in reported if each] == [SlotProblem.UNDRAINED]


@pytest.mark.parametrize(("is_task_running", "free_cores"), [(False, 2), (True, 0), (True, 1)])
def test_late_slot_with_a_core_is_slow_and_asks_for_none(is_task_running: bool, free_cores: int) -> None:
    """Where slots are as many as cores, a slot that is at work has the last one."""
    occupancy = "local[4,1] has executors: 1, running tasks: 2"
    slow = not_started_text("slot 0", occupancy, is_task_running=is_task_running, free_cores=free_cores)
    assert "although Spark has a core for it (local[4,1] has executors: 1, running tasks: 2): it is slow" in slow
    assert "cores" not in slow.replace("Spark has a core", "")


def test_late_slot_without_a_core_asks_for_one() -> None:
    text = not_started_text(
        "slot 0", "spark://s has executors: 1, running tasks: 1", is_task_running=False, free_cores=0
    )
    assert "give Spark more cores, or set tasks.max to fewer slots" in text
