"""The silence of a slot, or of the group of a service, in seconds. Pure."""

SUSPENDED_S = 10.0
"""Seconds between two calls after which the process counts as suspended: messages are then still to be read."""


class LivenessTimer:
    """Measure silence; call it about once a second.

    `now` is in seconds of this process's monotonic clock. The time in a message is of another machine's clock, which
    may differ or be set, so it does not count.
    """

    def __init__(self) -> None:
        self._message: object = None
        self._alive_at: float | None = None
        self._asked_at: float | None = None

    def seconds_since(self, alive: bool, now: float) -> float:
        """Return the seconds since it was last alive, at most since the first call; 0.0 after a suspension."""
        suspended = self._asked_at is not None and now - self._asked_at > SUSPENDED_S
        self._asked_at = now
        if alive or suspended or self._alive_at is None:
            self._alive_at = now
        return now - self._alive_at

    def silent_for(self, message: object, now: float) -> float:
        """Return the seconds since `message` changed; 0.0 as long as there is none (None)."""
        is_new, self._message = message != self._message, message
        silent_s = self.seconds_since(is_new, now)
        return 0.0 if message is None else silent_s
