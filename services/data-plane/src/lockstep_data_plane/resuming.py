"""Where a partition goes on, looked up on both clusters: leaders, topic ids, both logs' ends, our chain's end
(`wire.md` §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.altering import ALTERED
from lockstep_data_plane.batches.stamp import EPOCHS
from lockstep_data_plane.begin import first_row
from lockstep_data_plane.cluster import Cluster, TopicPartition
from lockstep_data_plane.gaps import Case, Found, Policies, counted, decide, goes_back, lost_on_target
from lockstep_data_plane.ledger import Ledger
from lockstep_data_plane.partition import Partition
from lockstep_data_plane.provenance import appended_since
from lockstep_data_plane.resume import NotReplicated, chain_end
from lockstep_data_plane.shared import Shared
from lockstep_data_plane.standing import Standing
from lockstep_data_plane.tail import ChainEnd, InDoubt
from lockstep_data_plane.transacting import Transacting
from lockstep_protocol.state import MirroredTopic, PartitionProgress
from lockstep_runtime.errors import ClusterTrouble

__all__ = ["Halt", "Resuming", "newest"]


RECREATED = (Case.SOURCE_RECREATED, Case.TARGET_RECREATED)
"""What offsets meant before means nothing any more."""

WENT_ON = {"skip": "GapSkipped", "restart": "CopyRestarted", "progress": "ResumedWithDoubt"}
"""The event that tells of a decision."""


class Halt(RuntimeError):
    """The partition must not go on until somebody decides; the message says why and what to do, `case` is the word for
    it."""

    def __init__(self, case: Case, sentence: str) -> None:
        super().__init__(sentence)
        self.case = case


class Resuming:
    """What a slot's partitions have to know before they copy. Nothing here changes a log, but the row of a new
    chain."""

    def __init__(
        self,
        settings: FlowSettings,
        producer_id: int,
        source: Cluster,
        target: Cluster,
        ledger: Ledger,
        rows: Mapping[TopicPartition, PartitionProgress],
        waiting: Callable[[], Iterable[Partition]],
        transacting: Transacting,
    ) -> None:
        """`waiting`: the partitions that are about to resume, whose metadata is asked for together."""
        self._settings = settings
        self._producer_id = producer_id
        self._source = source
        self._target = target
        self._ledger = ledger
        self._rows = rows
        self._waiting = waiting
        self._transacting = transacting
        self._refreshing = Shared(self._refresh)
        self._standing = Standing(settings, source, target)

    async def look(self, partition: Partition, topic: MirroredTopic) -> tuple[PartitionProgress, ChainEnd]:
        """The row to go on from and where our chain ends now; what a policy decided on the way is written down and
        acknowledged. Raises Halt (somebody has to decide), and what passes: BrokerUnreachable, kafka_error,
        NotReplicated, ClusterTrouble."""
        await self._metadata(partition)
        row = self._newest(partition)
        if row is not None and row.begins:
            return await self._as_told(partition, topic, row)
        if self._transacting.wanted:
            return await self._stand(partition, topic, await self._fenced(partition, topic, row))
        if self._transacting.marks:
            return await self._marked(partition, topic, row)
        if row is None:
            return await self._new(partition, topic)
        if row.producer_id != self._producer_id:
            row = await self._begin(partition, topic, row)
        return await self._stand(partition, topic, row)

    async def _new(self, partition: Partition, topic: MirroredTopic) -> tuple[PartitionProgress, ChainEnd]:
        """As `_begin`, where nothing is known of a former chain. The target is looked at before ours is written down:
        whoever has begun the partition a moment ago has written a row, which must not be overwritten by one that says
        less."""
        row = await self._first(partition, topic, await self._transacting.progress(partition))
        stands = await self._standing.look(partition, row)
        await self._ledger.write(row)
        partition.durable.know(row)
        return await self._stand(partition, topic, row) if isinstance(stands, Found) else stands

    async def _as_told(
        self, partition: Partition, topic: MirroredTopic, told: PartitionProgress
    ) -> tuple[PartitionProgress, ChainEnd]:
        """A new chain where an operator wants it to begin. What the target holds of the former one stays there and is
        not looked at: neither its end nor what was committed of it says where this one begins."""
        producer = None
        if self._transacting.marks and not self._transacting.wanted:
            producer = await self._transacting.mark(partition)
        elif self._transacting.wanted or told.transactional:
            producer, _ = await self._transacting.fence(partition)  # what was open ends uncommitted
        altered = told.begins == ALTERED
        known = told.upstream if altered else await self._transacting.progress(partition)
        row = await self._first(partition, topic, known)
        used = told.producer_epoch - 1 if told.producer_id == self._producer_id else told.left_epoch
        row = _same_life(row, told)
        if producer is not None and (self._transacting.wanted or self._transacting.marks):
            row = replace(row, producer_id=producer.id, producer_epoch=producer.epoch, left_epoch=used)
            row = replace(row, transactional=self._transacting.wanted)
        else:
            row = replace(row, producer_epoch=used + 1)
        if row.transactional:
            # Progress first: from the moment the row says so, it is what counts.
            await self._ledger.progress(partition.topic, partition.number, row.upstream)
        await self._ledger.write(row)
        partition.durable.know(row)
        return await self._stand(partition, topic, row)

    async def _stand(
        self, partition: Partition, topic: MirroredTopic, row: PartitionProgress
    ) -> tuple[PartitionProgress, ChainEnd]:
        while True:
            if not partition.incarnation:
                partition.durable.know(row)
            found = await self._standing.look(partition, row)
            if not isinstance(found, Found):
                return found
            row = await self._decide(partition, topic, row, found)

    async def _fenced(
        self, partition: Partition, topic: MirroredTopic, row: PartitionProgress | None
    ) -> PartitionProgress:
        """The row of a partition whose transactional id is ours from now on: what was open has ended, and committed
        progress says how far the copy is (`wire.md` §2, line 12). Where a chain without transactions came before, its
        end is found first, as if it were to go on."""
        if row is not None and not row.transactional:
            row, _ = await self._ended(partition.in_its_place(), topic, row)
        if row is not None and not partition.in_one_log:
            row = replace(row, downstream=-1)
        producer, progress = await self._transacting.fence(partition)
        if row is None or not row.transactional:
            if row is None:
                row = await self._first(partition, topic, progress)
            # Progress first: from the moment the row says so, it is what counts.
            await self._ledger.progress(partition.topic, partition.number, row.upstream)
            row = replace(row, transactional=True, producer_id=producer.id, producer_epoch=producer.epoch, sequence=-1)
            await self._ledger.write(row)
        if progress is not None and progress > row.upstream and await self._standing.is_what_was_copied(partition, row):
            row = replace(row, upstream=progress, upstream_epoch=-1)
        return replace(row, producer_id=producer.id, producer_epoch=producer.epoch, sequence=-1)

    async def _marked(
        self, partition: Partition, topic: MirroredTopic, row: PartitionProgress | None
    ) -> tuple[PartitionProgress, ChainEnd]:
        """A new chain behind a marker that fences whoever had the partition, whatever the target has forgotten of the
        former one, for as long as it remembers the marker (`lockstep.fence=marker`)."""
        committed = await self._committed(partition, row) if row is not None and row.transactional else None
        producer = await self._transacting.mark(partition)
        ended = None
        if row is None:
            row = await self._first(partition, topic, await self._transacting.progress(partition))
            row, _ = await self._ended(partition, topic, replace(row, producer_id=producer.id))
        elif committed is not None:
            row = _same_life(replace(await self._first(partition, topic, committed), left_epoch=row.left_epoch), row)
        else:
            row, ended = await self._ended(partition, topic, row)
        end = await self._target.end_offset(partition.target_tp) - 1
        if ended is not None and ended.strangers and not partition.others_append:
            # Whoever had the partition may be among them: a leader that has forgotten the last marker let it in.
            text = (
                f"somebody else wrote {ended.strangers} records behind our last one, before the marker at offset {end}"
            )
            name = partition.target_name
            await self._ledger.event("ForeignWrite", name, f"{name}: {text}", records=ended.strangers, before=end)
        row = replace(
            row, producer_id=producer.id, producer_epoch=producer.epoch, sequence=-1, downstream=end, upstream_epoch=-1
        )
        await self._ledger.write(row)
        return row, ChainEnd(-1, end)

    async def _ended(
        self, partition: Partition, topic: MirroredTopic, row: PartitionProgress
    ) -> tuple[PartitionProgress, ChainEnd]:
        """The row of a chain that is not to go on, at its very end. Nothing will be counted past in what follows it, so
        the records themselves tell where it ended."""
        partition.misnumbered = True
        row, end = await self._stand(partition, topic, row)
        left = row.producer_epoch if row.producer_id == self._producer_id else row.left_epoch
        return replace(row, downstream=end.downstream, left_epoch=left), end

    async def _committed(self, partition: Partition, row: PartitionProgress) -> int:
        """How far a copy in transactions has got that is to go on without. Raises what passes."""
        _, progress = await self._transacting.fence(partition)
        return max(row.upstream, -1 if progress is None else progress)

    def _newest(self, partition: Partition) -> PartitionProgress | None:
        """What is written down, unless we know better ourselves."""
        theirs = self._rows.get(partition.tp)
        return newest(_going_on(partition), theirs) if partition.durable.known else theirs

    async def _begin(self, partition: Partition, topic: MirroredTopic, former: PartitionProgress) -> PartitionProgress:
        """A new chain, written down and acknowledged before its first append: from then on every append can be
        accounted for."""
        if former.transactional:
            row = await self._first(partition, topic, await self._committed(partition, former))
        else:
            former, _ = await self._ended(partition, topic, former)
            row = await self._first(partition, topic, former.upstream)
        row = _same_life(replace(row, producer_epoch=former.left_epoch + 1), former)
        await self._ledger.write(row)
        return row

    async def _first(self, partition: Partition, topic: MirroredTopic, known: int | None) -> PartitionProgress:
        """The row of a copy that begins behind upstream offset `known`; None: where the file says."""
        tp = partition.tp
        differs = await self._standing.recreated(partition, topic.source_topic_id, topic.target_topic_id)
        if differs is not None:
            raise ClusterTrouble("", f"the {differs[0]} topic was created again a moment ago; topic-sync has to see it")
        row = await first_row(self._source, self._settings, tp, known, await self._log_end(partition))
        return replace(
            row,
            producer_id=self._producer_id,
            source_topic_id=topic.source_topic_id,
            target_topic_id=topic.target_topic_id,
        )

    async def _decide(
        self, partition: Partition, topic: MirroredTopic, row: PartitionProgress, found: Found
    ) -> PartitionProgress:
        """What the file's policies make of it: the row to go on from, acknowledged before anything is appended after
        it. Raises Halt."""
        plane, name = self._settings.data_plane, partition.name
        policies = Policies(
            gap=plane.on_gap.of(partition.topic),
            recreate=plane.on_recreate.of(partition.topic),
            doubt=plane.on_doubt.of(partition.topic),
        )
        if found.on_target and partition.in_one_log:
            found = replace(found, held=row.downstream, target_end=await self._log_end(partition) + 1)
        await self._ledger.event("GapFound", name, f"{name}: {found.text}", **found.facts())
        decision = decide(found, policies)
        key, _ = policies.of(found.case)
        if decision is None:
            raise Halt(found.case, f"{found.text}; nothing is copied until somebody decides: see {key}")
        row = await self.new_epoch(partition, row, decision.begin, found.epoch)
        row = replace(
            row,
            source_topic_id=self._source.topic_id(partition.tp) or topic.source_topic_id,
            target_topic_id=self._target.topic_id(partition.target_tp) or topic.target_topic_id,
            open_run=row.open_run if found.case not in RECREATED else (),
            gaps=counted(row.gaps, found.case),
            given_up=row.given_up + (decision.lost[1] - decision.lost[0] + 1 if decision.lost else 0),
            target_lost=row.target_lost + lost_on_target(found, decision),
        )
        committed = await self._transacting.progress(partition) if row.transactional else None
        taken_back = goes_back(committed, decision)
        if taken_back:
            await self._ledger.progress(partition.topic, partition.number, row.upstream)
        await self._ledger.write(row)
        partition.durable.know(row)
        text, facts = decision.text(key), decision.facts()
        await self._ledger.event(
            WENT_ON[decision.word], name, f"{name}: {text}", case=found.case.value, begin=decision.begin, **facts
        )
        if row.transactional and not taken_back:
            await self._ledger.progress(partition.topic, partition.number, row.upstream)
        return row

    async def passing_over(self, partition: Partition, ranges: tuple[tuple[int, int], ...]) -> PartitionProgress | None:
        """The row with which a drained partition goes on behind what was refused; None where the target's log has got
        further than we know, so that it has to be read first. Raises Halt and what passes."""
        row = _going_on(partition)
        skips = tuple(sorted({*row.skips, *ranges}))
        quarantined = row.quarantined + len(ranges)
        if row.transactional:
            return replace(row, skips=skips, quarantined=quarantined)
        target_tp = partition.target_tp
        await self._target.refresh([partition.target_topic])
        try:
            shared = partition.others_append
            chain = await chain_end(self._target, target_tp, row, partition.traces.ours, shared=shared)
        except InDoubt as exc:
            raise NotReplicated(str(exc)) from exc
        if appended_since(row, chain.sequence, chain.others):
            return None
        found = await self.new_epoch(partition, row, row.upstream + 1)
        return replace(found, upstream_epoch=row.upstream_epoch, skips=skips, quarantined=quarantined)

    async def new_epoch(
        self, partition: Partition, row: PartitionProgress, begin: int, known: int = -1
    ) -> PartitionProgress:
        """The row of a chain that begins anew, at upstream offset `begin`: an epoch that the target has not seen fences
        whoever still follows the old mapping; a transactional id was fenced already. Raises Halt when there is none
        left, and what passes."""
        epoch = row.producer_epoch if row.transactional else max(row.producer_epoch, known) + 1
        if epoch > EPOCHS:
            raise Halt(Case.DOUBT, f"our producer id has no epoch left in {partition.target_name}")
        return replace(
            row,
            upstream=begin - 1,
            upstream_epoch=-1,
            downstream=await self._log_end(partition),
            producer_epoch=epoch,
            sequence=-1,
            others=(),
            skips=(),
        )

    async def _log_end(self, partition: Partition) -> int:
        """The last offset of the log that tells how far the copy is; -1 where none does. Raises what passes."""
        return await self._target.end_offset(partition.target_tp) - 1 if partition.in_one_log else -1

    async def _metadata(self, partition: Partition) -> None:
        """Leaders of both sides, asked for again only if that was before this partition came to need them."""
        known = self._source.leader(partition.tp) is not None
        if partition.incarnation == 0 and known and self._target.leader(partition.target_tp):
            return
        await self._refreshing.done()

    async def _refresh(self) -> None:
        resuming = list(self._waiting())
        await self._source.refresh(p.topic for p in resuming)
        await self._target.refresh(p.target_topic for p in resuming)


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


def _going_on(partition: Partition) -> PartitionProgress:
    """Its row, without what may have stopped it."""
    return replace(partition.row(), phase="copying", reason="", case="")
