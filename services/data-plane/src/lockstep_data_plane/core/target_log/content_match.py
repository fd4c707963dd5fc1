"""The comparison of records that finds where a copy goes on if counting is not enough (no I/O).

Then the source's cleaner or its retention has removed records that the target has already (`kafka-wire.md` §2, line 7).

What the target holds of ours beyond the last progress is a stretch of the source's log as it was, in order. What the
source has left of that stretch appears in it, in order. The first record that does not appear is the next one to copy.

The target's cleaner or retention may have removed some of the stretch, too. Then a missing record may be one of those.
If a later record of the source appears, the missing one was removed. If none appears, what compaction leaves shows that
the record was never there. Had it been there, a later record of its key would be: the last of each key stays. The
source no longer has that later record, and a cleaner that removed it would have removed the earlier one before it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.errors import NeedsDecision


class AmbiguousMatch(NeedsDecision):
    """The records do not show where the copy is, so an operator has to decide.

    The message says why.
    """


class MatchedPosition(NamedTuple):
    """The position in the source's log that the compared records show.

    `upstream` is the last upstream offset that the target has; -1: it has none of what the source still has. `next` is
    the first offset that it does not have. If `at_end`, there is no such record, and `next` is where the source's log
    ended.
    """

    upstream: int
    next: int
    at_end: bool = False


def record_content(record: PlainRecord) -> tuple[object, ...]:
    """Return what a record and its copy have in common: timestamp, key, value and headers."""
    return record.timestamp, record.key, record.value, tuple(record.headers)


class ContentMatch:
    """The comparison of the source's records with what the target holds of ours.

    Give the source's records in order to `compare` until it says that the position is found. If the source ends before,
    call `ends`.
    """

    def __init__(
        self,
        tail: Iterable[PlainRecord],
        gone_before: int = -1,
        beyond: int | None = None,
        tombstones_since: int | None = None,
    ) -> None:
        """Begin with no record of the source compared.

        Args:
            tail: The records of ours behind the last progress that the target still holds, in order.
            gone_before: The index in `tail`, or its length, in front of which the last missing record of ours was; -1:
                none is missing.
            beyond: How many records of ours were appended behind the last progress; None: those of `tail`.
            tombstones_since: Compaction alone has removed the missing records, and no tombstone from this timestamp on.
                None: something else may have removed them.

        Raises:
            AmbiguousMatch: Two records of `tail` are the same in timestamp, key, value and headers, so one could be
                taken for the other.
        """
        self._indexes: dict[tuple[object, ...], int] = {}
        for index, record in enumerate(tail):
            if self._indexes.setdefault(record_content(record), index) != index:
                raise AmbiguousMatch("the target holds the same record twice beyond the last progress written")
        self._gone_before = gone_before
        self._remaining = len(self._indexes) if beyond is None else beyond
        self._reached = -1
        self._tombstones_since = tombstones_since
        self._open: PlainRecord | None = None
        """The first record of the source that the target may have had, behind the last record that both have."""
        self._untold = False
        """Compaction could have removed `_open` from the target without leaving a later record of its key."""
        self.upstream = -1
        """The last upstream offset that the target has; -1: it has no record of the source."""
        self.next: int | None = None
        """The first upstream offset that the target does not have; None: not known yet."""

    def compare(self, records: Iterable[PlainRecord]) -> bool:
        """Compare more of the source's records; return True once the position is found.

        Raises:
            AmbiguousMatch: The order of the records is not the target's, or it is unknown whether the target had one of
                them.
        """
        for record in records:
            index = self._indexes.get(record_content(record))
            self._remaining -= 1
            if index is not None:
                if index <= self._reached:
                    raise AmbiguousMatch(
                        f"the source's record at offset {record.offset} is in another place in the target's log "
                        "than in the source's"
                    )
                self._reached, self._open = index, None
                self.upstream = record.offset
            elif self._gone_before <= self._reached or (self._remaining < 0 and self._open is None):
                self.next = record.offset
                return True
            elif self._open is None:
                self._open = record
                self._untold = record.key is None or self._may_have_gone(record)
            elif record.key == self._open.key:
                self._untold = self._untold or self._may_have_gone(record)
            if self._remaining <= 0:
                self.ends()
                if self.next is not None:
                    return True
        return False

    def require_parted(self, records: Iterable[PlainRecord]) -> None:
        """Compare records of the source behind `next`, to show that the log from `next` on is another one.

        Raises:
            AmbiguousMatch: The target has one of these records. Then the log is the same, and the record at `next` was
                left out of the copy.
        """
        for record in records:
            if self._indexes.get(record_content(record), -1) > self._reached:
                raise AmbiguousMatch(
                    f"the target has the source's record at offset {record.offset}, and not the one at {self.next}"
                )

    def ends(self) -> None:
        """Note that the source has nothing more, or nothing more that the target could have.

        Raises:
            AmbiguousMatch: It is unknown whether the target had one of the records.
        """
        if self._open is None:
            return
        if self._untold or self._tombstones_since is None:
            raise AmbiguousMatch(
                f"the target has lost records of ours beyond the last progress written, and the source's at offset "
                f"{self._open.offset} may have been one of them"
            )
        self.next = self._open.offset

    def _may_have_gone(self, record: PlainRecord) -> bool:
        """Return whether the record is a tombstone that the target's cleaner could have removed for its age."""
        since = self._tombstones_since
        return record.value is None and (since is None or record.timestamp < since)
