"""How long a partition in trouble is left alone before it tries again (no I/O, no clock)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockstep_runtime.util.backoff import Backoff


@dataclass(slots=True)
class PartitionBackoff:
    """The back-off of one partition. Failures while it resumes and failures while it copies are counted apart. So after
    a long outage, the first failure of the copy is tried again soon. Times are seconds of one clock that is never set
    back."""

    _resumer: Backoff = field(default_factory=Backoff)
    _engine: Backoff = field(default_factory=Backoff)
    _resumed_at: float = 0.0

    def before_resuming(self) -> float:
        """It could not resume: seconds until the next try, twice as many each time up to 30."""
        return self._resumer.next()

    def resumed(self, now: float) -> None:
        """It copies."""
        self._resumer.reset()
        self._resumed_at = now

    def before_copying(self, now: float, *, fruitless: bool) -> float:
        """The copy failed: seconds until it resumes. None where something had got through since it resumed last; else
        twice as many each time up to 30. One failure is forgotten for each ten seconds that it went well, for one that
        has nothing to copy gets nothing through either."""
        if not fruitless:
            self._engine.reset()
            return 0.0
        self._engine.worked(now - self._resumed_at)
        return self._engine.next()
