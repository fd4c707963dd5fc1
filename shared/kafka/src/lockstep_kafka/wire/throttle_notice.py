"""Tell whether the brokers of a cluster have begun to slow us down (no I/O, no clock)."""

QUIET_S = 60.0
"""A client that was not throttled for so long is within the quota again; the next time is logged."""


class ThrottleNotice:
    """What the brokers of one cluster say of a quota that we are over. `now` everywhere: seconds of a clock that does
    not go back.
    """

    def __init__(self) -> None:
        self._until: float | None = None
        self._news = 0.0

    def throttled(self, seconds: float, now: float) -> None:
        """A broker wants us to stay away for so long."""
        if self._until is None or now > self._until + QUIET_S:
            self._news = seconds
        self._until = max(self._until or now, now + seconds)

    def news(self) -> float:
        """Seconds that the broker asked us to stay away when it began; 0 where that is no news. To be reported once."""
        news, self._news = self._news, 0.0
        return news
