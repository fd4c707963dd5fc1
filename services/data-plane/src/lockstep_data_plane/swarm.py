"""When single records are better fetched a few at a time (no I/O, no clock)."""

from __future__ import annotations

__all__ = ["FEW_BYTES", "PACE_S", "Swarm"]

SWARM_PER_S = 500
SWARM_LOOK_S = 0.1
PACE_S = 0.006
"""Where so many batches a second come over one connection and each answer brings only a few, its questions follow each
other no closer than `PACE_S`: single records then come together, and leave the brokers, and us, time for other things.
With fewer nobody waits."""

FEW_BYTES = 64 * 1024
"""An answer larger than this brings more than a few."""


class Swarm:
    """Whether one connection brings so many small batches that they are better fetched a few at a time."""

    def __init__(self) -> None:
        self._since = 0.0
        self._batches = 0
        self._per_s = 0.0

    def paced(self, batches: int, size: int, now: float) -> bool:
        """Count what an answer brought, of so many bytes; whether the next question may wait a little."""
        self._batches += batches
        if now - self._since >= SWARM_LOOK_S:
            self._per_s = self._batches / (now - self._since)
            self._since, self._batches = now, 0
        return self._per_s >= SWARM_PER_S and 0 < size <= FEW_BYTES
