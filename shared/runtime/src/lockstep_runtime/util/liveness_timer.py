"""How long something has been silent: a slot, or the group of a service (no I/O, no clock)."""

SUSPENDED_S = 10.0
"""A timer that is not asked for so long was suspended with its process: what was sent meanwhile is yet to be read."""


class LivenessTimer:
    """Ask it about once a second. `now`: seconds of this process's monotonic clock. The time in a message is another
    machine's clock, which may differ or be set anew, so it does not count."""

    def __init__(self) -> None:
        self._said: object = None
        self._alive_at: float | None = None
        self._asked_at: float | None = None

    def seconds_since(self, alive: bool, now: float) -> float:
        """Seconds since it was last alive, at the earliest since the first question; 0.0 after a suspension."""
        suspended = self._asked_at is not None and now - self._asked_at > SUSPENDED_S
        self._asked_at = now
        if alive or suspended or self._alive_at is None:
            self._alive_at = now
        return now - self._alive_at

    def silent_for(self, said: object, now: float) -> float:
        """Seconds since it said something new; 0.0 as long as it has said nothing. `said`: its last message, None for
        nothing."""
        is_new, self._said = said != self._said, said
        silent_s = self.seconds_since(is_new, now)
        return 0.0 if said is None else silent_s
