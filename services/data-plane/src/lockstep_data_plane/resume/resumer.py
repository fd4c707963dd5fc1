"""Where a partition goes on, looked up on both clusters: leaders, topic ids, both logs' ends, our chain's end
(`kafka-wire.md` §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.admin.offset_alteration import ALTERED
from lockstep_data_plane.common.single_flight import SingleFlight
from lockstep_data_plane.core.gap_policy import FoundGap
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.resume.gap_resolver import GapResolver, HaltPartition, row_after
from lockstep_data_plane.resume.log_reconciler import LogReconciler
from lockstep_data_plane.resume.start_position import first_row
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_data_plane.wire.cluster import ClusterClient
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import MirroredTopic, PartitionProgress
from lockstep_runtime.util.errors import ClusterError

__all__ = ["Resumer", "newest"]


class Resumer:
    """What a slot's partitions have to know before they copy. Nothing here changes a log, but the row of a new
    chain."""

    def __init__(
        self,
        settings: FlowSettings,
        producer_id: int,
        source: ClusterClient,
        target: ClusterClient,
        control_writer: ControlTopicWriter,
        rows: Mapping[TopicPartition, PartitionProgress],
        waiting: Callable[[], Iterable[PartitionMachine]],
        transaction_runner: TransactionRunner,
    ) -> None:
        """`waiting`: the partitions that are about to resume, whose metadata is asked for together."""
        self._settings = settings
        self._producer_id = producer_id
        self._source = source
        self._target = target
        self._control_writer = control_writer
        self._rows = rows
        self._waiting = waiting
        self._transaction_runner = transaction_runner
        self._refreshing = SingleFlight(self._refresh)
        self._refreshing_target = SingleFlight(self._refresh_target)
        self._reconciler = LogReconciler(settings, source, target)
        self.gap_resolver = GapResolver(settings, source, target, control_writer, self._reconciler, transaction_runner)

    async def resume(self, partition: PartitionMachine, topic: MirroredTopic) -> tuple[PartitionProgress, LastAppend]:
        """The row to go on from and where our chain ends now; what a policy decided on the way is written down and
        acknowledged. Raises HaltPartition (somebody has to decide), RetriableError."""
        await self._metadata(partition)
        row = self._newest(partition)
        if row is not None and row.located:
            # Acknowledged before the first append: whoever is killed behind that leaves no row that claims to know.
            row = replace(row, located=False)
            await self._control_writer.write(row)
        if row is not None and row.begins:
            return await self._as_altered(partition, topic, row)
        if self._transaction_runner.wanted:
            return await self._reconciled(partition, topic, await self._fenced(partition, topic, row))
        if row is None:
            return await self._new(partition, topic)
        if row.producer_id != self._producer_id:
            row = await self._start_epoch(partition, topic, row)
        return await self._reconciled(partition, topic, row)

    async def located(self, partition: PartitionMachine) -> tuple[PartitionProgress, LastAppend] | None:
        """Where the copy of a partition ends that is to rest, as `look`; None where nothing was ever copied, or an
        operator has said where it begins. No policy decides anything here, nothing is begun, and the source is asked
        only where the target holds more than is written down. Raises HaltPartition where nobody can tell, and what
        passes."""
        await self._refreshing_target.done()
        row = self._newest(partition)
        if row is None or row.begins:
            return None
        if not partition.incarnation:
            partition.acked.told_before = row.upstream
        partition.acked.load(row)
        if row.transactional:
            row = await self._committed_row(partition, row)
            return row, LastAppend(row.sequence, row.downstream, others=row.others)
        there = partition.in_its_place()
        there.misnumbered = there.misnumbered or there is not partition  # who spreads by keys counts nothing past
        found = await self._reconciler.find_last_append(there, row)
        if not isinstance(found, FoundGap) and appended_since(row, found.sequence, found.others):
            await self._source.refresh([partition.topic])
            stands = await self._reconciler.reconcile(there, row)
            if not isinstance(stands, FoundGap):
                return stands
            found = stands
        if isinstance(found, FoundGap):
            raise HaltPartition(found.case, f"{found.text}; where the copy ends is not known until somebody decides")
        return row, found

    async def _committed_row(self, partition: PartitionMachine, row: PartitionProgress) -> PartitionProgress:
        """The row of a copy in transactions at its end: what was open has ended, and what was committed counts. Raises
        what passes."""
        producer, progress = await self._transaction_runner.fence(partition)
        if progress is not None and progress > row.upstream:
            row = replace(row, upstream=progress, upstream_epoch=-1)
        return replace(row, producer_id=producer.id, producer_epoch=producer.epoch, sequence=-1)

    async def _new(self, partition: PartitionMachine, topic: MirroredTopic) -> tuple[PartitionProgress, LastAppend]:
        """As `_begin`, where nothing is known of a former chain. The target is looked at before ours is written down:
        whoever has begun the partition a moment ago has written a row, which must not be overwritten by one that says
        less."""
        row = await self._first(partition, topic, await self._transaction_runner.progress(partition))
        stands = await self._reconciler.reconcile(partition, row)
        await self._control_writer.write(row)
        partition.acked.load(row)
        return await self._reconciled(partition, topic, row) if isinstance(stands, FoundGap) else stands

    async def _as_altered(
        self, partition: PartitionMachine, topic: MirroredTopic, told: PartitionProgress
    ) -> tuple[PartitionProgress, LastAppend]:
        """A new chain where an operator wants it to begin. What the target holds of the former one stays there and is
        not looked at: neither its end nor what was committed of it says where this one begins."""
        producer = None
        if self._transaction_runner.wanted or told.transactional:
            producer, _ = await self._transaction_runner.fence(partition)  # what was open ends uncommitted
        altered = told.begins == ALTERED
        known = told.upstream if altered else await self._transaction_runner.progress(partition)
        row = await self._first(partition, topic, known)
        used = told.producer_epoch - 1 if told.producer_id == self._producer_id else told.left_epoch
        row = _same_life(row, told)
        if producer is not None and self._transaction_runner.wanted:
            row = replace(
                row, transactional=True, producer_id=producer.id, producer_epoch=producer.epoch, left_epoch=used
            )
            # Progress first: from the moment the row says so, it is what counts.
            await self._control_writer.progress(partition.topic, partition.number, row.upstream)
        else:
            row = replace(row, producer_epoch=used + 1)
        await self._control_writer.write(row)
        partition.acked.load(row)
        return await self._reconciled(partition, topic, row)

    async def _reconciled(
        self, partition: PartitionMachine, topic: MirroredTopic, row: PartitionProgress
    ) -> tuple[PartitionProgress, LastAppend]:
        while True:
            if not partition.incarnation:
                partition.acked.load(row)
            found = await self._reconciler.reconcile(partition, row)
            if not isinstance(found, FoundGap):
                return found
            row = await self.gap_resolver.decided(partition, topic, row, found)

    async def _fenced(
        self, partition: PartitionMachine, topic: MirroredTopic, row: PartitionProgress | None
    ) -> PartitionProgress:
        """The row of a partition whose transactional id is ours from now on: what was open has ended, and committed
        progress says how far the copy is (`kafka-wire.md` §2, line 12). Where a chain without transactions came before,
        its end is found first, as if it were to go on."""
        if row is not None and not row.transactional:
            row = await self._ended(partition.in_its_place(), topic, row)
        if row is not None and not partition.in_one_log:
            row = replace(row, downstream=-1)
        producer, progress = await self._transaction_runner.fence(partition)
        if row is None or not row.transactional:
            if row is None:
                row = await self._first(partition, topic, progress)
            # Progress first: from the moment the row says so, it is what counts.
            await self._control_writer.progress(partition.topic, partition.number, row.upstream)
            row = replace(row, transactional=True, producer_id=producer.id, producer_epoch=producer.epoch, sequence=-1)
            await self._control_writer.write(row)
        if (
            progress is not None
            and progress > row.upstream
            and await self._reconciler.is_what_was_copied(partition, row)
        ):
            row = replace(row, upstream=progress, upstream_epoch=-1)
        return replace(row, producer_id=producer.id, producer_epoch=producer.epoch, sequence=-1)

    async def _ended(
        self, partition: PartitionMachine, topic: MirroredTopic, row: PartitionProgress
    ) -> PartitionProgress:
        """The row of a chain that is not to go on, at its very end. Nothing will be counted past in what follows it, so
        the records themselves tell where it ended."""
        partition.misnumbered = True
        row, end = await self._reconciled(partition, topic, row)
        left = row.producer_epoch if row.producer_id == self._producer_id else row.left_epoch
        return replace(row, downstream=end.downstream, left_epoch=left)

    async def _committed(self, partition: PartitionMachine, row: PartitionProgress) -> int:
        """How far a copy in transactions has got that is to go on without. Raises what passes."""
        _, progress = await self._transaction_runner.fence(partition)
        return max(row.upstream, -1 if progress is None else progress)

    def _newest(self, partition: PartitionMachine) -> PartitionProgress | None:
        """What is written down, unless we know better ourselves."""
        theirs = self._rows.get(partition.tp)
        return newest(row_after(partition), theirs) if partition.acked.is_loaded else theirs

    async def _start_epoch(
        self, partition: PartitionMachine, topic: MirroredTopic, former: PartitionProgress
    ) -> PartitionProgress:
        """A new chain, written down and acknowledged before its first append: from then on every append can be
        accounted for."""
        if former.transactional:
            row = await self._first(partition, topic, await self._committed(partition, former))
        else:
            former = await self._ended(partition, topic, former)
            row = await self._first(partition, topic, former.upstream)
        row = _same_life(replace(row, producer_epoch=former.left_epoch + 1), former)
        await self._control_writer.write(row)
        return row

    async def _first(self, partition: PartitionMachine, topic: MirroredTopic, known: int | None) -> PartitionProgress:
        """The row of a copy that begins behind upstream offset `known`; None: where the file says."""
        tp = partition.tp
        differs = await self._reconciler.recreated(partition, topic.source_topic_id, topic.target_topic_id)
        if differs is not None:
            raise ClusterError("", f"the {differs[0]} topic was created again a moment ago; topic-sync has to see it")
        row = await first_row(self._source, self._settings, tp, known, await self._reconciler.log_end(partition))
        return replace(
            row,
            producer_id=self._producer_id,
            source_topic_id=topic.source_topic_id,
            target_topic_id=topic.target_topic_id,
        )

    async def _metadata(self, partition: PartitionMachine) -> None:
        """Leaders of both sides, asked for again only if that was before this partition came to need them."""
        known = self._source.leader(partition.tp) is not None
        if partition.incarnation == 0 and known and self._target.leader(partition.target_tp):
            return
        await self._refreshing.done()

    async def _refresh(self) -> None:
        await self._source.refresh(p.topic for p in list(self._waiting()))
        await self._refresh_target()

    async def _refresh_target(self) -> None:
        await self._target.refresh(p.target_topic for p in list(self._waiting()))


def newest(ours: PartitionProgress, theirs: PartitionProgress | None) -> PartitionProgress:
    """Our own row, unless another slot has taken a decision since, or has begun the chain that we have not."""
    if theirs is None or theirs.producer_id != ours.producer_id:
        return ours
    further = (theirs.producer_epoch, theirs.begun) > (ours.producer_epoch, ours.begun)
    return theirs if further else ours


def _same_life(row: PartitionProgress, former: PartitionProgress) -> PartitionProgress:
    """The row of a new chain, with what is counted in the life of the partition."""
    counted_before = {key: getattr(former, key) for key in ("given_up", "target_lost", "quarantined", "gaps")}
    return replace(row, **counted_before)
