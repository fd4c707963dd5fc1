"""The comparison of one partition of the source with its copy (no I/O, no clock).

It compares batch by batch as far as batches are equal, else record by record.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import LOG_APPEND_TIME, Batch, expected_crc
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_data_plane.verify.agreement_search import SOURCE, TARGET, Agreement, AgreementSearch
from lockstep_data_plane.verify.batch_comparison import Depth, is_copy, is_empty
from lockstep_data_plane.verify.difference import Difference, NotCompared
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.record_alignment import AHEAD, Findings, RecordAlignment, TargetRules, as_aligned
from lockstep_data_plane.verify.transformed_batch import TransformedBatch
from lockstep_state.reasons.verification_reason import DifferenceKind, NotComparedReason

SourceBatch = Batch | TransformedBatch
"""A batch of the source, or what a transform leaves of it."""

LISTED = 100
"""The most differences of a partition that are kept one by one, and the most stretches that are not compared. The
rest is counted.
"""


class PartitionVerifier:
    """The comparison of one partition between two pairs of offsets that belong together.

    Add what is fetched of both logs in order, then call `finish`.
    """

    def __init__(
        self,
        begin: tuple[int, int],
        end: tuple[int, int],
        depth: Depth,
        rules: TargetRules,
        offsets: OffsetMap,
        is_our_producer: Callable[[int], bool],
        shift: int = 0,
        is_copied: Callable[[Batch], bool] = lambda batch: True,
    ) -> None:
        """Begin the comparison.

        Args:
            begin: The first offsets to compare, of source and target.
            end: The offsets after the last ones to compare, of source and target.
            depth: How closely batches are compared.
            rules: The expectations of the target's log.
            offsets: The offset runs of the partition.
            is_our_producer: Returns whether the flow appends under a producer id.
            shift: The shift at the end of the comparison up to `begin`.
            is_copied: Returns whether the flow copies a batch of the source that has records.
        """
        self._depth = depth
        self._rules = rules
        self._is_our_producer = is_our_producer
        self._is_copied = is_copied
        self._offsets = offsets
        self._end = end
        self._begin(begin, shift, None)
        self.position = begin
        """The offsets of source and target up to which both logs are compared, with all findings reported."""
        self.is_settled = True
        """True if all findings are about records before `position`."""
        self.records = 0
        """The number of pairs of records that were compared."""
        self.bytes = 0
        """The bytes of the target's batches that were compared."""
        self.differences: Counter[str] = Counter()
        self.listed: list[Difference] = []
        """The first differences, at most `LISTED`."""
        self.not_compared: Counter[NotComparedReason] = Counter()
        self.stretches: list[NotCompared] = []

    def _begin(self, begin: tuple[int, int], shift: int, agreement: Agreement | None) -> None:
        findings = Findings(self._differs, self._not_compared, self._add_pair)
        self._alignment = RecordAlignment(self._rules, self._offsets, findings, begin, shift, agreement)
        self._source: deque[SourceBatch] = deque()
        self._target: deque[Batch] = deque()
        self._read_bytes: deque[tuple[int, int]] = deque()
        """The last offset and size of each batch of the target whose records are being compared."""
        self._read_to = list(begin)
        """The offsets of source and target after what was compared or waits in the alignment."""
        self._ended = [False, False]
        """Two flags that say whether source and target were fetched to their ends."""
        self._unreadable_to = list(begin)
        """The offsets of source and target after the last batch that could not be read."""

    @property
    def shift(self) -> int:
        """The distance of the last record's target offset from the one that the offset runs name."""
        return self._alignment.shift

    # -- what is fetched -----------------------------------------------------------------------------------------------

    @property
    def needs_source(self) -> bool:
        """Return whether no batch of the source waits to be compared."""
        return not self._source

    @property
    def needs_target(self) -> bool:
        """Return whether no batch of the target waits to be compared."""
        return not self._target

    @property
    def lacks_source(self) -> bool:
        """Return whether neither a batch nor a record of the source waits."""
        return not (self._source or self._alignment.source)

    @property
    def lacks_target(self) -> bool:
        """Return whether neither a batch nor a record of the target waits."""
        return not (self._target or self._alignment.target)

    @property
    def is_lost(self) -> bool:
        """Return whether both logs differ from `position` on for so long that the next agreement has to be searched."""
        return self._alignment.is_lost

    def source_batches(self, batches: Iterable[Batch], aborted: AbortedTransactions) -> list[Batch]:
        """Return the batches of the source's log that are to be compared.

        Control batches, aborted transactions and batches that the flow does not copy are skipped.
        """
        return list(self._of_source(batches, aborted, self._read_to[0]))

    def add_source(self, batches: Iterable[SourceBatch]) -> None:
        """Add batches of `source_batches`, or what a transform leaves of them."""
        self._source.extend(batches)

    def add_target(self, batches: Iterable[Batch], aborted: AbortedTransactions) -> None:
        """Add batches of the target's log.

        Aborted transactions are skipped, as the flow has appended their records again. Batches of other clients are
        skipped if they are expected.
        """
        self._target.extend(self._of_target(batches, aborted, self._read_to[1]))

    def end_source(self) -> None:
        """Note that the source has no more batches."""
        self._ended[0] = True

    def end_target(self) -> None:
        """Note that the target has no more batches."""
        self._ended[1] = True

    def _of_source(self, batches: Iterable[Batch], aborted: AbortedTransactions, begin: int) -> Iterator[Batch]:
        for batch in batches:
            is_aborted = aborted.holds(batch)
            is_old = batch.magic < 2  # its header does not say where it ends
            is_in_range = is_old or batch.last_offset >= begin
            has_copy = not (is_aborted or is_empty(batch)) and self._is_copied(batch)
            if is_in_range and batch.base_offset < self._end[0] and has_copy:
                yield batch

    def _of_target(self, batches: Iterable[Batch], aborted: AbortedTransactions, begin: int) -> Iterator[Batch]:
        for batch in batches:
            is_aborted = aborted.holds(batch)
            expected = self._rules.has_foreign_writers and not self._is_our_producer(batch.producer_id)
            is_in_range = batch.last_offset >= begin and batch.base_offset < self._end[1]
            if is_in_range and not (is_aborted or is_empty(batch) or expected):
                yield batch

    # -- the next agreement --------------------------------------------------------------------------------------------

    def go_on(self, agreement: Agreement) -> None:
        """Begin again at `position` after the comparison was lost. Both logs have to be fetched from there.

        Args:
            agreement: The place from which both logs agree again.
        """
        self._begin(self.position, self.shift, agreement)

    def searched_batches(self, batches: Iterable[Batch], aborted: AbortedTransactions) -> list[Batch]:
        """Return the source's batches from `position` on that a search needs."""
        return list(self._of_source(batches, aborted, self.position[0]))

    def search_source(self, search: AgreementSearch, batches: Iterable[SourceBatch]) -> Agreement | None:
        """Add the source's batches of `searched_batches`, or what a transform leaves of them, to a search.

        Returns:
            The place where both logs agree, once it is known.
        """
        return _search(search, SOURCE, batches, self.position[0], self._end[0])

    def search_target(
        self, search: AgreementSearch, batches: Iterable[Batch], aborted: AbortedTransactions
    ) -> Agreement | None:
        """Add the target's batches to a search, as `search_source` does with the source's."""
        searched = self._of_target(batches, aborted, self.position[1])
        return _search(search, TARGET, searched, self.position[1], self._end[1])

    # -- comparison ----------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Compare what was fetched, as far as both logs have it."""
        while not self.is_lost and (self._compare_batches() or self._read_records()):
            pass
        source, target = self._alignment.source, self._alignment.target
        position = (source[0].offset if source else self._read_to[0], target[0].offset if target else self._read_to[1])
        is_readable = position[0] >= self._unreadable_to[0] and position[1] >= self._unreadable_to[1]
        self.is_settled = (is_readable and self._alignment.is_settled) or self.is_lost
        if self.is_settled:
            self.position = position
        self._count_read_bytes(position[1])

    def drain(self) -> None:
        """Report the remaining records of one log, since the other one has ended and has none left."""
        while not self.is_lost and (self._compare_batches() or self._read_records()):
            pass
        while self._source and not self.is_lost:
            self._read_source()
        while self._target and not self.is_lost:
            self._read_target()
        self._align(at_end=True)
        self.compare()

    def finish(self) -> None:
        """Compare the rest, since both logs were fetched up to their ends."""
        self.end_source()
        self.end_target()
        self.drain()
        if not self.is_lost:
            self.position = self._end
            self._count_read_bytes(self._read_to[1] + 1)

    def _compare_batches(self) -> bool:
        """Compare the next batches of both logs as wholes, and return whether they are equal."""
        if self._alignment.has_waiting or not (self._source and self._target):
            return False
        source, target = self._source[0], self._target[0]
        if isinstance(source, TransformedBatch):
            return False
        are_whole = source.base_offset >= self._read_to[0] and target.base_offset >= self._read_to[1]
        are_whole = are_whole and source.last_offset < self._end[0] and target.last_offset < self._end[1]
        if not (are_whole and is_copy(source, target, self._depth)):
            return False
        self._source.popleft()
        self._target.popleft()
        self._read_to = [source.last_offset + 1, target.last_offset + 1]
        self.records += source.record_count
        self.bytes += len(target.data)
        ends = (source.base_offset, source.last_offset), (target.base_offset, target.last_offset)
        self._alignment.pair_batches(*ends, source.record_count)
        return True

    def _read_records(self) -> bool:
        """Read the records of one more batch, or of one of each log. Return False if no batch helps."""
        source, target = self._alignment.source, self._alignment.target
        stuck = bool(source and target)
        read = False
        if self._source and (not source or (stuck and len(source) <= AHEAD)):
            self._read_source()
            read = True
        if self._target and (not target or (stuck and len(target) <= AHEAD)):
            self._read_target()
            read = True
        if read:
            self._align(at_end=False)
        return read

    def _align(self, *, at_end: bool) -> None:
        alignment = self._alignment
        if alignment.is_lost:
            return
        alignment.ended[:] = self._ended[0] and not self._source, self._ended[1] and not self._target
        waiting = zip((alignment.source, alignment.target), self._read_to, self._unreadable_to, strict=True)
        alignment.may_be_lost = all((log[0].offset if log else end) >= to for log, end, to in waiting)
        alignment.align(at_end=at_end)

    def _read_source(self) -> None:
        batch = self._source.popleft()
        begin, end = self._read_to[0], self._end[0]
        if isinstance(batch, TransformedBatch):
            self._add_transformed(batch)
            return
        last = batch.base_offset if batch.magic < 2 else batch.last_offset
        try:
            _check_crc(batch)
            records = list(read_records(batch))
        except ValueError:
            self._not_compared(NotComparedReason.UNREADABLE, batch.base_offset, -1, max(1, batch.record_count))
            self._unreadable_to[0] = last + 1
        else:
            last = max(last, max((record.offset for record in records), default=last))
            self._alignment.source.extend(as_aligned(record) for record in records if begin <= record.offset < end)
        self._read_to[0] = max(begin, min(last + 1, end))

    def _add_transformed(self, batch: TransformedBatch) -> None:
        begin, end = self._read_to[0], self._end[0]
        records = (record for record in batch.records if begin <= record.offset < end)
        self._alignment.source.extend(as_aligned(record) for record in records)
        for offset in batch.failed:
            if begin <= offset < end:
                self._not_compared(NotComparedReason.PASSED_OVER, offset, -1)
        self._read_to[0] = max(begin, min(batch.last_offset + 1, end))

    def _read_target(self) -> None:
        batch = self._target.popleft()
        begin, end = self._read_to[1], self._end[1]
        is_ours = self._is_our_producer(batch.producer_id)
        has_own_time = not batch.attributes & LOG_APPEND_TIME
        try:
            _check_crc(batch)
            records = [
                as_aligned(record, is_ours=is_ours, has_own_time=has_own_time)
                for record in read_records(batch)
                if begin <= record.offset < end
            ]
        except ValueError:
            self._differs(Difference(DifferenceKind.UNREADABLE.value, -1, batch.base_offset))
            self._alignment.unreadable.append((batch.base_offset, batch.last_offset))
            self._unreadable_to[1] = batch.last_offset + 1
        else:
            self._alignment.target.extend(records)
        self._read_bytes.append((batch.last_offset, len(batch.data)))
        self._read_to[1] = max(begin, min(batch.last_offset + 1, end))

    def _count_read_bytes(self, position: int) -> None:
        """Count the batches of the target whose records are all before the position."""
        while self._read_bytes and self._read_bytes[0][0] < position:
            self.bytes += self._read_bytes.popleft()[1]

    # -- findings ------------------------------------------------------------------------------------------------------

    def _add_pair(self) -> None:
        self.records += 1

    def _differs(self, difference: Difference) -> None:
        self.differences[difference.kind] += 1
        if len(self.listed) < LISTED:
            self.listed.append(difference)

    def _not_compared(self, reason: NotComparedReason, source: int, target: int, records: int = 1) -> None:
        self.not_compared[reason] += records
        last = self.stretches[-1] if self.stretches else None
        if last is not None and last.reason is reason and source >= 0 and last.last == source - 1:
            self.stretches[-1] = NotCompared(reason, last.first, source + records - 1, last.records + records)
        elif len(self.stretches) < LISTED:
            self.stretches.append(NotCompared(reason, source, source + records - 1 if source >= 0 else -1, records))


def _search(
    search: AgreementSearch, log: int, batches: Iterable[SourceBatch], begin: int, end: int
) -> Agreement | None:
    for batch in batches:
        if isinstance(batch, TransformedBatch):
            decoded, has_own_time = batch.records, True
        else:
            try:
                decoded = tuple(read_records(batch))
            except ValueError:
                continue  # the comparison reports it
            has_own_time = log == SOURCE or not batch.attributes & LOG_APPEND_TIME
        records = [as_aligned(record) for record in decoded if begin <= record.offset < end]
        for record in records:
            agreement = search.add_record(log, record.offset, record.content, has_own_time=has_own_time)
            if agreement is not None:
                return agreement
    return None


def _check_crc(batch: Batch) -> None:
    """Check the CRC of a batch. Formats 0 and 1 have one for each message, which is checked when they are read.

    Raises:
        ValueError: The CRC does not match the batch's bytes.
    """
    if batch.magic == 2 and expected_crc(batch.data) != batch.crc:
        raise ValueError("its CRC does not match its bytes")
