"""Tell since when records have been in a partition's log, by the ends of it that were seen. Pure."""

RESOLUTION_MS = 50
"""Ends seen within so long count as seen together, at the first of them."""

MOST = 64
"""Ends that are remembered of a log. Of more, the two that were seen closest together become one."""


class ObservedEnds:
    """Ends of one log, each with the time at which it was first seen, as long as the copy is before it.

    Records say themselves when they were made, and a producer may say anything. The end of a log is a fact: a record
    before it is in the log. So a record has been there at least since an end beyond it was seen. What was seen
    together counts as old as the first of it, so what is forgotten makes nothing younger.

    Times are milliseconds of one clock. One that goes back makes nothing younger either.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: list[tuple[int, int]] = []
        """(next offset, time), both growing."""

    def observe(self, end: int, at_ms: int, upstream: int) -> None:
        """Note the next offset of the log at a time, when the copy had got as far as `upstream`."""
        seen = self._seen
        while seen and seen[0][0] <= upstream + 1:
            del seen[0]
        if end <= upstream + 1:
            seen.clear()
            return
        if seen and end < seen[-1][0]:
            self._cut(end)
        elif not seen:
            seen.append((end, at_ms))
        elif end > seen[-1][0]:
            if at_ms - seen[-1][1] < RESOLUTION_MS:
                seen[-1] = (end, seen[-1][1])
                return
            seen.append((end, at_ms))
            if len(seen) > MOST:
                self._join_closest()

    def since_ms(self, upstream: int) -> int | None:
        """Return when an end beyond the record behind `upstream` was first seen; None: no such end was seen."""
        return next((at_ms for end, at_ms in self._seen if end > upstream + 1), None)

    def _cut(self, end: int) -> None:
        """Drop what is behind the end of a log that is shorter than it was."""
        seen = self._seen
        first = next(number for number, (seen_end, _) in enumerate(seen) if seen_end > end)
        at_ms = seen[first][1]
        del seen[first:]
        if not seen or seen[-1][0] < end:
            seen.append((end, at_ms))

    def _join_closest(self) -> None:
        seen = self._seen
        first = min(range(len(seen) - 1), key=lambda number: seen[number + 1][1] - seen[number][1])
        seen[first : first + 2] = [(seen[first + 1][0], seen[first][1])]
