"""The records of ours behind a row that the target's log still holds, and where some are missing (no I/O)."""

from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.layout import CONTROL, LOG_APPEND_TIME, Batch, add_sequence
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_state.rows.state_rows import PartitionProgress


class SurvivingAppends:
    """The collection of our records from the target's batches behind the row's last record.

    Give it these batches in order, and then call `ends`.
    """

    def __init__(self, row: PartitionProgress, end: LastAppend) -> None:
        self._row = row
        self._end = end
        self._ends = {row.producer_id: row.sequence, **dict(row.others)}
        self._ours = {row.producer_id, *dict(end.others)}
        self._has_append_times = False
        self._records: list[PlainRecord] = []
        self.strangers = False
        """Records of others are among ours. In a compacted topic theirs may have replaced ours."""
        self.gone_before = -1
        """The number of `records` that come before the last missing record of ours; -1: none is missing."""

    @property
    def records(self) -> list[PlainRecord]:
        """Return our records, in the order of the log."""
        return self.as_stamped(self._records)

    def as_stamped(self, records: list[PlainRecord]) -> list[PlainRecord]:
        """Return the records without their timestamps if the target gave ours timestamps of its own."""
        return [record._replace(timestamp=-1) for record in records] if self._has_append_times else records

    def add_batch(self, batch: Batch) -> None:
        """Take the records of a batch. Batches of others and of other epochs are strangers; markers do not matter."""
        row, producer_id = self._row, batch.producer_id
        if batch.attributes & CONTROL or batch.last_offset <= row.downstream:
            return
        if producer_id not in self._ours or batch.producer_epoch != row.producer_epoch:
            self.strangers = True
            return
        if batch.base_offset > self._end.downstream:
            return  # another slot has appended it since the chain's end was found
        before = self._ends.get(producer_id, -1)
        first = max(batch.base_offset, row.downstream + 1)
        if add_sequence(batch.base_sequence, first - batch.base_offset) != add_sequence(before, 1):
            self._missing()
        self._ends[producer_id] = add_sequence(batch.base_sequence, batch.last_offset_delta)
        self._has_append_times = self._has_append_times or bool(batch.attributes & LOG_APPEND_TIME)
        next_offset = first
        for record in read_records(batch):
            if record.offset < first:
                continue
            if record.offset > next_offset:
                self._missing()
            self._records.append(record)
            next_offset = record.offset + 1
        if next_offset <= batch.last_offset:
            self._missing()

    def ends(self) -> None:
        """Note that the log has nothing more."""
        own = self._row.producer_id
        if any(self._end.last_sequence_of(p, own) != self._ends.get(p, -1) for p in self._ours):
            self._missing()

    def _missing(self) -> None:
        self.gone_before = len(self._records)
