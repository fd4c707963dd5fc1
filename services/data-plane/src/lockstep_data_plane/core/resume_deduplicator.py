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
from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.errors import RetriableError


class RecordMismatch(RetriableError):
    """Counting did not arrive at the target's last record of ours.

    The source has lost or changed records that were appended.
    """


class ResumeDeduplicator:
    """The counter of one resume that skips the records that the target has; `remaining` of them are still to come."""

    def __init__(
        self,
        remaining: int = 0,
        end: LastAppend | None = None,
        *,
        stretches: Sequence[tuple[int, int]] = (),
        position: int = 0,
        skips: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Begin with no record skipped.

        Args:
            remaining: The number of records that the target has.
            end: The end of our appends in the target's log, at the last of these records.
            stretches: (first offset, records) of these records on the target, in order, from the first one on, as far
                as they are known.
            position: The source's next offset behind the written progress.
            skips: The offsets (first, last) of the source that are passed over.
        """
        self.remaining = remaining
        self._stretches = deque(stretches)
        self._skips = skips
        last = None if end is None or not remaining else _last_record(end)
        self._last = last if last is not None and last.behind < remaining else None
        self._next = None if self._last is not None else position
        """The source's next offset, where nothing else shows that no record is missing."""
        self._runs: list[Run] = []

    def count_past(self, records: Sequence[PlainRecord]) -> int:
        """Return how many of the source's next records the target has.

        Raises:
            RecordMismatch: They are not the records that the target has, or had.
        """
        past = min(self.remaining, len(records))
        counted = records[:past]
        if self._last is None:
            self._follow_each_other(counted)
        elif (number := self.remaining - self._last.behind) <= past:
            arrived, self._last = self._last, None
            _compare(counted[number - 1], arrived)
            self._next = counted[number - 1].offset + 1
            self._follow_each_other(counted[number:])
        for first, _, count in stretches_within([record.offset for record in counted]):
            self._add_runs(first, count)
        self.remaining -= past
        return past

    def _add_runs(self, upstream: int, count: int) -> None:
        """Note where on the target the next records are. They follow each other on the source."""
        while count and self._stretches:
            downstream, length = self._stretches.popleft()
            taken = min(count, length)
            self._runs.append(Run(upstream, downstream, taken))
            if taken < length:
                self._stretches.appendleft((downstream + taken, length - taken))
            upstream, count = upstream + taken, count - taken

    def take_runs(self) -> list[Run]:
        """Return the offset runs of the skipped records, as far as they are certain.

        Call it once no record is left to skip. Each run is returned once.
        """
        runs, self._runs = self._runs, []
        return runs

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
    """The target has retaken the record's timestamp by its own time."""
    behind: int


def _last_record(end: LastAppend) -> _LastRecord | None:
    if end.last is None:
        return None
    record = max(read_records(end.last), key=lambda record: record.offset)
    behind = end.behind + end.last.last_offset - record.offset
    return _LastRecord(record, bool(end.last.attributes & LOG_APPEND_TIME), behind)


def _compare(record: PlainRecord, last: _LastRecord) -> None:
    copy = last.record._replace(timestamp=record.timestamp) if last.has_append_time else last.record
    if copy[1:] != record[1:]:
        raise RecordMismatch(
            f"the target's last record of ours, at its offset {copy.offset}, is not the source's at "
            f"{record.offset}. Records that were appended already are gone from the source or have changed"
        )
