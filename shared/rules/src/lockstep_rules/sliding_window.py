"""Kafka's sliding windows behind its `-rate`, `-avg`, `-min` and `-max` metrics (no I/O, no clock).

A window has two samples of 30 seconds each. A full sample makes place for the next one, and samples older than both are
dropped. Times are Unix milliseconds.
"""

from dataclasses import dataclass
from typing import NamedTuple

SAMPLE_MS = 30_000
SAMPLES = 2
WINDOW_MS = SAMPLES * SAMPLE_MS

NAN = float("nan")


class Summary(NamedTuple):
    """The values of a window when something was last added to it, at `at_ms`."""

    at_ms: int
    last: int
    least: int
    most: int
    mean: int


@dataclass(slots=True)
class _Sample:
    since: int
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")


class _Samples:
    """The samples that still count, oldest first."""

    def __init__(self) -> None:
        self.recent: list[_Sample] = []

    def current(self, now_ms: int) -> _Sample:
        if not self.recent or now_ms - self.recent[-1].since >= SAMPLE_MS:
            self.forget(now_ms)
            self.recent = [*self.recent[1 - SAMPLES :], _Sample(now_ms)]
        return self.recent[-1]

    def forget(self, now_ms: int) -> None:
        self.recent = [sample for sample in self.recent if now_ms - sample.since < WINDOW_MS]


class Window:
    """The least, greatest and mean value of the last 30 to 60 seconds."""

    def __init__(self) -> None:
        self._samples = _Samples()
        self._at_ms = -1
        self._last = 0.0

    def record(
        self,
        now_ms: int,
        last: float,
        *,
        least: float | None = None,
        most: float | None = None,
        mean: float | None = None,
        count: int = 1,
    ) -> None:
        """Add `count` measurements. `last` is the default of `least`, `most` and `mean`."""
        least, most = last if least is None else least, last if most is None else most
        sample = self._samples.current(now_ms)
        sample.count += count
        sample.total += count * (last if mean is None else mean)
        sample.least = min(sample.least, least)
        sample.most = max(sample.most, most)
        self._at_ms, self._last = now_ms, last

    @property
    def summary(self) -> tuple[int, ...]:
        """A `Summary` as of the last measurement, or () before the first.

        It does not change while nothing is added. A reader who reads it `WINDOW_MS` after its `at_ms` or later knows
        that the window is empty.
        """
        samples = self._samples.recent
        count = sum(sample.count for sample in samples)
        if not count:
            return ()
        return Summary(
            self._at_ms,
            round(self._last),
            round(min(sample.least for sample in samples)),
            round(max(sample.most for sample in samples)),
            round(sum(sample.total for sample in samples) / count),
        )


class Rate:
    """The amount a second of the last 30 to 60 seconds. As in Kafka, a new window counts as 30 seconds long."""

    def __init__(self) -> None:
        self._samples = _Samples()

    def record(self, now_ms: int, amount: float) -> None:
        self._samples.current(now_ms).total += amount

    def per_second(self, now_ms: int) -> float:
        self._samples.forget(now_ms)
        samples = self._samples.recent
        if not samples:
            return 0.0
        elapsed = now_ms - samples[0].since
        if elapsed < SAMPLE_MS:
            elapsed += SAMPLE_MS
        return sum(sample.total for sample in samples) / (elapsed / 1000)


def window_stats(summary: tuple[int, ...], now_ms: int) -> tuple[float, float, float, float]:
    """Return last, least, most and mean at `now_ms`, as Kafka shows them.

    In an empty window all but the last are NaN.
    """
    if len(summary) != len(Summary._fields):
        return (NAN,) * 4
    window = Summary(*summary)
    if now_ms - window.at_ms >= WINDOW_MS:
        return window.last, NAN, NAN, NAN
    return window.last, window.least, window.most, window.mean
