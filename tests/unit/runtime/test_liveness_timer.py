"""How long a slot, or the group of a service, has been silent: by the clock of the process that listens."""

from dataclasses import replace

import pytest

from lockstep_runtime.util.liveness_timer import SUSPENDED_S, LivenessTimer
from lockstep_state.rows.state_rows import SlotStatus

HOUR_MS = 3_600_000
STATUS = SlotStatus(slot=0, phase="started", run="a", at_ms=10 * HOUR_MS)


def test_silence_counts_from_when_something_new_was_heard() -> None:
    silence = LivenessTimer()
    assert [silence.silent_for(STATUS, now) for now in (100.0, 101.0, 105.0)] == [0.0, 1.0, 5.0]
    assert silence.silent_for(replace(STATUS, at_ms=STATUS.at_ms + 5_000), 106.0) == 0.0


def test_silence_before_the_first_message_is_zero() -> None:
    silence = LivenessTimer()
    assert [silence.silent_for(None, now) for now in (0.0, 9.0, 18.0)] == [0.0, 0.0, 0.0]


def test_liveness_is_independent_of_the_clock_of_the_sender() -> None:
    silence = LivenessTimer()
    for second, hours in enumerate((0, 1, -2, -2, 5)):
        status = replace(STATUS, at_ms=STATUS.at_ms + hours * HOUR_MS + second)
        assert silence.silent_for(status, float(second)) == 0.0


def test_suspension_of_the_process_starts_the_silence_anew() -> None:
    silence = LivenessTimer()
    silence.silent_for(STATUS, 0.0)
    assert silence.silent_for(STATUS, SUSPENDED_S) == SUSPENDED_S
    assert silence.silent_for(STATUS, 3 * SUSPENDED_S) == 0.0
    assert silence.silent_for(STATUS, 3 * SUSPENDED_S + 1) == 1.0


@pytest.mark.parametrize("alive_until", [0.0, 130.0, 400.0])
def test_seconds_count_from_when_it_was_last_alive(alive_until: float) -> None:
    timer, now, seconds = LivenessTimer(), 100.0, 0.0
    while seconds <= 60.0:
        seconds, now = timer.seconds_since(now < alive_until, now), now + 1.0
    assert now - 1.0 == max(100.0, alive_until - 1.0) + 61.0
