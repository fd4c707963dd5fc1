"""A limit of bytes a second (no I/O; time comes from outside)."""

from __future__ import annotations


class TokenBucket:
    """Limits bytes by a pause after each batch. A batch of `n` bytes takes a pause of `n / per_s` seconds, less what
    was left unused in the last second. So the mean never exceeds the limit by more than one fetch."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self._credit = per_s
        self._at: float | None = None

    def consume(self, size: int, now: float) -> None:
        """So many bytes came. `now`: seconds of a clock that does not go back."""
        self._refill(now)
        self._credit -= size

    def wait(self, now: float) -> float:
        """Seconds until more may come; 0: now."""
        self._refill(now)
        return max(0.0, -self._credit / self.per_s)

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._credit = min(self.per_s, self._credit + (now - self._at) * self.per_s)
        self._at = now
