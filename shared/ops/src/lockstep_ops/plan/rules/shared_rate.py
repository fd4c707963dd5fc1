"""The rate that partitions share while they are copied side by side. Pure.

Each gets as much. What a finished one leaves goes to the others. So the bytes that every unfinished partition has had
by a moment are the same number, and this curve alone says everything.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedRate:
    """The curve of bytes that each partition has had, by its corners.

    At `times[n]` seconds each partition has had `levels[n]` bytes. From then on it gets `shares[n]` bytes a second.
    """

    times: tuple[float, ...]
    levels: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def of_partitions(cls, sizes: Iterable[float], rate: float) -> "SharedRate":
        """Return the curve of partitions of these sizes in bytes, at `rate` bytes a second together.

        Without any bytes it has no corner.
        """
        ordered = sorted(size for size in sizes if size > 0)
        times, levels, shares = list[float](), list[float](), list[float]()
        now = level = 0.0
        for finished, size in enumerate(ordered):
            if size == level:
                continue
            share = rate / (len(ordered) - finished)
            times.append(now)
            levels.append(level)
            shares.append(share)
            now += (size - level) / share
            level = size
        return cls(tuple(times), tuple(levels), tuple(shares))

    def time_for(self, size: float) -> float:
        """Return the seconds until a partition of this size in bytes is copied."""
        if size <= 0 or not self.times:
            return 0.0
        corner = bisect_left(self.levels, size) - 1
        return self.times[corner] + (size - self.levels[corner]) / self.shares[corner]

    def copied_by(self, seconds: float) -> float:
        """Return the bytes that each unfinished partition has had by then."""
        if not self.times:
            return 0.0
        corner = bisect_right(self.times, seconds) - 1
        return self.levels[corner] + (seconds - self.times[corner]) * self.shares[corner]

    def time_until_share(self, share: float) -> float | None:
        """Return when a partition begins to get at least this many bytes a second, in seconds, or None for never."""
        corner = bisect_left(self.shares, share)
        return self.times[corner] if corner < len(self.shares) else None
