"""A slot's silence is measured by who listens, whatever the slot's own clock says."""

from __future__ import annotations

from dataclasses import replace

from lockstep_data_plane.common.liveness_timer import LivenessTimer
from lockstep_protocol.rows.state_rows import SlotStatus
from lockstep_runtime.util.suspend_detector import AWAY_S

HOUR_MS = 3_600_000
STATUS = SlotStatus(slot=0, phase="started", run="a", at_ms=10 * HOUR_MS)


def test_silence_counts_from_when_something_new_was_heard() -> None:
    silence = LivenessTimer()
    assert [silence.silent_for(STATUS, now) for now in (100.0, 101.0, 105.0)] == [0.0, 1.0, 5.0]
    assert silence.silent_for(replace(STATUS, at_ms=STATUS.at_ms + 5_000), 106.0) == 0.0


def test_who_has_said_nothing_yet_is_not_silent() -> None:
    silence = LivenessTimer()
    assert [silence.silent_for(None, now) for now in (0.0, 9.0, 18.0)] == [0.0, 0.0, 0.0]


def test_a_clock_that_is_wrong_or_set_anew_makes_nobody_silent() -> None:
    silence = LivenessTimer()
    for second, hours in enumerate((0, 1, -2, -2, 5)):
        said = replace(STATUS, at_ms=STATUS.at_ms + hours * HOUR_MS + second)
        assert silence.silent_for(said, float(second)) == 0.0


def test_who_was_frozen_itself_begins_to_listen_anew() -> None:
    silence = LivenessTimer()
    silence.silent_for(STATUS, 0.0)
    assert silence.silent_for(STATUS, AWAY_S) == AWAY_S
    assert silence.silent_for(STATUS, 3 * AWAY_S) == 0.0
    assert silence.silent_for(STATUS, 3 * AWAY_S + 1) == 1.0
