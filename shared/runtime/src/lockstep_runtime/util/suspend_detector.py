"""Whether somebody who looks every second was frozen meanwhile (no I/O, no clock)."""

from __future__ import annotations

__all__ = ["AWAY_S", "SuspendDetector"]

AWAY_S = 10.0
"""Who has not looked for so long was frozen itself, and all else of the process with it."""


class SuspendDetector:
    """Of one who looks every second."""

    def __init__(self) -> None:
        self._at: float | None = None

    def suspended(self, now: float) -> bool:
        """Look; whether the time since the last look was spent frozen, so that what was said then is yet to be heard.
        `now`: seconds of a clock that does not go back."""
        before, self._at = self._at, now
        return before is not None and now - before > AWAY_S
