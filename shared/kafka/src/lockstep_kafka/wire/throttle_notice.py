"""A notice that the brokers of a cluster have begun to throttle us (no I/O, no clock)."""

QUIET_S = 60.0
"""Seconds without throttling after which a client is within the quota again. The next throttling is logged."""


class ThrottleNotice:
    """The throttling by the brokers of one cluster.

    `now` is in seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._until: float | None = None
        self._unreported_s = 0.0

    def throttled(self, seconds: float, now: float) -> None:
        """Note that a broker throttles us for so many seconds."""
        if self._until is None or now > self._until + QUIET_S:
            self._unreported_s = seconds
        self._until = max(self._until or now, now + seconds)

    def take_notice(self) -> float:
        """Return the seconds of the first throttling since the last call, or 0."""
        seconds, self._unreported_s = self._unreported_s, 0.0
        return seconds
