"""Records of ours that the target's log holds beyond what was written down: the source is read past as many of them as
there are, and no record is sent twice (no I/O)."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep_data_plane.batches.layout import LOG_APPEND_TIME, Batch
from lockstep_data_plane.batches.rebuild import Record, read
from lockstep_data_plane.runs import consecutive

__all__ = ["AlreadyThere", "Misnumbered"]


class Misnumbered(ValueError):
    """Counting did not arrive at the target's last record of ours: the source has lost records that were appended."""


class AlreadyThere:
    """Of one resume: `left` records, of which the last lies at `downstream`.

    `alone`: between what was written down and there the target holds nothing of others, so each record counted past has
    its place. `last`: the batch of the target that ends with the last of them, where it is known.
    """

    def __init__(self, left: int = 0, downstream: int = -1, *, alone: bool = True, last: Batch | None = None) -> None:
        self.left = left
        self._downstream = downstream
        self._alone = alone
        self._last = last if left else None
        self._places: list[tuple[int, int, int]] = []

    def count_past(self, records: Sequence[Record]) -> int:
        """The source's next records. Returns how many of them the target has. Raises Misnumbered where the last one of
        all is not what the target has there."""
        past = min(self.left, len(records))
        if past and past == self.left:
            self._arrived_at(records[past - 1])
        if self._alone:
            begin = self._downstream + 1 - self.left
            counted = [record.offset for record in records[:past]]
            self._places += [(first, begin + index, count) for first, index, count in consecutive(counted)]
        self.left -= past
        return past

    def places(self) -> list[tuple[int, int, int]]:
        """Where the records counted past lie, as far as that is certain: (first upstream, its downstream, how many).
        They may be told only once none is left, and are told once."""
        places, self._places = self._places, []
        return places

    def _arrived_at(self, record: Record) -> None:
        """Where the source's cleaner has removed records that we had appended already, the count arrives too far on,
        and records would be left out: the target's last record tells (`wire.md` §2, line 6)."""
        ours, self._last = self._last, None
        if ours is None:
            return
        there = [r for r in read(ours) if r.offset == ours.last_offset]
        if ours.attributes & LOG_APPEND_TIME:
            there = [r._replace(timestamp=record.timestamp) for r in there]
        # Nothing there: the target's cleaner has removed it, and there is nothing to hold the count against.
        if there and there[0][1:] != record[1:]:
            raise Misnumbered(
                f"the target's last record of ours, at its offset {ours.last_offset}, is not the source's at "
                f"{record.offset}: records that were appended already are gone from the source or have changed"
            )
