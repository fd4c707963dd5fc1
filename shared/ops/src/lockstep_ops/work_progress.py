"""The progress of a work, and how long the rest of it takes. Pure."""

from dataclasses import dataclass

from lockstep_ops.formatting import in_time

LEAST_SEEN_S = 0.5
"""The seconds of work that must have been seen for an estimate."""


@dataclass(slots=True)
class WorkProgress:
    """The state of a work. A total of 0 is not known; an end of 0 means that there is none."""

    text: str = ""
    done: float = 0.0
    total: float = 0.0
    ends_at: float = 0.0
    """The moment at which the step ends at the latest, on the clock of the display."""

    def begin(self, text: str, steps: float) -> None:
        """Begin a part of the work that has this many steps."""
        self.text = text
        self.total += steps

    def advance(self, steps: float = 1.0) -> None:
        self.done += steps

    @property
    def fraction(self) -> float | None:
        """Return the share that is done, from 0 to 1, or None if the total is not known."""
        return min(1.0, self.done / self.total) if self.total > 0 else None


class TimeLeft:
    """An estimate of the time that a work still takes.

    It counts what was done since the first estimate, because a work may continue an earlier one.
    """

    def __init__(self, progress: WorkProgress, now: float) -> None:
        self._began, self._done = now, progress.done

    def words(self, progress: WorkProgress, now: float) -> str:
        """Return `12 s left` or `at most 8 s left`, or else how long the work has lasted."""
        if progress.ends_at > now:
            return f"at most {_in_seconds(progress.ends_at - now)} left"
        elapsed, done = now - self._began, progress.done - self._done
        if progress.total > 0 and done > 0 and elapsed >= LEAST_SEEN_S:
            remaining = max(0.0, progress.total - progress.done)
            return f"{_in_seconds(elapsed * remaining / done)} left"
        return _in_seconds(elapsed)


def _in_seconds(seconds: float) -> str:
    """Return whole seconds from 10 s on, because a line that changes faster cannot be read."""
    return in_time(round(seconds) * 1000) if seconds >= 10 else f"{seconds:.0f} s"
