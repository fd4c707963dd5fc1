"""When a crashed service is started again."""

from datetime import timedelta

import pytest

from lockstep_cli.processes.restart_policy import SHUTDOWN_REQUESTED, EndRun, StartAgain, decide, end_sentence
from lockstep_runtime.util.process_restarts import EARNS_BACK, LONGEST_DELAY, STEADY

BRIEF = timedelta(seconds=3)


def test_delays_double_behind_the_first_crash_up_to_half_a_minute() -> None:
    crashes, delays = 0, []
    for _ in range(8):
        decision = decide(crashes, 1, BRIEF)
        assert isinstance(decision, StartAgain)
        crashes = decision.time
        delays.append(decision.delay.total_seconds())
    assert delays == [0, 1, 2, 4, 8, 16, 30, 30]


def test_a_service_that_lived_a_minute_restarts_at_once() -> None:
    assert decide(7, 1, STEADY) == StartAgain(timedelta(), 1)
    assert decide(7, 1, STEADY - timedelta(seconds=1)) == StartAgain(LONGEST_DELAY, 8)


def test_service_killed_after_it_was_ready_restarts_at_once_every_time() -> None:
    crashes = 0
    for _ in range(20):
        decision = decide(crashes, -9, EARNS_BACK + BRIEF, EARNS_BACK)
        assert decision == StartAgain(timedelta(), 1)
        crashes = decision.time


@pytest.mark.parametrize("worked", [timedelta(0), EARNS_BACK - timedelta(milliseconds=1)])
def test_service_that_ends_before_or_soon_after_ready_waits_ever_longer(worked: timedelta) -> None:
    crashes = 0
    for _ in range(7):
        decision = decide(crashes, 1, worked + BRIEF, worked)
        assert isinstance(decision, StartAgain)
        crashes = decision.time
    assert decision == StartAgain(LONGEST_DELAY, 7)


def test_crashes_are_forgotten_one_by_one() -> None:
    assert decide(5, -9, STEADY - BRIEF, 3 * EARNS_BACK) == StartAgain(timedelta(seconds=2), 3)


def test_a_service_that_crashes_for_ever_is_started_for_ever() -> None:
    assert decide(1_000_000, 1, BRIEF) == StartAgain(LONGEST_DELAY, 1_000_001)


@pytest.mark.parametrize("exit_code", [0, 1, 4, -9])
def test_service_end_without_a_request_is_a_crash(exit_code: int) -> None:
    assert decide(0, exit_code, BRIEF) == StartAgain(timedelta(), 1)


def test_service_with_a_configured_end_ends_the_run_with_its_exit_code() -> None:
    decision = decide(0, SHUTDOWN_REQUESTED, BRIEF)
    assert decision == EndRun(SHUTDOWN_REQUESTED)
    assert end_sentence("data-plane", SHUTDOWN_REQUESTED, decision) == (
        "data-plane ended with exit code 3: as it is configured to, ending"
    )


def test_a_configuration_that_cannot_be_used_ends_the_run() -> None:
    assert decide(0, 2, BRIEF) == EndRun(2)
    assert decide(0, 2, STEADY) == EndRun(2)


def test_a_configuration_that_could_be_used_before_is_tried_again() -> None:
    """A secret is half written when a service is started again."""
    decision = decide(1, 2, BRIEF, served=True)
    assert decision == StartAgain(timedelta(seconds=1), 2)
    assert end_sentence("checkpoint", 2, decision) == (
        "checkpoint ended with exit code 2: its configuration cannot be used now, starting again in 1 s (2nd time)"
    )
    assert decide(0, SHUTDOWN_REQUESTED, BRIEF, served=True) == EndRun(SHUTDOWN_REQUESTED)


@pytest.mark.parametrize(
    ("exit_code", "crashes", "sentence"),
    [
        (1, 1, "data-plane ended with exit code 1, starting again in 1 s (2nd time)"),
        (-9, 0, "data-plane was killed by SIGKILL, starting again at once (1st time)"),
        (-40, 2, "data-plane was killed by signal 40, starting again in 2 s (3rd time)"),
        (4, 10, "data-plane ended with exit code 4, starting again in 30 s (11th time)"),
        (4, 20, "data-plane ended with exit code 4, starting again in 30 s (21st time)"),
        (2, 0, "data-plane ended with exit code 2: its configuration cannot be used, ending"),
    ],
)
def test_restart_message_has_the_cause_and_the_decision(exit_code: int, crashes: int, sentence: str) -> None:
    assert end_sentence("data-plane", exit_code, decide(crashes, exit_code, BRIEF)) == sentence
