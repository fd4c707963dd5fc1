"""When a group that answers every second has been silent for so long that its consumer hangs (no I/O, no clock)."""

from __future__ import annotations

__all__ = ["DEAF_AFTER", "Hearing"]

DEAF_AFTER = 60.0
"""Seconds. A group that divides its work anew keeps its members waiting for a quarter of that."""

AWAY = 10.0
"""Who looks every second and has not looked for so long was frozen itself, and all else of the process with it."""


class Hearing:
    """Of one membership."""

    def __init__(self) -> None:
        self._well_at: float | None = None
        self._looked_at = float("-inf")

    def lost(self, heard: bool, reachable: bool, now: float) -> bool:
        """Whether we have been deaf for too long. `heard`: the group has answered lately; `reachable`: the cluster
        answers others of us; `now`: seconds of a clock that does not go back."""
        away = now - self._looked_at > AWAY
        self._looked_at = now
        if self._well_at is None or heard or not reachable or away:
            self._well_at = now
        return now - self._well_at > DEAF_AFTER
