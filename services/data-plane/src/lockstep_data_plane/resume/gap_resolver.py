"""The execution of what a policy decided about a partition that cannot simply go on, and about a refused batch.

The result is the row of a new append sequence (`docs/reference/no-silent-loss.md`).
"""

from dataclasses import replace

from lockstep_data_plane.core.events import RowLoaded
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.slot_io import SlotIO
from lockstep_data_plane.core.target_log.target_tail import LogContradiction, NotReplicated
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.record_batch.layout import EPOCHS
from lockstep_data_plane.resume.evidence import EvidenceReader, read_tail
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_rules.offsets.gap_policy import GapCase, GapFound, count_gap, goes_back, lost_on_target
from lockstep_state.errors import NeedsDecision
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress

WENT_ON = {"skip": "GapSkipped", "restart": "CopyRestarted", "progress": "ResumedWithDoubt"}
"""The type of the event that reports a decision, by the decision's word."""


class HaltPartition(NeedsDecision):
    """The partition must not go on until an operator decides.

    The message is the sentence of `cause`: why it halts, and what to do.
    """

    def __init__(self, case: GapCase, cause: Reason) -> None:
        super().__init__(format_sentence(cause))
        self.case = case
        self.cause = cause


class GapResolver:
    """The resolver of gaps for the partitions of a slot.

    A decision is acknowledged before anything follows it.
    """

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        control_writer: ControlTopicWriter,
        evidence: EvidenceReader,
        transaction_runner: TransactionRunner,
        io: SlotIO,
    ) -> None:
        self._source = source
        self._target = target
        self._control_writer = control_writer
        self._evidence = evidence
        self._transaction_runner = transaction_runner
        self._io = io

    async def carry_out(
        self, partition: PartitionState, topic: MirroredTopic, row: PartitionProgress, gap: GapFound
    ) -> PartitionProgress:
        """Carry out the policy's decision, and return the row from which the copy goes on.

        The row is acknowledged before anything is appended behind it.

        Raises:
            HaltPartition: The policy leaves the decision to an operator.
        """
        name, decision, key = partition.name, gap.decision, gap.case.key
        self._control_writer.event("GapFound", name, f"{name}: {gap.text}", **gap.facts())
        if decision is None:
            raise HaltPartition(gap.case, gap.halts(ReasonCode.COPY_CUT))
        row = await self._new_epoch(partition, row, decision.begin, gap.epoch)
        row = replace(
            row,
            source_topic_id=self._source.topic_id(partition.tp) or topic.source_topic_id,
            target_topic_id=self._target.topic_id(partition.target_tp) or topic.target_topic_id,
            open_run=() if gap.case.is_recreated else row.open_run,
            gaps=count_gap(row.gaps, gap.case),
            given_up=row.given_up + (decision.skipped[1] - decision.skipped[0] + 1 if decision.skipped else 0),
            target_lost=row.target_lost + lost_on_target(gap, decision),
        )
        # Without transactions too: the next run may copy in them, or be one of MM2.
        taken_back = goes_back(await self._transaction_runner.progress(partition), decision)
        if taken_back:
            await self._control_writer.progress.write(partition.tp, row.upstream)
        await self._control_writer.write(row)
        self._io.step(partition, RowLoaded(row))
        text, facts = decision.text(key), decision.facts()
        self._control_writer.event(
            WENT_ON[decision.policy], name, f"{name}: {text}", case=gap.case.value, begin=decision.begin, **facts
        )
        if row.transactional and not taken_back:
            await self._control_writer.progress.write(partition.tp, row.upstream)
        return row

    async def row_behind_refusal(
        self, partition: PartitionState, ranges: tuple[tuple[int, int], ...]
    ) -> PartitionProgress | None:
        """Return the row with which a drained partition goes on behind the refused batch.

        Returns:
            None if the target's log is further on than the row. Then it has to be read first.

        Raises:
            HaltPartition: No producer epoch is left.
            RetriableError: The target does not answer or refuses a request, or contradicts the row.
        """
        row = row_after(partition)
        skips = tuple(sorted({*row.skips, *ranges}))
        quarantined = row.quarantined + len(ranges)
        if row.transactional:
            return replace(row, skips=skips, quarantined=quarantined)
        await self._target.refresh([partition.target_topic])
        try:
            end = (await read_tail(self._target, partition, row)).last_append()
        except LogContradiction as exc:
            raise NotReplicated(str(exc)) from exc
        if appended_since(row, end.sequence, end.others):
            return None
        next_row = await self._new_epoch(partition, row, row.upstream + 1)
        return replace(next_row, upstream_epoch=row.upstream_epoch, skips=skips, quarantined=quarantined)

    async def _new_epoch(
        self, partition: PartitionState, row: PartitionProgress, begin: int, known_epoch: int = -1
    ) -> PartitionProgress:
        """Return the row of a new append sequence that begins at upstream offset `begin`.

        An epoch that the target has not seen fences every writer that still follows the old mapping of offsets. A
        transactional id was fenced already.

        Args:
            partition: The partition.
            row: The row of the former append sequence.
            begin: The upstream offset of the first record.
            known_epoch: The newest epoch that the target is known to have; -1: the row's.

        Raises:
            HaltPartition: No producer epoch is left.
            RetriableError: The target does not answer or refuses a request.
        """
        epoch = row.producer_epoch if row.transactional else max(row.producer_epoch, known_epoch) + 1
        if epoch > EPOCHS:
            cause = ReasonCode.EPOCHS_SPENT.to_reason(partition=partition.target_name, case=GapCase.DOUBT.value)
            raise HaltPartition(GapCase.DOUBT, cause)
        return replace(
            row,
            upstream=begin - 1,
            upstream_epoch=-1,
            downstream=max(-1, await self._evidence.log_end(partition) - 1),
            producer_epoch=epoch,
            sequence=-1,
            others=(),
            skips=(),
        )


def row_after(partition: PartitionState) -> PartitionProgress:
    """Return the partition's row without what may have stopped it."""
    return replace(partition.row(), phase="copying", cause=NO_REASON, case="")
