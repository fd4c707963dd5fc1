"""How long to wait before trying again (no I/O, no clock)."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep_runtime.util.errors import ClusterUnreachable

__all__ = ["AWAY_AT_MOST_S", "Backoff"]

AWAY_AT_MOST_S = 5.0
"""Between two questions to a cluster that is away: one costs next to nothing, and all waits for its return."""


@dataclass(slots=True)
class Backoff:
    """Waits that double from `first` up to `limit` seconds; `reset` after a success. No randomness: few of us share a
    cluster.
    """

    first: float = 0.5
    limit: float = 30.0
    failures: int = 0

    def next(self) -> float:
        """Seconds to wait before the next try; counts one more failure."""
        wait: float = min(self.limit, self.first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return wait

    def after(self, trouble: Exception | None) -> float:
        """As `next`, but a cluster that did not answer is asked again within AWAY_AT_MOST_S. None: whatever it was that
        ended."""
        wait = self.next()
        return min(wait, AWAY_AT_MOST_S) if isinstance(trouble, ClusterUnreachable) else wait

    def reset(self) -> None:
        self.failures = 0

    def worked(self, seconds: float, each: float = 10.0) -> None:
        """Forget one failure for each `each` seconds that it went well: what fails now and then is tried again soon
        every time, what fails at once waits longer and longer."""
        self.failures = max(0, self.failures - int(seconds // each))
