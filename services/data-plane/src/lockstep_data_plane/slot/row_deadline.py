"""Decide how long a slot copies on while nothing takes its rows (no I/O, no clock; decision 0083)."""

ROWS_WITHIN_S = 60.0
"""What is copied without a row a restart has to find out from the logs. After this long a slot fetches nothing more
until a row is acknowledged. The election of a leader takes less."""


class RowDeadline:
    """Hold the deadline of one run of a slot. All times are seconds of a clock that does not go back."""

    def __init__(self) -> None:
        self._waiting_since: float | None = float("-inf")
        """Since when a row waits to be acknowledged. Nothing is copied before the first one is."""
        self._reported = False

    def on_write(self, now: float) -> None:
        """Note that a row is about to be sent."""
        if self._waiting_since is None:
            self._waiting_since = now

    def on_taken(self) -> None:
        """Note that every row that was sent is acknowledged."""
        self._waiting_since = None

    def is_over(self, now: float) -> bool:
        """Return whether the slot may not copy on."""
        return self._waiting_since is not None and now - self._waiting_since > ROWS_WITHIN_S

    def news(self, now: float) -> bool | None:
        """Return what `is_over` says if that is another answer than last time, else None."""
        over = self.is_over(now)
        if over is self._reported:
            return None
        self._reported = over
        return over
