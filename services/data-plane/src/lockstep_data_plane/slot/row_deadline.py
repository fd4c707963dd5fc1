"""The time limit for copying while the state topic takes no rows of a slot (no I/O, no clock; decision 0083)."""

ROWS_WITHIN_S = 60.0
"""Seconds after which a slot stops fetching until a row is acknowledged. The election of a leader takes less.
What was copied without a row has to be found out from the logs after a restart.
"""


class RowDeadline:
    """The time limit of one run of a slot. All times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._waiting_since: float | None = float("-inf")
        """The time since which a row waits to be acknowledged; None if none waits.
        Nothing is copied before the first row is acknowledged.
        """
        self._reported = False

    def on_write(self, now: float) -> None:
        """Note that a row is about to be sent."""
        if self._waiting_since is None:
            self._waiting_since = now

    def on_acknowledged(self) -> None:
        """Note that every row that was sent is acknowledged."""
        self._waiting_since = None

    def has_expired(self, now: float) -> bool:
        """Return whether the slot has to stop copying."""
        return self._waiting_since is not None and now - self._waiting_since > ROWS_WITHIN_S

    def take_change(self, now: float) -> bool | None:
        """Return the answer of `has_expired` if it differs from the last call's, else None."""
        over = self.has_expired(now)
        if over is self._reported:
            return None
        self._reported = over
        return over
