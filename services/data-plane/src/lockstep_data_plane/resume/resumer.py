"""The resume of a slot's partitions, and the rows that it writes (`kafka-wire.md` §2, `docs/internals/resume.md`)."""

from collections.abc import Mapping
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.admin.offset_admin import RESET
from lockstep_data_plane.core.evaluation import RefusedTransform, unavailable
from lockstep_data_plane.core.events import RowLoaded, Unplaced
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import FlowIds
from lockstep_data_plane.core.slot_io import SlotIO
from lockstep_data_plane.core.target_log.fencing import Fencing, ReadBackFence, SequenceFence, TransactionFence
from lockstep_data_plane.core.target_log.locate import Position
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.resume.evidence import EvidenceReader, first_offset
from lockstep_data_plane.resume.gap_resolver import GapResolver, HaltPartition, row_after
from lockstep_data_plane.resume.lost_row import LostRowFinder
from lockstep_data_plane.resume.resumed_rows import move_behind, newest_row, transform_change, with_present_transform
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_kafka.common.asyncio_util import uninterrupted
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.common.single_flight import SingleFlight
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_rules.offsets.gap_policy import GapCase, GapFound, decide_gap
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.data_plane_rows import LOST
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress


class Resumer:
    """The finder of the position from which each partition of a slot goes on.

    It appends no records of the source. It writes only rows and progress.
    """

    def __init__(
        self,
        settings: FlowSettings,
        ids: FlowIds,
        source: ClusterClient,
        target: ClusterClient,
        control_writer: ControlTopicWriter,
        rows: Mapping[TopicPartition, PartitionProgress],
        io: SlotIO,
        transaction_runner: TransactionRunner,
    ) -> None:
        """Begin without asking any cluster. `rows` has the newest progress of each partition."""
        self._settings = settings
        self._source = source
        self._target = target
        self._control_writer = control_writer
        self._rows = rows
        self._io = io
        self._transaction_runner = transaction_runner
        self._refreshing = SingleFlight(self._refresh)
        self._refreshing_target = SingleFlight(self._refresh_target)
        self._source_cluster_id = ids.source_cluster_id
        self._sequences = (ReadBackFence if settings.data_plane.read_back else SequenceFence)(ids.producer_id)
        self._fence: Fencing = TransactionFence() if transaction_runner.is_enabled else self._sequences
        self._evidence = EvidenceReader(settings, source, target)
        self._lost_rows = LostRowFinder(settings, ids.producer_id, source, target)
        self.source_answers = self._evidence.source_answers
        self.gap_resolver = GapResolver(source, target, control_writer, self._evidence, transaction_runner, io)

    async def resume(self, partition: PartitionState, topic: MirroredTopic) -> Position:
        """Return the row from which the copy goes on, and where our chain ends now.

        What a policy decides meanwhile is written and acknowledged.

        | the row | where the copy goes on |
        |---|---|
        | none, and the target holds nothing of ours | in a new chain behind MM2's progress, else where the file says |
        | none, and the target holds records of ours | where both logs prove it; otherwise the partition is in doubt |
        | altered, reset | in a new chain where the operator says, or as without a row; no former end is looked for |
        | of the other fence, or of another producer id | in a new chain behind the end of the former one |
        | of another version of the transform | likewise; in transactions behind what is committed |
        | of the flow's fence | in the same chain; in transactions behind what is committed. If committed progress was |
        | | lost, and the target holds records behind the row, the partition is in doubt |

        Raises:
            HaltPartition: Somebody has to decide.
            TransformUnavailable: Nothing evaluates the transform of the topic.
            RetriableError: A cluster does not answer or refuses a request.
        """
        await self._metadata(partition)
        row = self._newest(partition)
        if row is not None and self._settings.data_plane.read_back and not row.transactional:
            row = replace(row, read_back=True)  # the target dropped the producer id that these records were sent with
        if isinstance(partition.transform, RefusedTransform):
            self._io.step(partition, RowLoaded(row or replace(partition.acked.written, begins=RESET)))
            raise unavailable(partition.transform.name, partition.transform.reason)
        if row is not None and (row.located or row.beyond):
            # It is acknowledged before the first append, so a run that is killed later leaves no row that is `located`.
            row = replace(row, located=False, beyond=0)
            await uninterrupted(self._control_writer.write(row))
        differs = row is not None and row.transform != partition.transform_version
        if row is None or row.begins or not self._fence.owns(row) or (differs and not row.transactional):
            return await self._begin(partition, topic, row or replace(partition.acked.written, begins=RESET))
        if row.transactional:
            row = await self._row_behind_transactions(partition, topic, row)
            if differs:  # everything behind the row was aborted, so nothing is left of the former version
                row = await self._write_present_transform(partition, row)
        return await self._go_on(partition, topic, row)

    def changes_transform(self, partition: PartitionState) -> bool:
        """Return whether records were copied, and the next ones are made in another way."""
        row = self._newest(partition)
        return row is not None and row.producer_id >= 0 and row.transform != partition.transform_version

    async def located(self, partition: PartitionState, *, asks_source: bool) -> Position | Unplaced | None:
        """Return where the copy of a partition ends that will not be copied now, as `resume`.

        No policy decides anything here, and no chain begins. The source is asked only if `asks_source`, and if the
        target holds more than the row says. If the source does not answer, the result is `Unplaced`.

        Returns:
            None if nothing was ever copied, or an operator has set where the copy begins.

        Raises:
            HaltPartition: The end is unknown.
            RetriableError: The target does not answer or refuses a request.
        """
        await self._refreshing_target.run()
        row = self._newest(partition)
        if row is None or row.is_set:
            return None
        row = replace(row, beyond=0)
        self._io.step(partition, RowLoaded(row, at_rest=True))
        if row.begins == LOST:
            raise _copy_end_lost(partition)
        if row.transactional:
            fence, committed = await self._take_over(partition)
            if await self._transaction_runner.find_contradiction(partition, row, fence.producer_id) is not None:
                raise _copy_end_lost(partition)
            if committed is None and await self._lost_rows.find_committed_behind(partition, row) is not None:
                raise _copy_end_lost(partition)
            row = fence.take_over(move_behind(row, committed))
        compared = partition if row.transactional else partition.with_identity_routing()
        # A copy that spreads by keys counts nothing past. Nor does one whose records would now be made in another way:
        # what is judged is not what was appended.
        counts = compared is partition and row.transform == partition.transform_version
        end = await self._evidence.end(compared, row, counts=counts, asks_source=asks_source)
        if isinstance(end, GapFound):
            raise HaltPartition(end.case, end.halts(ReasonCode.COPY_END_UNKNOWN))
        if row.transactional:
            return Position(row, LastAppend.from_row(row))
        return await self._report_doubled(partition, row, end) if isinstance(end, Position) else end

    async def _report_doubled(self, partition: PartitionState, row: PartitionProgress, position: Position) -> Position:
        """Return the position, once the records that the target has twice behind the row are written and reported.

        Raises:
            RetriableError: The row could not be written.
        """
        count = position.row.doubled - row.doubled
        if count:
            await uninterrupted(self._control_writer.write(position.row))
            first, last = row.downstream + 1, position.row.downstream
            text = f"{count} records were appended twice, among the target's offsets {first} to {last}"
            name = partition.name
            self._control_writer.event("RecordsDoubled", name, f"{name}: {text}", records=count, first=first, last=last)
        return position

    async def _write_present_transform(self, partition: PartitionState, row: PartitionProgress) -> PartitionProgress:
        """Return the row of the same copy, whose next records get the present version of the transform.

        Raises:
            RetriableError: The row could not be written.
        """
        changed = with_present_transform(row, row, partition)
        await uninterrupted(self._write(partition, changed))
        self._report_transform(partition, row, changed)
        return changed

    def _report_transform(self, partition: PartitionState, former: PartitionProgress, row: PartitionProgress) -> None:
        """Report that the copy goes on with another version of the transform, if the former row was of a copy."""
        if former.producer_id < 0 or former.transform == row.transform:
            return
        name, old, new, first = partition.name, former.transform, row.transform, row.upstream + 1
        text = f"{name}: {transform_change(old, new, first)}"
        self._control_writer.event("TransformChanged", name, text, old=old, new=new, first=first)

    async def _go_on(
        self,
        partition: PartitionState,
        topic: MirroredTopic,
        row: PartitionProgress,
        *,
        counts: bool = True,
        unwritten: bool = False,
    ) -> Position:
        """Return where the copy goes on behind the row.

        If `unwritten`, the target is read before the row is written. Another slot may have begun the partition a moment
        ago and written a row. A row that says less must not overwrite that one.
        """
        while True:
            if not partition.incarnation and not unwritten:
                self._io.step(partition, RowLoaded(row))
            located = await self._evidence.position(partition, row, counts=counts)
            if unwritten:
                await uninterrupted(self._write(partition, row))
                unwritten = False
            if isinstance(located, Position):
                return await self._report_doubled(partition, row, located)
            row = await uninterrupted(self.gap_resolver.carry_out(partition, topic, row, located))

    async def _begin(self, partition: PartitionState, topic: MirroredTopic, former: PartitionProgress) -> Position:
        """Return where the copy goes on, as `_go_on`, in a new chain.

        The chain's row is acknowledged before its first append. From then on every append can be accounted for.
        """
        takes_over, fence, committed = self._transaction_runner.is_enabled, self._fence, None
        if former.begins == LOST:
            former = replace(former, producer_id=-1, begins=RESET)
        if not former.begins:
            if former.transactional:
                former = await self._row_behind_transactions(partition, topic, former)
            # Nothing behind this end will be counted past, so the records themselves have to say where it is.
            former, end = await self._go_on(partition.with_identity_routing(), topic, former, counts=False)
            former = replace(former, downstream=end.downstream if partition.routing.in_one_log else -1)
        if takes_over or (former.transactional and former.begins):
            claimed, committed = await self._take_over(partition)
            fence = claimed if takes_over else fence
        elif former.begins == RESET:
            committed = await self._transaction_runner.progress(partition)
        if former.producer_id < 0:
            recovered = await self._recover(partition, topic, former, committed, fence)
            if recovered is not None:
                return recovered
        goes_on = takes_over and not former.begins
        row = former if goes_on else await self._new_row(partition, topic, former, committed)
        if goes_on:
            row = with_present_transform(row, former, partition)
        elif not former.begins and self._fence.owns(former):  # only its transform is another one
            row = replace(row, upstream_epoch=former.upstream_epoch, skips=former.skips, open_run=former.open_run)
        row = fence.begin(row, self._sequences.last_used_epoch(former))
        if takes_over:
            # Progress is written first, because it counts as soon as the row is transactional.
            await self._control_writer.progress.write(partition.tp, row.upstream)
        elif former.producer_id < 0:
            return await self._go_on(partition, topic, row, unwritten=True)
        await uninterrupted(self._write(partition, row))
        self._report_transform(partition, former, row)
        return await self._go_on(
            partition, topic, await self._row_behind_committed(partition, row, committed) if goes_on else row
        )

    async def _recover(
        self,
        partition: PartitionState,
        topic: MirroredTopic,
        former: PartitionProgress,
        committed: int | None,
        fence: Fencing,
    ) -> Position | None:
        """Return where the copy of a partition goes on whose row was lost with the state topic (decision 0083).

        Returns:
            None if the target holds no record of the copy, or those of another slot whose row has yet to arrive.

        Raises:
            HaltPartition: Nothing proves where the copy ends.
            RetriableError: A cluster does not answer or refuses a request.
        """
        append = await self._lost_rows.find_unaccounted(partition, transactional=committed is None)
        if append is None:
            return None
        new_row = await self._new_row(partition, topic, former, committed)
        row = await self._lost_rows.rebuild(partition, new_row, append, committed)
        if row is not None and fence.owns(row):
            await uninterrupted(self._write(partition, row))
            return await self._go_on(partition, topic, row)
        if row is not None:
            return await self._begin(partition, topic, row)
        if fence is self._sequences and append.producer_id == self._sequences.producer_id:
            return None
        row = fence.begin(new_row, -1)
        gap = await self._gap_in_doubt(partition, row, append.sentence(partition.name, partition.target_name))
        if gap.decision is None:
            await uninterrupted(self._write(partition, replace(row, begins=LOST)))
        row = await uninterrupted(self.gap_resolver.carry_out(partition, topic, row, gap))
        return await self._go_on(partition, topic, row)

    async def _gap_in_doubt(self, partition: PartitionState, row: PartitionProgress, text: str) -> GapFound:
        """Return the gap of a copy whose end nothing proves, with the policy's decision where it goes on."""
        ends = await self._evidence.log_ends(partition.tp, row)
        gap = GapFound(case=GapCase.DOUBT, text=text, next_upstream=row.upstream + 1, start=ends.start, end=ends.end)
        return replace(gap, decision=decide_gap(gap, self._evidence.policy(partition.topic)(gap.case)))

    async def _new_row(
        self, partition: PartitionState, topic: MirroredTopic, former: PartitionProgress, committed: int | None
    ) -> PartitionProgress:
        """Return a row without appends.

        It begins behind the end of the former sequence, or where an operator has set it. Otherwise it begins behind
        committed progress, and without that where the configuration says.
        """
        begins_behind = committed
        if former.begins != RESET:
            begins_behind = former.upstream if former.begins else move_behind(former, committed).upstream
        differs = await self._evidence.recreated(partition, topic.source_topic_id, topic.target_topic_id)
        if differs is not None:
            raise ClusterError("", f"the {differs[0]} topic was created again a moment ago; topic-sync has to see it")
        if begins_behind is None:
            begins_behind = await first_offset(self._source, self._settings, partition.tp) - 1
        row = PartitionProgress(
            topic=partition.topic,
            partition=partition.number,
            upstream=begins_behind,
            downstream=max(-1, await self._evidence.log_end(partition) - 1),
            source_topic_id=topic.source_topic_id,
            target_topic_id=topic.target_topic_id,
            open_run=former.open_run if former.skips_ahead else (),  # to be written again in this epoch
            given_up=former.given_up,
            target_lost=former.target_lost,
            quarantined=former.quarantined,
            doubled=former.doubled,
            gaps=former.gaps,
        )
        return with_present_transform(row, former, partition)

    async def _take_over(self, partition: PartitionState) -> tuple[TransactionFence, int | None]:
        """Take over the partition's transactional id, which ends its open transaction.

        Returns:
            The fence under the id, and the upstream offset of the committed progress; None: there is none.

        Raises:
            RetriableError: The target does not answer or refuses a request.
        """
        producer, committed = await self._transaction_runner.fence(partition)
        return TransactionFence(*producer), committed

    async def _row_behind_transactions(
        self, partition: PartitionState, topic: MirroredTopic, row: PartitionProgress
    ) -> PartitionProgress:
        """Return the row of a copy in transactions, behind what is committed and under the id that is taken over.

        Raises:
            HaltPartition: Committed progress was lost, and the target holds records behind the row.
            RetriableError: A cluster does not answer or refuses a request.
        """
        fence, committed = await self._take_over(partition)
        doubt = await self._transaction_runner.find_contradiction(partition, row, fence.producer_id)
        if committed is None and (append := await self._lost_rows.find_committed_behind(partition, row)) is not None:
            doubt = append.sentence(partition.name, partition.target_name)
        if doubt is not None:
            self._io.step(partition, RowLoaded(row))
            gap = await self._gap_in_doubt(partition, row, doubt)
            row = await self.gap_resolver.carry_out(partition, topic, row, gap)
            committed = await self._transaction_runner.progress(partition)  # as the policy has written it
        row = await self._row_behind_committed(partition, row, committed)
        return fence.take_over(row if partition.routing.in_one_log else replace(row, downstream=-1))

    async def _row_behind_committed(
        self, partition: PartitionState, row: PartitionProgress, committed: int | None
    ) -> PartitionProgress:
        """Return the row behind what is committed, if the source's log up to the row is the one that was copied.

        Otherwise the row stays as it is.
        """
        further = move_behind(row, committed)
        same_log = further is row or (await self._evidence.log_ends(partition.tp, row)).agreed > row.upstream
        return further if same_log else row

    async def _write(self, partition: PartitionState, row: PartitionProgress) -> None:
        await self._control_writer.write(row)
        self._io.step(partition, RowLoaded(row))

    def _newest(self, partition: PartitionState) -> PartitionProgress | None:
        """Return the newest written row, or the partition's own row if that says more."""
        read_row = self._rows.get(partition.tp)
        return newest_row(row_after(partition), read_row) if partition.acked.is_loaded else read_row

    async def _metadata(self, partition: PartitionState) -> None:
        """Require metadata of both sides that is not older than the partition's need of it.

        Raises:
            BrokerUnreachable: The source is another cluster than the one that was copied.
        """
        has_leader = self._source.leader(partition.tp) is not None
        if partition.incarnation or not has_leader or not self._target.leader(partition.target_tp):
            await self._refreshing.run()
        copied_id, present_id = self._source_cluster_id, self._source.cluster_id
        if copied_id and present_id and present_id != copied_id:
            text = f"cluster {self._source.alias} is another one: its id is {present_id}, and {copied_id} was copied"
            raise BrokerUnreachable(text, self._source.alias)

    async def _refresh(self) -> None:
        await self._source.refresh(p.topic for p in list(self._io.resuming()))
        await self._refresh_target()

    async def _refresh_target(self) -> None:
        await self._target.refresh(p.target_topic for p in list(self._io.resuming()))


def _copy_end_lost(partition: PartitionState) -> HaltPartition:
    cause = ReasonCode.COPY_END_LOST.to_reason(partition=partition.name, case=GapCase.DOUBT.value)
    return HaltPartition(GapCase.DOUBT, cause)
