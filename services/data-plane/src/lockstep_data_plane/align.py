"""Where the copy goes on when counting does not tell: the source's cleaner or its retention has removed records that
the target has already (`wire.md` §2, line 7). No I/O.

What the target holds of ours beyond the last progress is a stretch of the source's log as it was, in order. What the
source has left of that stretch appears in it, in order; the first record that does not is the next one to copy."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep_data_plane.batches.rebuild import Record

__all__ = ["Alignment", "Ambiguous"]


class Ambiguous(ValueError):
    """The records do not say where the copy stands; the message says why. Somebody has to decide."""


def _content(record: Record) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, tuple(record.headers)


class Alignment:
    """Feed the source's records in order until `take` says that the place is found."""

    def __init__(self, tail: Iterable[Record]) -> None:
        """`tail`: what the target holds of ours beyond the last progress, in order. Raises Ambiguous where two of its
        records are the same in timestamp, key, value and headers: then one could be taken for the other."""
        self._place: dict[tuple[object, ...], int] = {}
        for index, record in enumerate(tail):
            if self._place.setdefault(_content(record), index) != index:
                raise Ambiguous("the target holds the same record twice beyond the last progress written")
        self._reached = -1
        self.upstream = -1
        """The last upstream offset that the target has; -1: none of the source's is there."""
        self.next: int | None = None
        """The first upstream offset that the target does not have, once one was seen."""

    def take(self, records: Iterable[Record]) -> bool:
        """Look at more of the source's records; True when the place is found. Raises Ambiguous where their order is
        not the target's."""
        for record in records:
            place = self._place.get(_content(record))
            if place is None:
                self.next = record.offset
                return True
            if place <= self._reached:
                raise Ambiguous(
                    f"the source's record at offset {record.offset} stands elsewhere in the target's log than in the "
                    "source's"
                )
            self._reached = place
            self.upstream = record.offset
        return False
