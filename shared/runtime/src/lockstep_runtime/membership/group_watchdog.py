"""When a group that answers every second has been silent for so long that its consumer hangs (no I/O, no clock)."""

from __future__ import annotations

from lockstep_runtime.util.suspend_detector import SuspendDetector

__all__ = ["DEAF_AFTER", "GroupWatchdog"]

DEAF_AFTER = 60.0
"""Seconds. A group that divides its work anew keeps its members waiting for a quarter of that."""


class GroupWatchdog:
    """Of one membership."""

    def __init__(self) -> None:
        self._well_at: float | None = None
        self._looks = SuspendDetector()

    def lost(self, heard: bool, reachable: bool, now: float) -> bool:
        """Whether we have been deaf for too long. `heard`: the group has answered lately; `reachable`: the cluster
        answers others of us; `now`: seconds of a clock that does not go back."""
        away = self._looks.suspended(now)
        if self._well_at is None or heard or not reachable or away:
            self._well_at = now
        return now - self._well_at > DEAF_AFTER
