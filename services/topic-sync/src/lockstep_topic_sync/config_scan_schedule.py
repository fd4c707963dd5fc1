"""The topics whose configs are described in a round, and those that are compared with the target's. Pure; time is an
argument.

A change at the source is detected within a few seconds, in slices of a size that does not grow with the number of
topics. Only topics that changed are compared with the target there and then. All others are compared once within
`whole` seconds (`sync.topic.configs.interval.seconds`). At that pace a value set by hand on the target is taken back,
as MM2 does. Two mirrors that set each other's values do not do it faster because we describe more often.
"""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass

CHECK_INTERVAL = 8.0
"""Seconds between rounds, unless `whole` is less. Describing the configs of a topic is half a millisecond of processor.
For a few topics this is already a good part of the cost of an idle service."""

AT_ONCE = 1000
"""Topics of a round's slice: where there are no more, a change arrives within ten seconds."""

LATELY = 100
"""Topics that changed last are described in every round, beside the slice: a config that changes often changes
again."""

FREE = 3
"""Alterations of one topic in a row that nothing holds up."""

FIRST_HOLD = 10.0
"""Seconds for which a topic is left alone after one more; after the next twice that, up to `whole`."""

CALM = 60.0
"""Seconds without an alteration, once a topic is described again, after which they count anew."""

NEVER = float("-inf")


@dataclass(slots=True)
class _Known:
    scanned: float = NEVER
    compared: float = NEVER
    mark: int = 0
    """Stands for the source's configs as last compared."""
    changed: float = NEVER
    altered: float = NEVER
    alterations: int = 0


class ConfigScanSchedule:
    """What is known of each topic's turns in one term."""

    def __init__(self, whole: float) -> None:
        """`whole`: seconds within which every topic is compared with its target."""
        self.every = min(CHECK_INTERVAL, whole)
        """Seconds between rounds."""
        self._whole = whole
        self._known: dict[str, _Known] = {}
        self._began = NEVER
        self._period = 0.0

    def start_round(
        self, topics: Iterable[str], now: float, *, first: Iterable[str] = (), not_now: Container[str] = ()
    ) -> list[str]:
        """The topics whose turn it is in the round that begins at `now`. Those of `first`, those that changed lately
        (newest first), then a slice of those not described for longest. Topics not named are forgotten. Those of
        `not_now`, and those altered too often of late, are left for later."""
        names = dict.fromkeys(topics)
        self._known = {name: self._known.get(name) or _Known() for name in names}
        lasted = self.every if self._began == NEVER else max(self.every, now - self._began)
        self._began = now
        slice_ = max(AT_ONCE, math.ceil(len(names) / max(1, int(self._whole // lasted))))
        self._period = math.ceil(len(names) / slice_) * lasted
        ready = [name for name in names if name not in not_now and not self._held(name, now)]
        lately = [name for name in ready if now - self._known[name].changed < self._whole]
        lately.sort(key=lambda name: self._known[name].changed, reverse=True)
        longest = sorted(ready, key=lambda name: self._known[name].scanned)
        wanted = [name for name in first if name in names and name not in not_now]
        return list(dict.fromkeys([*wanted, *lately[:LATELY], *longest[:slice_]]))

    def record_scan(self, topic: str, mark: int, now: float) -> bool:
        """The source's configs were read at `now`, and `mark` stands for them (equal for equal configs). Whether they
        are to be compared with the target's now: they changed, or the topic would not come up again in time."""
        scan = self._known.setdefault(topic, _Known())
        scan.scanned = now
        if scan.compared == NEVER:
            return True
        if scan.mark != mark:
            scan.changed = now
            return True
        return now + self._period >= scan.compared + self._whole

    def compared(self, topic: str, mark: int, now: float) -> None:
        """The target's configs have been seen against `mark`, and what differed is set. Where that failed this is not
        called: then the topic is compared when it next comes up."""
        scan = self._known.setdefault(topic, _Known())
        scan.mark, scan.compared = mark, now

    def altered(self, topic: str, now: float) -> float:
        """The target's configs were set at `now`. Seconds for which the topic is left alone after that: 0 unless it is
        set again and again. Then another client must be setting it too."""
        scan = self._known.setdefault(topic, _Known())
        scan.alterations = scan.alterations + 1 if now < scan.altered + self._hold(scan) + CALM else 1
        scan.altered = now
        return self._hold(scan)

    def _hold(self, scan: _Known) -> float:
        if scan.alterations <= FREE:
            return 0.0
        wait: float = FIRST_HOLD * 2.0 ** min(scan.alterations - FREE - 1, 30)
        return min(self._whole, wait)

    def _held(self, topic: str, now: float) -> bool:
        scan = self._known[topic]
        return now < scan.altered + self._hold(scan)
