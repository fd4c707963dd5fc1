"""How partitions that are copied side by side share a rate. Each gets as much. What a finished one leaves goes to the
others. Pure.

So the bytes that every unfinished partition has had by a moment are the same number, and this curve alone says
everything.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedRate:
    """The curve, by its corners: at `times[n]` seconds each partition has had `levels[n]` bytes, and from there on gets
    `shares[n]` bytes a second.
    """

    times: tuple[float, ...]
    levels: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def among(cls, sizes: Iterable[float], rate: float) -> "SharedRate":
        """Of partitions with so many bytes, at `rate` bytes a second together. Without any bytes it has no corner."""
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
        """Seconds until a partition with so many bytes is copied."""
        if size <= 0 or not self.times:
            return 0.0
        at = bisect_left(self.levels, size) - 1
        return self.times[at] + (size - self.levels[at]) / self.shares[at]

    def copied_by(self, seconds: float) -> float:
        """Bytes that each unfinished partition has had by then."""
        if not self.times:
            return 0.0
        at = bisect_right(self.times, seconds) - 1
        return self.levels[at] + (seconds - self.times[at]) * self.shares[at]

    def time_until_share(self, share: float) -> float | None:
        """When a partition begins to get at least so many bytes a second; None: never."""
        at = bisect_left(self.shares, share)
        return self.times[at] if at < len(self.shares) else None
