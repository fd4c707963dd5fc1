"""Finds the next place from which two logs agree, however far ahead it is, in bounded memory (no I/O).

Three records that follow each other are known by one number. Each log keeps the numbers of what was read of it, and
looks for its own in those of the other one. If there are too many, each log keeps every second one, then every fourth.
The number itself decides which, so both logs keep the same ones (decision 0061)."""

from collections import deque
from typing import NamedTuple

from lockstep_data_plane.verify.difference import Content

CONFIRMED = 2
"""So many records behind a place have to agree too, as far as there are any: equal records may follow each other."""

MOST = 1 << 16
"""Places of each log that are remembered."""

LAST = 256
"""Records at the ends of both logs that are compared from behind."""

SLACK = 32
"""If one of N places is remembered, the first one that agrees is hardly ever more than so many times N earlier."""

SOURCE, TARGET = 0, 1


class Agreement(NamedTuple):
    """Offsets of the source and of the target from which both logs agree. The first such place may be up to `slack`
    records earlier."""

    source: int
    target: int
    slack: int = 0


class AgreementSearch:
    """Search from the place where both logs differ. Feed the records of each log in order, those of the target
    first."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._mask = 0
        self._places: tuple[dict[int, int], dict[int, int]] = {}, {}
        self._last: tuple[deque[tuple[int, int]], ...] = deque(maxlen=LAST), deque(maxlen=LAST)
        """(offset, hash) of the last records."""
        self._first: list[int | None] = [None, None]
        self._has_own_time = True
        self.read = [0, 0]
        """Records of each log."""

    def add_record(self, log: int, offset: int, content: Content, *, has_own_time: bool = True) -> Agreement | None:
        """Add the next record of a log. Return where both agree, once that is known. `has_own_time`: as of
        `AlignedRecord`; what the first record of the target has counts for all."""
        if log == TARGET and not self.read[TARGET]:
            self._has_own_time = has_own_time
        self.read[log] += 1
        recent = self._last[log]
        recent.append((offset, hash(content if self._has_own_time else content[1:])))
        if len(recent) <= CONFIRMED:
            return None
        begin = recent[-1 - CONFIRMED][0]
        number = hash(tuple(recent[index][1] for index in range(-1 - CONFIRMED, 0)))
        if self._first[log] is None:
            self._first[log] = begin
        if number & self._mask:
            return None
        other_begin = self._places[1 - log].get(number)
        if other_begin is not None:
            offsets = (begin, other_begin) if log == SOURCE else (other_begin, begin)
            if list(offsets) != self._first:  # there they differ, by what the comparison has seen
                return Agreement(*offsets, self._slack)
        self._places[log].setdefault(number, begin)
        while len(self._places[log]) > self._most:
            self._mask = 2 * self._mask + 1
            for places in self._places:
                for number in [number for number in places if number & self._mask]:
                    del places[number]
        return None

    @property
    def _slack(self) -> int:
        return SLACK * (self._mask + 1) if self._mask else 0

    def at_end(self) -> Agreement | None:
        """Return where the ends of both logs agree, as far back as they do: there may be too few records to find."""
        begins, count = None, 0
        for (source, ours), (target, theirs) in zip(*map(reversed, self._last), strict=False):
            if ours != theirs:
                break
            begins, count = (source, target), count + 1
        return None if begins is None else Agreement(*begins, self._slack if count == LAST else 0)
