"""The comparison that finds where the copy of a transformed partition ends (no I/O; decision 0097).

How many records the target holds behind the row does not say which ones they are, for the transform may have dropped
any number in between. So every one of them is compared with what the transform leaves of the source, in order. That is
also the proof that the transform makes the same of a record as it did before.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lockstep_data_plane.core.target_log.content_match import AmbiguousMatch, record_content
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_rules.offsets.offset_runs import Run, add_pair


class TransformedMatch(NamedTuple):
    """The end of a copy: `next` is the offset behind the last copied record, `runs` where the compared records are."""

    next: int
    runs: tuple[Run, ...]


class TransformedComparison:
    """The comparison of our records behind the row with what the transform leaves of the source behind the row.

    Give the source's records in order to `compare` until it says that all are compared. Then ask for `result`.
    """

    def __init__(self, tail: Sequence[PlainRecord]) -> None:
        """Begin with no record compared.

        Args:
            tail: Every record of ours behind the row, in the order of the target's log.
        """
        self._tail = tail
        self._reached = 0
        self._upstream = -1
        self._runs: list[Run] = []

    def compare(self, records: Iterable[PlainRecord]) -> bool:
        """Compare more of the source's transformed records; return True once all of ours are compared.

        Raises:
            AmbiguousMatch: A record differs. The source has lost or changed records, or another version of the
                transform has made ours.
        """
        for record in records:
            if self._reached == len(self._tail):
                break
            copy = self._tail[self._reached]
            if record_content(record) != record_content(copy):
                raise AmbiguousMatch(
                    f"the one at offset {copy.offset} is not what the transform makes of the source's record at offset "
                    f"{record.offset}. Either the source has lost records since, or another version of the transform "
                    "has made it"
                )
            add_pair(self._runs, record.offset, copy.offset)
            self._reached, self._upstream = self._reached + 1, record.offset
        return self._reached == len(self._tail)

    def result(self) -> TransformedMatch:
        """Return where the copy ends.

        Raises:
            AmbiguousMatch: The transform leaves fewer records of the source than the target holds.
        """
        missing = len(self._tail) - self._reached
        if missing:
            raise AmbiguousMatch(
                f"the transform leaves {self._reached} records of the source behind it. Either the source has lost "
                "records since, or another version of the transform has dropped fewer"
            )
        return TransformedMatch(self._upstream + 1, tuple(self._runs))
