"""The routing of a partition's records over all partitions of the target, by key (no I/O, no clock).

It is used with `lockstep.legacy.partitioning=key` (`docs/decisions/0034-partitioning-by-key.md`). The logs of the
target hold the appends of several source partitions. So only committed progress says how far one copy is, and the
partition always copies in transactions.
"""

from collections import deque
from collections.abc import Sequence

from lockstep_data_plane.core.append_sequence import Ack, AppendSequence, IdentityRouting, InFlightBatch, Skips
from lockstep_data_plane.core.key_partitioner import BatchGroup, KeyPartitioner, StickyPartition
from lockstep_data_plane.core.quarantine_entry import (
    BatchRejected,
    RefusedRecords,
    read_unread_records,
    refused_record,
    skipped,
)
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import CODEC_MASK, Batch, OutgoingBatch
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge
from lockstep_state.rows.state_rows import PartitionProgress

GROUP_BYTES = 1024 * 1024
"""The size at which a group of records ends, in bytes of keys and values. A group becomes one batch for each partition
of the target, as far as codecs and size limits allow.
"""

ROUND_BYTES = 4 * 1024 * 1024
"""The bytes of a round that may wait or be in flight while another group joins it. A partition that drains sends them
all.
"""


class KeyedRouting:
    """The routing over all partitions of the target by key, in rounds.

    A round is what one transaction holds. It has whole groups. So it ends with everything up to one upstream offset
    decided, even if the partitions of the target differ in speed. Methods without a docstring do as those of
    `IdentityRouting`.
    """

    in_one_log = False
    sends_at_end = True

    def __init__(self, number: int, partitions: int = 0, producer_id: int = -1, epoch: int = 0) -> None:
        self.numbers: Sequence[int] = range(partitions)
        self.producer_id = producer_id
        self.epoch = epoch
        self.broken = False
        self._number = number
        self._sequences = [AppendSequence(producer_id, epoch, -1, -1, transactional=True) for _ in self.numbers]
        self._sticky = StickyPartition(number)
        self._refused_at: RefusedRecords | None = None
        """The records that the target refused. They are reached again, and everything before them is committed first.
        """
        self._gathering: KeyPartitioner | None = None
        self._queued_groups: deque[BatchGroup] = deque()
        self._transaction_group: BatchGroup | None = None

    def fits_partitions(self, partitions: int) -> bool:
        return len(self._sequences) == partitions

    def spread_over(self, partitions: int) -> "KeyedRouting":
        return KeyedRouting(self._number, partitions)

    def after_resume(self, row: PartitionProgress, end: LastAppend, *, transactional: bool) -> "KeyedRouting":
        """Return the routing after a resume, with nothing queued.

        The transactional id of the row's epoch has appended nothing yet, so every sequence begins at 0.
        """
        routing = KeyedRouting(self._number, len(self._sequences), row.producer_id, row.producer_epoch)
        routing._sticky, routing._refused_at = self._sticky, self._refused_at
        return routing

    def appends_to(self, number: int) -> AppendSequence:
        return self._sequences[number]

    # -- records in ----------------------------------------------------------------------------------------------------

    def pass_on(self, batch: Batch, producer_id: int) -> bool:
        return False

    def queue_made(self, outgoing: OutgoingBatch, producer_id: int) -> bool:
        return False

    def queue_records(
        self, batch: Batch, position: int, limits: TargetLimits, skips: Skips, producer_id: int
    ) -> int | None:
        records = read_unread_records(batch, position, skips, limits.unpacked_at_most, limits.rules)
        if not records:
            return None
        gathering = self._gathering = self._gathering or KeyPartitioner(position - 1)
        codec, refused = limits.choose_codec(batch.attributes & CODEC_MASK), self._refused_at
        ranges = refused.ranges if refused is not None else ()
        refused_index = next((index for index, record in enumerate(records) if skipped(record.offset, ranges)), None)
        gathering.add_records(records[:refused_index], codec, len(self._sequences), self._sticky)
        if refused is not None and refused_index is not None:
            gathering.cover(records[refused_index].offset - 1, batch.leader_epoch)
            self._refused_at = None
            raise BatchRejected(refused.reason, refused)
        gathering.cover(max(batch.last_offset, records[-1].offset), batch.leader_epoch)
        covers = gathering.covers
        if gathering.size >= GROUP_BYTES:
            self.close_group(limits)
        return covers + 1

    def close_group(self, limits: TargetLimits) -> None:
        gathering, self._gathering = self._gathering, None
        refused: BatchRejected | None = None
        while gathering is not None:
            try:
                group = gathering.group(limits)
            except RecordTooLarge as exc:
                refused = BatchRejected(str(exc), refused_record(exc.record, str(exc)))
                gathering.drop_from(exc.record.offset)
                continue
            except Exception as exc:
                raise BatchRejected(f"records up to offset {gathering.covers}: {exc!r}") from exc
            if group.outgoing_batches:
                self._queued_groups.append(group)
            break
        if refused is not None:
            raise refused

    def extend_last(self, covers: int, leader_epoch: int) -> bool:
        if self._gathering is not None:
            self._gathering.cover(covers, leader_epoch)
            return True
        last = self._queued_groups[-1] if self._queued_groups else self._transaction_group
        if last is not None and covers > last.covers:
            last.covers, last.leader_epoch = covers, leader_epoch
        return last is not None

    # -- answers and failures ------------------------------------------------------------------------------------------

    def on_ack(self, sent: InFlightBatch, base_offset: int) -> list[Ack]:
        return self._sequences[sent.outgoing.target_partition].on_ack(sent, base_offset)

    def count_acked(self) -> list[Ack]:
        return [ack for sequence in self._sequences for ack in sequence.count_acked()]

    def on_failure(self, sent: InFlightBatch) -> None:
        self._sequences[sent.outgoing.target_partition].on_failure(sent)
        self.on_failed()

    def on_failed(self) -> None:
        """Send nothing more to any partition: the round cannot end any more."""
        self.broken = True
        for sequence in self._sequences:
            sequence.break_off()

    def breaks_round(self, refusal: RefusedRecords | None) -> bool:
        if not self.broken or refusal is None:
            return False
        if self._refused_at is None or refusal.ranges < self._refused_at.ranges:
            self._refused_at = refusal
        return True

    def reset(self) -> None:
        """Drop the groups that have joined no round yet; of a broken round, also the batches that were not sent."""
        self._queued_groups.clear()
        if self.broken:
            for sequence in self._sequences:
                sequence.reset()

    # -- transactions --------------------------------------------------------------------------------------------------

    def join_transaction(self) -> frozenset[int]:
        while self._queued_groups and (
            self._transaction_group is None or sum(sequence.bytes_held for sequence in self._sequences) < ROUND_BYTES
        ):
            group = self._queued_groups.popleft()
            for outgoing in group.outgoing_batches:
                self._sequences[outgoing.target_partition].enqueue(outgoing)
            self._transaction_group = BatchGroup((), group.covers, group.leader_epoch)
        return frozenset(number for number, sequence in enumerate(self._sequences) if not sequence.idle)

    @property
    def ends_whole(self) -> bool:
        """Return whether the round may be committed, which is so unless it is broken.

        If a part of a round were committed, the run that goes on would append that part twice.
        """
        return not self.broken

    @property
    def all_sent(self) -> bool:
        return not self.broken and all(sequence.idle for sequence in self._sequences)

    def decided_up_to(self, held: Sequence[Ack]) -> tuple[int, int]:
        return (
            (-1, -1)
            if self._transaction_group is None
            else (self._transaction_group.covers, self._transaction_group.leader_epoch)
        )

    def skip_marker(self) -> None:
        """Note that the round has ended."""
        self._transaction_group = None

    # -- all together --------------------------------------------------------------------------------------------------

    @property
    def sendable(self) -> bool:
        """Return whether a round may begin."""
        return bool(self._queued_groups) and not self.broken

    @property
    def bytes_held(self) -> int:
        return sum(sequence.bytes_held for sequence in self._sequences) + sum(
            group.size for group in self._queued_groups
        )

    @property
    def records_held(self) -> int:
        waiting = sum(outgoing.count for group in self._queued_groups for outgoing in group.outgoing_batches)
        return waiting + sum(sequence.records_held for sequence in self._sequences)

    @property
    def unanswered(self) -> int:
        return sum(sequence.unanswered for sequence in self._sequences)

    @property
    def idle(self) -> bool:
        return not self._queued_groups and all(sequence.idle for sequence in self._sequences)


Routing = IdentityRouting | KeyedRouting
