"""The skipping of records that the target's log holds beyond the last written progress (no I/O).

As many records of the source are passed over, so no record is sent twice. The count alone is right only where the
source has lost none of these records. So the last record of ours that the target still has is compared with the
source's record of that number (`kafka-wire.md` §2, line 6). Behind that record, and where none of ours is left, the
source's offsets have to follow each other.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.layout import LOG_APPEND_TIME, stretches_within
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_state.errors import RetriableError


class RecordMismatch(RetriableError):
    """Counting did not arrive at the target's last record of ours.

    The source has lost or changed records that were appended.
    """


class ResumeDeduplicator:
    """The counter of one resume that skips the records that the target has; `left` of them are still to come."""

    def __init__(
        self,
        missing: int = 0,
        end: LastAppend | None = None,
        *,
        stretches: Sequence[tuple[int, int]] = (),
        position: int = 0,
        skips: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Begin with no record skipped.

        Args:
            missing: The number of records that the target has.
            end: The end of our appends in the target's log, at the last of these records.
            stretches: (first offset, records) of these records on the target, in order, from the first one on, as far
                as their places are known.
            position: The source's next offset behind the written progress.
            skips: The offsets (first, last) of the source that are passed over.
        """
        self.left = missing
        self._stretches = deque(stretches)
        self._skips = skips
        last = None if end is None or not missing else _last_record(end)
        self._last = last if last is not None and last.behind < missing else None
        self._next = None if self._last is not None else position
        """The source's next offset, where nothing else shows that no record is missing."""
        self._places: list[tuple[int, int, int]] = []

    def count_past(self, records: Sequence[PlainRecord]) -> int:
        """Return how many of the source's next records the target has.

        Raises:
            RecordMismatch: They are not the records that the target has, or had.
        """
        past = min(self.left, len(records))
        counted = records[:past]
        if self._last is None:
            self._follow_each_other(counted)
        elif (number := self.left - self._last.behind) <= past:
            arrived, self._last = self._last, None
            _compare(counted[number - 1], arrived)
            self._next = counted[number - 1].offset + 1
            self._follow_each_other(counted[number:])
        for first, _, count in stretches_within([record.offset for record in counted]):
            self._place(first, count)
        self.left -= past
        return past

    def _place(self, upstream: int, count: int) -> None:
        """Note where on the target the next records are. They follow each other on the source."""
        while count and self._stretches:
            downstream, length = self._stretches.popleft()
            placed = min(count, length)
            self._places.append((upstream, downstream, placed))
            if placed < length:
                self._stretches.appendleft((downstream + placed, length - placed))
            upstream, count = upstream + placed, count - placed

    def places(self) -> list[tuple[int, int, int]]:
        """Return the certain places of the skipped records: (first upstream offset, its downstream offset, records).

        Call it once no record is left to skip. Each place is returned once.
        """
        places, self._places = self._places, []
        return places

    def _follow_each_other(self, records: Sequence[PlainRecord]) -> None:
        for record in records:
            while self._next is not None and self._next < record.offset:
                self._next = next((last + 1 for first, last in self._skips if first <= self._next <= last), None)
            if self._next is None:
                raise RecordMismatch(
                    "our records there are gone from the target, and the source's offsets up to "
                    f"{record.offset} have gaps. Records that were appended already may be gone from the source"
                )
            self._next = record.offset + 1


class _LastRecord(NamedTuple):
    """The last record of ours that the target still has, and how many of ours came behind it."""

    record: PlainRecord
    has_append_time: bool
    """The target has replaced the record's timestamp by its own time."""
    behind: int


def _last_record(end: LastAppend) -> _LastRecord | None:
    if end.last is None:
        return None
    record = max(read_records(end.last), key=lambda each: each.offset)
    behind = end.behind + end.last.last_offset - record.offset
    return _LastRecord(record, bool(end.last.attributes & LOG_APPEND_TIME), behind)


def _compare(record: PlainRecord, last: _LastRecord) -> None:
    ours = last.record._replace(timestamp=record.timestamp) if last.has_append_time else last.record
    if ours[1:] != record[1:]:
        raise RecordMismatch(
            f"the target's last record of ours, at its offset {ours.offset}, is not the source's at "
            f"{record.offset}. Records that were appended already are gone from the source or have changed"
        )
