"""How long nothing new was heard (no I/O, no clock)."""

from __future__ import annotations

from lockstep_runtime.util.suspend_detector import SuspendDetector

__all__ = ["LivenessTimer"]


class LivenessTimer:
    """Of one slot, by the clock of who listens. What a status says of its time is another machine's clock, which may
    differ, or be set anew."""

    def __init__(self) -> None:
        self._said: object = None
        self._heard_at: float | None = None
        self._looks = SuspendDetector()

    def silent_for(self, said: object, now: float) -> float:
        """Seconds since it said something new; 0.0 as long as it says nothing. `said`: the last thing heard of it, None
        for nothing; `now` a time in seconds of a clock that does not go back."""
        away = self._looks.suspended(now)
        if said != self._said or away:
            self._said, self._heard_at = said, now
        return 0.0 if said is None or self._heard_at is None else now - self._heard_at
