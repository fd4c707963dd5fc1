"""Slots that have written down everything that they appended up to a moment (no I/O, no clock)."""

from collections.abc import Iterable

from lockstep_state.rows.state_rows import SlotStatus

WRITTEN_DOWN_MS = 2_000
"""A slot writes down at least every second what it has copied."""


class SlotWitness:
    """A witness of what slots say after a moment.

    A slot vouches for its rows if it has said twice that it resumes nothing. Both times it is the same run, of one
    assignment, some time apart. It does not vouch for a partition of which it still counts records.
    """

    def __init__(self, statuses: Iterable[SlotStatus]) -> None:
        """Take the statuses that slots wrote before that moment. They do not count."""
        self._before = {row.slot: (row.run, row.at_ms) for row in statuses}
        self._first: dict[int, SlotStatus] = {}
        self._vouching: dict[int, int] = {}
        """Slots with the assignment that they had taken up."""

    def hear(self, statuses: Iterable[SlotStatus]) -> None:
        """Take the newest statuses of slots."""
        for row in statuses:
            if self._before.get(row.slot) == (row.run, row.at_ms):
                continue
            earlier = self._first.get(row.slot)
            if row.phase != "started" or row.resuming != 0:
                self._first.pop(row.slot, None)
            elif earlier is None or (earlier.run, earlier.generation) != (row.run, row.generation):
                self._first[row.slot] = row
            elif row.at_ms - earlier.at_ms >= WRITTEN_DOWN_MS:
                self._vouching[row.slot] = row.generation

    def vouches(self, slot: int, generation: int) -> bool:
        """Return whether the rows of the slot have everything that was appended to the partitions of this assignment.

        They have what was appended until that moment. A slot that has not taken the assignment up yet knows nothing
        of a partition that is new to it.
        """
        return self._vouching.get(slot, -1) >= generation
