"""A search for the next place from which two logs agree, however far ahead it is, in bounded memory (no I/O).

Three records that follow each other are known by one number. Each log keeps the numbers of its records, and looks for
them among those of the other log. If there are too many, each log keeps every second one, then every fourth. The
number itself decides which, so both logs keep the same ones (decision 0061).
"""

from collections import deque
from typing import NamedTuple

from lockstep_data_plane.verify.difference import Content

CONFIRMED = 2
"""The number of records after a place that have to agree too, if there are any. Equal records may follow each other.
"""

MOST = 1 << 16
"""The number of places of each log that are remembered."""

LAST = 256
"""The number of records at the ends of both logs that are compared backwards."""

SLACK = 32
"""The factor that bounds the search before a place that agrees.

While one of N places is remembered, the first place that agrees is hardly ever more than `SLACK` times N records
earlier.
"""

SOURCE, TARGET = 0, 1


class Agreement(NamedTuple):
    """The offsets of source and target from which both logs agree.

    The first such place may be up to `slack` records earlier.
    """

    source: int
    target: int
    slack: int = 0


class AgreementSearch:
    """A search from the place where both logs differ.

    Add the records of each log in order, those of the target first.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._mask = 0
        self._begins: tuple[dict[int, int], dict[int, int]] = {}, {}
        self._last: tuple[deque[tuple[int, int]], ...] = deque(maxlen=LAST), deque(maxlen=LAST)
        """The offsets and hashes of the last records, by log."""
        self._first: list[int | None] = [None, None]
        self._has_own_time = True
        self.read = [0, 0]
        """The number of records that were added, by log."""

    def add_record(self, log: int, offset: int, content: Content, *, has_own_time: bool = True) -> Agreement | None:
        """Add the next record of a log, and return where both logs agree once that is known.

        Args:
            log: `SOURCE` or `TARGET`.
            offset: The record's offset.
            content: The record's content.
            has_own_time: As in `AlignedRecord`. The value of the target's first record counts for all.
        """
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
        other_begin = self._begins[1 - log].get(number)
        if other_begin is not None:
            offsets = (begin, other_begin) if log == SOURCE else (other_begin, begin)
            if list(offsets) != self._first:  # there they differ, by what the comparison has seen
                return Agreement(*offsets, self._slack)
        self._begins[log].setdefault(number, begin)
        while len(self._begins[log]) > self._most:
            self._mask = 2 * self._mask + 1
            for begins in self._begins:
                for number in [number for number in begins if number & self._mask]:
                    del begins[number]
        return None

    @property
    def _slack(self) -> int:
        return SLACK * (self._mask + 1) if self._mask else 0

    def find_at_end(self) -> Agreement | None:
        """Return the first place from which the ends of both logs agree, or None if their last records differ.

        It helps if there are too few records for the search.
        """
        begins, count = None, 0
        for (source, source_hash), (target, target_hash) in zip(*map(reversed, self._last), strict=False):
            if source_hash != target_hash:
                break
            begins, count = (source, target), count + 1
        return None if begins is None else Agreement(*begins, self._slack if count == LAST else 0)
