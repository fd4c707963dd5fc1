"""The admission of a partition's fetched batches: they are queued, passed over, or counted past (no I/O, no clock)."""

from collections.abc import Sequence

from lockstep_data_plane.core.acked_position import AckedPosition
from lockstep_data_plane.core.evaluation import DecidedRecords, without_content
from lockstep_data_plane.core.keyed_routing import Routing
from lockstep_data_plane.core.provenance import Provenance, appended_since
from lockstep_data_plane.core.quarantine_entry import (
    BatchRejected,
    read_unread_records,
    refused_batch,
    refused_record,
    wholly_skipped,
    with_offsets,
)
from lockstep_data_plane.core.resume_deduplicator import RecordMismatch, ResumeDeduplicator
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionState
from lockstep_data_plane.record_batch.classify import AbortedTransactions, BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.layout import Batch, CorruptRecordError, OutgoingBatch, scan
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge
from lockstep_state.rows.state_rows import PartitionProgress

PASS = BatchAction.PASS


class BatchAdmission:
    """The judge of the batches of one incarnation of a partition, which queues what is to be sent."""

    def __init__(
        self,
        acked: AckedPosition,
        provenance: Provenance,
        routing: Routing,
        row: PartitionProgress,
        end: LastAppend,
        transactions: TransactionState | None = None,
    ) -> None:
        """Begin to judge the source again behind `row`.

        Records between `row` and `end` are counted and not sent. Those that the target's log still has are compared
        with the counted ones.

        Args:
            acked: The position that the target has acknowledged.
            provenance: The origins of the source's batches.
            routing: The queue of what is to be sent.
            row: The progress from which the partition resumed.
            end: The end of our appends in the target's log, at or behind the position of `row`.
            transactions: The partition's transactions; None: it has none.
        """
        self._acked = acked
        self._provenance = provenance
        self._routing = routing
        self._transactions = transactions
        self.position = row.upstream + 1
        """The next upstream offset to judge."""
        appended = appended_since(row, end.sequence, end.others)
        # If others have appended nothing in between, the place of each of our records is known, even of removed ones.
        is_alone = end.downstream - row.downstream == appended
        stretches = ((row.downstream + 1, appended),) if is_alone else end.stretches or ()
        self._already_appended = ResumeDeduplicator(
            appended, end, stretches=stretches, position=self.position, skips=row.skips
        )
        self.skips = row.skips
        """The source's offsets (first, last) that are quarantined and passed over."""
        self._source_end = 0

    @property
    def records_to_skip(self) -> int:
        """Return how many of the source's next records the target's log has already: they are counted and not sent."""
        return self._already_appended.remaining

    def admit(
        self,
        batches: Sequence[Batch],
        aborted: AbortedTransactions,
        limits: TargetLimits,
        *,
        sends: bool,
        source_end: int,
    ) -> None:
        """Judge the batches fetched at `position`, and queue what is to be sent.

        If it raises, the batches before the refused one stay queued.

        Args:
            batches: The batches of one fetch, in order.
            aborted: The aborted transactions among them.
            limits: The limits of the target's topic.
            sends: Records may be queued. Otherwise judging ends with the last record that is counted.
            source_end: The next offset of the source's log.

        Raises:
            BatchRejected: A batch cannot be copied as it is, nor rebuilt.
            RecordMismatch: The counted records are not those that the target has.
        """
        self._source_end = source_end
        try:
            self._admit_each(batches, aborted, limits, sends=sends)
        finally:
            self._routing.close_group(limits)

    def admit_decided(
        self, decided: Sequence[DecidedRecords], limits: TargetLimits, *, sends: bool, source_end: int
    ) -> None:
        """Queue what a transform made of the source, and pass over what it dropped.

        To this judge it is a source that a log cleaner has been through. Arguments and errors are those of `admit`.
        """
        self._source_end = source_end
        try:
            for part in decided:
                if not (sends or self.records_to_skip):
                    return
                self._admit_part(part, limits, sends=sends)
        finally:
            self._routing.close_group(limits)

    def _admit_part(self, part: DecidedRecords, limits: TargetLimits, *, sends: bool) -> None:
        outgoing = part.outgoing
        if outgoing is None:
            self._pass_over(part.covers, part.leader_epoch)
        elif self._is_sendable(outgoing, limits) and self._routing.queue_made(outgoing, part.producer_id):
            self.position = part.covers + 1
        else:
            try:
                batch = part.as_batch()
            except CorruptRecordError as exc:
                raise BatchRejected(f"offsets up to {part.covers}: what a transform made is no batch: {exc}") from exc
            self._admit_records(batch, limits, part.producer_id, sends=sends)

    def _is_sendable(self, outgoing: OutgoingBatch, limits: TargetLimits) -> bool:
        """Return whether a batch that a transform made can be sent as it is."""
        first, last = outgoing.offsets[0], outgoing.offsets[-1]
        return (
            not self.records_to_skip
            and first >= self.position
            and not any(begin <= last and first <= end for begin, end in self.skips)
            and outgoing.size <= limits.max_bytes
            and (outgoing.count == 1 or outgoing.size <= limits.split_above)
            and limits.choose_codec(outgoing.codec) == outgoing.codec
        )

    def _admit_each(
        self, batches: Sequence[Batch], aborted: AbortedTransactions, limits: TargetLimits, *, sends: bool
    ) -> None:
        """Judge batches one by one."""
        skips, already_appended, routing, copy_producer_id = (
            self.skips,
            self._already_appended,
            self._routing,
            self._provenance.copy_producer_id,
        )
        for batch in batches:
            if not (sends or already_appended.remaining):
                return
            producer = copy_producer_id(batch)
            of_aborted = aborted.any and aborted.holds(batch)
            action, reason = classify(batch, self.position, limits, aborted=of_aborted, elsewhere=producer is None)
            own = -1 if producer is None else producer
            if (
                action is PASS
                and not (already_appended.remaining or (skips and self._touches(batch)))
                and routing.pass_on(batch, own)
            ):
                self.position = batch.base_offset + batch.record_count
            elif action is BatchAction.SKIP or (skips and wholly_skipped(batch, self.position, skips)):
                self._pass_over(batch.last_offset, batch.leader_epoch)
            elif batch.batches > 1:
                self._admit_each(list(scan(batch.data)), aborted, limits, sends=sends)
            elif action is BatchAction.REFUSE:
                raise self._rejected(batch, reason, limits)
            else:
                self._admit_records(batch, limits, own, sends=sends)

    def _touches(self, batch: Batch) -> bool:
        """Return whether some of the batch's offsets are quarantined and passed over."""
        return any(first <= batch.last_offset and batch.base_offset <= last for first, last in self.skips)

    def _admit_records(self, batch: Batch, limits: TargetLimits, producer: int, *, sends: bool) -> None:
        """Judge a batch whose records have to be read: it is rebuilt, or counted past, or both."""
        try:
            if self.records_to_skip and (self._skip_appended(batch) or not (sends or self.records_to_skip)):
                return
            next_position = self._routing.queue_records(batch, self.position, limits, self.skips, producer)
        except RecordTooLarge as exc:
            raise BatchRejected(str(exc), refused_record(exc.record, str(exc))) from exc
        except (BatchRejected, RecordMismatch):
            raise
        except CorruptRecordError as exc:
            raise self._rejected(batch, str(exc), limits) from exc
        except Exception as exc:  # a batch that we cannot handle is one partition's trouble, and not the slot's end
            raise self._rejected(batch, repr(exc), limits) from exc
        if next_position is None:
            self._pass_over(batch.last_offset, batch.leader_epoch)
        else:
            self.position = next_position

    def _skip_appended(self, batch: Batch) -> bool:
        """Skip the records of a batch that the target has; return True if nothing of the batch is left to send.

        Our appends may end inside the batch, because it was split then or began at another record. Then the position
        moves to the first record that is still to be sent.
        """
        records = read_unread_records(batch, self.position, self.skips)
        past = self._already_appended.count_past(records)
        upstream = records[past - 1].offset if past else -1
        is_whole = past == len(records)
        if is_whole:
            upstream = max(batch.last_offset, upstream)
        self.position = upstream + 1 if is_whole else records[past].offset
        if not self.records_to_skip:
            appends = self._routing.appends_to(self._routing.numbers[0])
            self._acked.note_chain_end(upstream, batch.leader_epoch, appends, self._already_appended.take_runs())
        return is_whole

    def _pass_over(self, offset: int, leader_epoch: int) -> None:
        self.position = max(self.position, offset + 1)
        if self.records_to_skip or self._routing.extend_last(offset, leader_epoch):
            return
        if self._transactions is not None and self._transactions.pass_over(offset, leader_epoch):
            return
        self._acked.advance_to(offset, leader_epoch)

    def _rejected(self, batch: Batch, reason: str, limits: TargetLimits) -> BatchRejected:
        """Return the rejection of a whole batch, with its offsets as far as they are certain.

        If rules would drop some of its records or headers, its bytes are not kept.
        """
        refusal = refused_batch(batch, reason, self._source_end)
        kept = refusal if limits.rules is None else without_content(refusal)
        return BatchRejected(with_offsets(batch, reason, refusal), kept)
