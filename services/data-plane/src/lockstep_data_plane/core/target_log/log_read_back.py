"""The comparison that finds where a copy ends whose appends carry no producer id (no I/O, no clock; decision 0093).

The target's records behind the row are compared with the source's next records, one by one and in order. The source's
records that appear there in order are copied, by any writer. A record in between is not the next one of the source. It
is a double if the source has it elsewhere: a writer that was frozen has appended it late. It is explained if the source
has lost as many records in that place. Any other record proves nothing, so the partition is in doubt.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from lockstep_data_plane.core.target_log.content_match import record_content
from lockstep_data_plane.core.target_log.target_tail import LogContradiction, TargetTail
from lockstep_data_plane.record_batch.layout import CONTROL, LOG_APPEND_TIME, Batch, CorruptRecordError, add_sequence
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_rules.offsets.offset_runs import Run, add_pair
from lockstep_state.rows.state_rows import PartitionProgress

COMPARED_AT_MOST = 200_000
"""The most records behind the row that are compared: far more than a slot appends between two rows."""


def last_pair(row: PartitionProgress) -> tuple[int, int] | None:
    """Return the upstream and the downstream offset of the last record of the row's open run; None: there is no run."""
    if not row.begun or len(row.open_run) != 3:
        return None
    upstream, downstream, count = row.open_run
    return upstream + count - 1, downstream + count - 1


class ReadBackTail(TargetTail):
    """The target's log from the last record of a row on, whose records carry no producer id.

    Its `end` counts all of its records as appended. The source's records say which of them are ours.
    """

    def __init__(self, row: PartitionProgress, *, log_end: int = -1, name: str = "", alias: str = "") -> None:
        super().__init__(row, log_end=log_end, name=name, alias=alias)
        self.records: list[PlainRecord] = []
        """The records behind the row, in order."""
        self.last_of_run: PlainRecord | None = None
        """The last record of the row's open run; None: it is gone, or there is no run."""
        self._pair = last_pair(row)
        self._stamped_there = False

    @property
    def is_whole(self) -> bool:
        """Return whether the whole tail was read, so that it can be compared."""
        return not (self.is_short or self._awaits_replicas) and self.contradiction is None

    @property
    def reads_from(self) -> int:
        """Return the first offset that has to be read: that of the last record of the row's run, if there is one."""
        return self._row.downstream + 1 if self._pair is None else self._pair[1]

    def content(self, record: PlainRecord) -> tuple[object, ...]:
        """Return what a record has in common with its copy, without the timestamp if the target sets its own."""
        return record_content(record._replace(timestamp=-1) if self._stamped_there else record)

    def add_batches(self, batches: Iterable[Batch]) -> None:
        """Take batches in order.

        Raises:
            LogContradiction: Records behind the row are gone or cannot be read, or are too many. They may have been
                ours.
        """
        for batch in batches:
            if batch.last_offset < self.reads_from:
                continue
            if batch.base_offset > self._next:
                raise self._removed(batch.base_offset - 1)
            self._next = max(self._next, batch.last_offset + 1)
            if not batch.attributes & CONTROL:
                self._add_records(batch)

    def _add_records(self, batch: Batch) -> None:
        first, count = max(batch.base_offset, self._row.downstream + 1), len(self.records)
        self._stamped_there = self._stamped_there or bool(batch.attributes & LOG_APPEND_TIME)
        try:
            for record in read_records(batch):
                if record.offset >= first:
                    self.records.append(record)
                elif self._pair is not None and record.offset == self._pair[1]:
                    self.last_of_run = record
        except CorruptRecordError as exc:
            text = f"the target's log of {self._name} cannot be read at offset {batch.base_offset}: {exc}"
            raise LogContradiction(text) from exc
        if len(self.records) > COMPARED_AT_MOST:
            text = (
                f"the target's log of {self._name} holds more than {COMPARED_AT_MOST} records behind our last known one"
            )
            raise LogContradiction(text)
        added = len(self.records) - count
        if added < batch.last_offset + 1 - first:
            raise self._removed(batch.last_offset)
        if added:
            self.end = replace(self.end, sequence=add_sequence(self.end.sequence, added))

    def replicated(self, appended_to: int) -> None:
        """Note that nothing more is to come before `log_end`, and that the leader's own log ended at `appended_to`.

        Raises:
            LogContradiction: As in `add_batches`.
        """
        self._appended_to = appended_to
        if self._next < self.log_end:
            raise self._removed(self.log_end - 1)
        self.end = replace(self.end, downstream=max(self._row.downstream, self.log_end - 1))

    def _removed(self, offset: int) -> LogContradiction:
        return LogContradiction(
            f"the target's log of {self._name} has nothing any more at offset {offset}, behind our last known record "
            f"at {self._row.downstream}. The target keeps no producer ids, and the removed records may have been ours"
        )


class ComparedCopy(NamedTuple):
    """The result of a comparison: where the copy is.

    `next` is the first upstream offset that the target does not have. `needed_from` is the same, or less where the
    source has lost records in between that were never copied. `runs` are the offset runs of the records behind the row,
    in order. `doubled` is how many records the target has twice.
    """

    next: int
    needed_from: int
    runs: tuple[Run, ...] = ()
    doubled: int = 0


class CopyComparison:
    """The comparison of one tail with the source's records.

    Give the source's records from the row on to `compare` until it says that the position is known, then call `ends`.
    If there are `strangers`, give records that the source has elsewhere to `search`. Then ask for `result`.
    """

    def __init__(self, row: PartitionProgress, tail: ReadBackTail) -> None:
        self._tail = tail
        self._name = f"{row.topic}-{row.partition}"
        self._is_transformed = bool(row.transform)
        """The transform may have dropped what is missing in the source, so that explains no other record."""
        self._indexes: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for index, record in enumerate(tail.records):
            self._indexes[tail.content(record)].append(index)
        self._reached, self._upstream = 0, row.upstream
        self._next: int | None = None
        self._runs: list[Run] = []
        self._stretches: list[tuple[list[PlainRecord], int]] = []
        """The stretches of records that are not the source's next ones, each with the number of offsets that the source
        has lost in its place.
        """
        self._copied: set[tuple[object, ...]] = set()
        """The content of the records of the tail that the source has, too."""

    def require_run(self, record: PlainRecord | None) -> None:
        """Compare the last record of the row's run with the source's; None: the source has it no more.

        Raises:
            LogContradiction: The two records differ, so one of the logs is another one.
        """
        copy = self._tail.last_of_run
        if record is not None and copy is not None and self._tail.content(record) != self._tail.content(copy):
            raise LogContradiction(
                f"the target's record at its offset {copy.offset} is not the source's record of {self._name} at offset "
                f"{record.offset}, although the row says so. One of both logs was truncated and has grown again, or "
                "was written by another program"
            )

    @property
    def is_open(self) -> bool:
        """Return whether records of the tail are still to be compared."""
        return self._next is None and self._reached < len(self._tail.records)

    def compare(self, records: Iterable[PlainRecord]) -> bool:
        """Compare more of the source's records; return True once the position is known."""
        for record in records:
            content = self._tail.content(record)
            indexes = self._indexes.get(content, [])
            next_index = bisect_left(indexes, self._reached)
            if next_index == len(indexes):
                self._next = record.offset
            elif self.is_open:
                self._match(record.offset, indexes[next_index])
                self._copied.add(content)
            if not self.is_open:
                break
        return not self.is_open

    def _match(self, upstream: int, index: int) -> None:
        if index > self._reached:
            strangers = self._tail.records[self._reached : index]
            self._stretches.append((strangers, self._lost_before(upstream)))
        add_pair(self._runs, upstream, self._tail.records[index].offset)
        self._reached, self._upstream = index + 1, upstream

    def _lost_before(self, upstream: int) -> int:
        """Return how many records the source may have lost between the last matched one and this offset."""
        return 0 if self._is_transformed else max(0, upstream - self._upstream - 1)

    def ends(self, source_end: int) -> None:
        """Note that the position is known, or that the source has nothing more before `source_end`."""
        if self._next is None:
            self._next = self._upstream + 1 if self._reached == len(self._tail.records) else source_end
        if self._reached < len(self._tail.records):
            lost = self._lost_before(self._next)
            self._stretches.append((self._tail.records[self._reached :], lost))

    @property
    def strangers(self) -> list[PlainRecord]:
        """Return the records that are not the source's next ones, nor copies of other records behind the row."""
        return [record for records, _ in self._stretches for record in self._unknown(records)]

    def search(self, records: Iterable[PlainRecord]) -> None:
        """Note which strangers are copies of these records of the source."""
        self._copied.update(self._indexes.keys() & {self._tail.content(record) for record in records})

    def _unknown(self, records: Iterable[PlainRecord]) -> list[PlainRecord]:
        return [record for record in records if self._tail.content(record) not in self._copied]

    def result(self) -> ComparedCopy:
        """Return where the copy is.

        Raises:
            LogContradiction: The target has records that the source neither has nor may have lost.
        """
        if self._next is None:
            raise ValueError("the comparison has not ended")
        doubled, needed_from = 0, self._upstream + 1
        for records, lost in self._stretches:
            unknown = self._unknown(records)
            doubled += len(records) - len(unknown)
            if len(unknown) > lost:
                raise LogContradiction(
                    f"the target's log of {self._name} holds {len(unknown)} records from its offset "
                    f"{unknown[0].offset} on that are not the source's next ones, and the target keeps no producer "
                    "ids. Another program appends there, or the source was truncated and has grown again"
                )
            if records[-1] is self._tail.records[-1]:
                needed_from += len(unknown)
        return ComparedCopy(self._next, needed_from, tuple(self._runs), doubled)
