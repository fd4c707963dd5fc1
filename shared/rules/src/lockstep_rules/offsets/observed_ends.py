"""The time since when records have been in a partition's log, by its observed ends. Pure."""

RESOLUTION_MS = 50
"""Milliseconds within which ends count as observed together, at the first of them."""

MOST = 64
"""Ends that are remembered of a log. Of more, the two that were observed closest together become one."""


class ObservedEnds:
    """The ends of one log that the copy has not reached, each with the time at which it was first observed.

    A producer may put any timestamp into a record. The end of a log is a fact: a record before it is in the log. So a
    record has been in the log at least since an end beyond it was observed. Merged ends keep the earlier time, so a
    merge makes no record younger. Neither does a clock that goes back. Times are milliseconds of one clock.
    """

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: list[tuple[int, int]] = []
        """(next offset, time), both ascending."""

    def observe(self, end: int, at_ms: int, upstream: int) -> None:
        """Note the end of the log at a time, and forget the ends that the copy has reached.

        `upstream` is the last offset copied.
        """
        ends = self._ends
        while ends and ends[0][0] <= upstream + 1:
            del ends[0]
        if end <= upstream + 1:
            ends.clear()
            return
        if ends and end < ends[-1][0]:
            self._cut(end)
        elif not ends:
            ends.append((end, at_ms))
        elif end > ends[-1][0]:
            if at_ms - ends[-1][1] < RESOLUTION_MS:
                ends[-1] = (end, ends[-1][1])
                return
            ends.append((end, at_ms))
            if len(ends) > MOST:
                self._join_closest()

    def since_ms(self, upstream: int) -> int | None:
        """Return when an end beyond the record after `upstream` was first observed; None: no such end was observed."""
        return next((at_ms for end, at_ms in self._ends if end > upstream + 1), None)

    def _cut(self, end: int) -> None:
        """Drop the ends beyond the end of a log that became shorter."""
        ends = self._ends
        index = next(number for number, (seen_end, _) in enumerate(ends) if seen_end > end)
        at_ms = ends[index][1]
        del ends[index:]
        if not ends or ends[-1][0] < end:
            ends.append((end, at_ms))

    def _join_closest(self) -> None:
        ends = self._ends
        index = min(range(len(ends) - 1), key=lambda number: ends[number + 1][1] - ends[number][1])
        ends[index : index + 2] = [(ends[index + 1][0], ends[index][1])]
