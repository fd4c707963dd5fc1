"""The schedule by which configs of topics are described and compared. Pure; time is an argument.

A change at the source is detected within a few seconds, in slices of a size that does not grow with the number of
topics. Only changed topics are compared with the target at once. All others are compared once within `whole` seconds
(`sync.topic.configs.interval.seconds`). At that pace a value set by hand on the target is reverted, as MM2 does. Two
mirrors that set each other's values do not do it faster because Lockstep describes more often.
"""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass

CHECK_INTERVAL = 8.0
"""Seconds between rounds, unless `whole` is less. Describing the configs of a topic is half a millisecond of processor.
For a few topics this is already a good part of the cost of an idle service."""

AT_ONCE = 1000
"""Topics of a round's slice. If there are no more, a change arrives within ten seconds."""

LATELY = 100
"""Recently changed topics that are described in every round, beside the slice: a config that changes often changes
again."""

FREE = 3
"""Alterations of one topic in a row without a hold."""

FIRST_HOLD = 10.0
"""Seconds for which a topic is left alone after one more; after the next twice that, up to `whole`."""

CALM = 60.0
"""Seconds without an alteration, once a topic is described again, after which alterations are counted from 0."""

NEVER = float("-inf")


@dataclass(slots=True)
class _TopicScan:
    scanned: float = NEVER
    compared: float = NEVER
    mark: int = 0
    """The hash of the source's configs as last compared."""
    changed: float = NEVER
    altered: float = NEVER
    alterations: int = 0


class ConfigScanSchedule:
    """The scans and comparisons of each topic in one term."""

    def __init__(self, full_scan_s: float) -> None:
        """Begin a schedule in which every topic is compared with its target within `full_scan_s` seconds."""
        self.every = min(CHECK_INTERVAL, full_scan_s)
        """Seconds between rounds."""
        self._full_scan_s = full_scan_s
        self._scans: dict[str, _TopicScan] = {}
        self._began = NEVER
        self._period = 0.0

    def start_round(
        self, topics: Iterable[str], now: float, *, first: Iterable[str] = (), not_now: Container[str] = ()
    ) -> list[str]:
        """Return the topics to describe in the round that begins at `now`.

        Those are `first`, then recently changed ones (newest first), then a slice of those not described for longest.
        Topics that were altered too often of late are left for later.

        Args:
            topics: All topics. Others are forgotten.
            now: Monotonic seconds.
            first: Topics that are described in any case.
            not_now: Topics that are left for later.
        """
        names = dict.fromkeys(topics)
        self._scans = {name: self._scans.get(name) or _TopicScan() for name in names}
        lasted = self.every if self._began == NEVER else max(self.every, now - self._began)
        self._began = now
        slice_ = max(AT_ONCE, math.ceil(len(names) / max(1, int(self._full_scan_s // lasted))))
        self._period = math.ceil(len(names) / slice_) * lasted
        eligible = [name for name in names if name not in not_now and not self._is_held_back(name, now)]
        recently_changed = [name for name in eligible if now - self._scans[name].changed < self._full_scan_s]
        recently_changed.sort(key=lambda name: self._scans[name].changed, reverse=True)
        least_recently_scanned = sorted(eligible, key=lambda name: self._scans[name].scanned)
        described_first = [name for name in first if name in names and name not in not_now]
        return list(dict.fromkeys([*described_first, *recently_changed[:LATELY], *least_recently_scanned[:slice_]]))

    def record_scan(self, topic: str, mark: int, now: float) -> bool:
        """Record that the source's configs were read at `now`; `mark` is equal for equal configs.

        Returns whether they are to be compared with the target's now. That is so if they changed, or if the topic would
        not come up again in time.
        """
        scan = self._scans.setdefault(topic, _TopicScan())
        scan.scanned = now
        if scan.compared == NEVER:
            return True
        if scan.mark != mark:
            scan.changed = now
            return True
        return now + self._period >= scan.compared + self._full_scan_s

    def compared(self, topic: str, mark: int, now: float) -> None:
        """Record that the target's configs were compared with `mark`, and what differed is set.

        Without this call the topic is compared when it next comes up.
        """
        scan = self._scans.setdefault(topic, _TopicScan())
        scan.mark, scan.compared = mark, now

    def altered(self, topic: str, now: float) -> float:
        """Record that the target's configs were set at `now`, and return the seconds for which the topic is left alone.

        That is 0 unless it is set again and again, as if another client set it too.
        """
        scan = self._scans.setdefault(topic, _TopicScan())
        scan.alterations = scan.alterations + 1 if now < scan.altered + self._hold(scan) + CALM else 1
        scan.altered = now
        return self._hold(scan)

    def _hold(self, scan: _TopicScan) -> float:
        if scan.alterations <= FREE:
            return 0.0
        wait: float = FIRST_HOLD * 2.0 ** min(scan.alterations - FREE - 1, 30)
        return min(self._full_scan_s, wait)

    def _is_held_back(self, topic: str, now: float) -> bool:
        scan = self._scans[topic]
        return now < scan.altered + self._hold(scan)
