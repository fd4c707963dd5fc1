"""Finds where the copy continues if counting is not enough. The source's cleaner or its retention has then removed
records that the target has already (`kafka-wire.md` §2, line 7). No I/O.

What the target holds of ours beyond the last progress is a stretch of the source's log as it was, in order. What the
source has left of that stretch appears in it, in order. The first record that does not appear is the next one to copy.
Where the target's cleaner or retention has removed some of the stretch, too, a missing record may be one of those. If a
later record of the source appears, the missing one was removed. If none appears, what compaction leaves shows that the
record was never there. Had it been there, a later record of its key would be: the last of each key stays. The source no
longer has that later record, and a cleaner that removed it would have removed the earlier one before it."""

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.errors import NeedsDecision


class AmbiguousMatch(NeedsDecision):
    """The records do not show where the copy is; the message says why. An operator has to decide."""


class MatchedPosition(NamedTuple):
    """`upstream`: the last upstream offset the target has, -1: none of what the source still has; `next`: the first one
    that it does not have. `at_end`: there is none, and `next` is where the source's log ended."""

    upstream: int
    next: int
    at_end: bool = False


def record_content(record: PlainRecord) -> tuple[object, ...]:
    """Return what a record and its copy have in common."""
    return record.timestamp, record.key, record.value, tuple(record.headers)


class ContentMatch:
    """Feed the source's records in order until `add` says that the place is found, and then `ends`."""

    def __init__(
        self,
        tail: Iterable[PlainRecord],
        gone_before: int = -1,
        beyond: int | None = None,
        tombstones_since: int | None = None,
    ) -> None:
        """`tail`: what the target still holds of the `beyond` records of ours behind the last progress, in order; None:
        no more than these. `gone_before`: the place in it, or behind it, that the last of the records it no longer
        holds was before; -1: it holds all. `tombstones_since`: compaction alone has removed those, and no tombstone
        from this timestamp on; None: something else may have removed them.

        Raises AmbiguousMatch where two of its records are the same in timestamp, key, value and headers: then one could
        be taken for the other."""
        self._place: dict[tuple[object, ...], int] = {}
        for index, record in enumerate(tail):
            if self._place.setdefault(record_content(record), index) != index:
                raise AmbiguousMatch("the target holds the same record twice beyond the last progress written")
        self._gone_before = gone_before
        self._left = len(self._place) if beyond is None else beyond
        self._reached = -1
        self._tombstones_since = tombstones_since
        self._open: PlainRecord | None = None
        """The first record of the source, behind the last that both have, that the target may have had."""
        self._untold = False
        """Compaction could have removed that one from the target and left no later record of its key."""
        self.upstream = -1
        """The last upstream offset that the target has; -1: none of the source's is there."""
        self.next: int | None = None
        """The first upstream offset that the target does not have, once one was seen."""

    def compare(self, records: Iterable[PlainRecord]) -> bool:
        """Compare more of the source's records; True when the place is found. Raises AmbiguousMatch if their order is
        not the target's, or if it is unknown whether the target had one of them."""
        for record in records:
            place = self._place.get(record_content(record))
            self._left -= 1
            if place is not None:
                if place <= self._reached:
                    raise AmbiguousMatch(
                        f"the source's record at offset {record.offset} is in another place in the target's log "
                        "than in the source's"
                    )
                self._reached, self._open = place, None
                self.upstream = record.offset
            elif self._gone_before <= self._reached or (self._left < 0 and self._open is None):
                self.next = record.offset
                return True
            elif self._open is None:
                self._open = record
                self._untold = record.key is None or self._may_have_gone(record)
            elif record.key == self._open.key:
                self._untold = self._untold or self._may_have_gone(record)
            if self._left <= 0:
                self.ends()
                if self.next is not None:
                    return True
        return False

    def require_parted(self, records: Iterable[PlainRecord]) -> None:
        """Compare records of the source behind `next`. Raises AmbiguousMatch if the target has one of them. Then the
        log is not another one from `next` on: that record was left out of the copy."""
        for record in records:
            if self._place.get(record_content(record), -1) > self._reached:
                raise AmbiguousMatch(
                    f"the target has the source's record at offset {record.offset}, and not the one at {self.next}"
                )

    def ends(self) -> None:
        """The source has nothing more, or nothing more that the target could have. Raises AmbiguousMatch as `add`."""
        if self._open is None:
            return
        if self._untold or self._tombstones_since is None:
            raise AmbiguousMatch(
                f"the target has lost records of ours beyond the last progress written, and the source's at offset "
                f"{self._open.offset} may have been one of them"
            )
        self.next = self._open.offset

    def _may_have_gone(self, record: PlainRecord) -> bool:
        """Whether it is a tombstone that the target's cleaner could have removed for its age."""
        since = self._tombstones_since
        return record.value is None and (since is None or record.timestamp < since)
