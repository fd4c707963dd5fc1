"""The edge around `machine.py`: what a slot does with what it fetches for its partitions, and with the answers
to what it appends.

One task tends each partition (`partition_task.py`). Batches and answers are handled in callbacks, without a task in
between, because at one record a batch each switch costs more than the copy."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.core.events import Acked, AcksDue, Failed, Fetched, Leave, PartitionEvent, Ready, TopicChanged
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.provenance import NO_PROVENANCE, FlowIds
from lockstep_data_plane.core.routing import IdentityRouting, KeyedRouting
from lockstep_data_plane.fetch.fetch_request import Delivery
from lockstep_data_plane.fetch.fetcher import Fetcher
from lockstep_data_plane.produce.sender import AnsweredBatch, Sender
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.progress.event_reporter import EventReporter
from lockstep_data_plane.provenance.origin_lookup import OriginLookup
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.resume.resumer import Resumer
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_data_plane.slot.error_handler import ErrorHandler
from lockstep_data_plane.slot.partition_task import PartitionTasks
from lockstep_data_plane.slot.slot_clusters import connect_clusters
from lockstep_data_plane.slot.target_limits import target_limits
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_runtime.state.unreadable_records import PassOver
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress

COPYING = Phase.COPYING
"""A member of an enum is looked up by a call; this one is needed for each batch."""

CHECK_INTERVAL_S = 0.5
"""How often silent brokers are looked for."""


class SlotEngine:
    """Copies the partitions of one slot: owns them, the connections to both clusters, and the tasks between them."""

    def __init__(
        self,
        settings: FlowSettings,
        ids: FlowIds,
        control_writer: ControlTopicWriter,
        troubles: FailureTracker,
        topics: Mapping[str, MirroredTopic],
        rows: Mapping[TopicPartition, PartitionProgress],
        find_runs: Callable[[TopicPartition], Iterable[OffsetRuns]],
        pass_over: PassOver,
        *,
        waits: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take what the engine asks. `find_runs`: the present rows of a partition's offset runs. `waits`: whether
        nothing is to be fetched now."""
        self._settings = settings
        self._log = FlowLog("data-plane", settings.flow)
        self._plane = settings.data_plane
        self._keeps_names = settings.keeps_names
        self._control_writer = control_writer
        self.partitions: dict[TopicPartition, PartitionMachine] = {}
        self._moved: set[PartitionMachine] = set()
        self.appended = self.appended_bytes = 0
        """Records acknowledged by the target in this run, and bytes of their batches."""
        self._gathering: set[PartitionMachine] = set()
        """Some of their batches are acknowledged and not counted yet."""
        self._changes: dict[PartitionMachine, asyncio.Event] = {}
        self.others_end_by: float | None = None
        """Until when, by the loop's clock, a run that was cut off may append: copies end behind that."""
        self._source, self._target = connect_clusters(settings, control_writer.slot)
        self._reporter = EventReporter(settings, control_writer, troubles, self._source, self._target)
        recompress = self._plane.compression.recompress
        self._error_handler = ErrorHandler(self._source, self._target, self._reporter, recompress=recompress)
        self._transaction_runner = TransactionRunner(settings, self._target, self._step_and_send, pass_over)
        self._resumer = Resumer(
            settings,
            ids,
            self._source,
            self._target,
            control_writer,
            rows,
            lambda: [p for p in self.partitions.values() if p.phase is Phase.RESUMING],
            self._transaction_runner,
        )
        self._origins = OriginLookup(
            settings,
            ids,
            self._source,
            self._target,
            control_writer,
            deliver=self._classify,
            delivered=self._with_provenance,
            trouble=partial(self._reporter.slot_trouble, "provenance"),
            pass_over=pass_over,
        )
        self._sender = Sender(self._target, self._on_answers)
        self._fetcher = Fetcher(
            self._source,
            self._plane,
            is_held_back=lambda partition: waits() or self._origins.holds(partition),
            on_fetched=self._on_fetched,
            on_delivered=self._sender.pump,
            on_trouble=self._on_fetch_lost,
        )
        self._partition_tasks = PartitionTasks(
            plane=self._plane,
            target=self._target,
            topics=topics,
            find_runs=find_runs,
            control_writer=control_writer,
            reporter=self._reporter,
            resumer=self._resumer,
            transaction_runner=self._transaction_runner,
            fetcher=self._fetcher,
            sender=self._sender,
            changes=self._changes,
            others_end_by=lambda: self.others_end_by or 0.0,
        )

    @property
    def held_bytes(self) -> int:
        """Bytes fetched and not yet acknowledged."""
        return self._fetcher.budget.held

    @property
    def link_bytes(self) -> tuple[tuple[str, str, str, int], ...]:
        """As `SlotStatus.link_bytes`."""
        return tuple((c.alias, *total) for c in (self._source, self._target) for total in c.links.totals())

    async def close(self) -> None:
        """End fetching and producing. What is in flight is not awaited: a drained slot has nothing in flight."""
        await self._transaction_runner.close()
        await self._fetcher.close()
        await self._origins.close()
        await self._source.close()
        await self._target.close()

    def share_rates(self, mine: Mapping[str, int], everywhere: Mapping[str, int]) -> None:
        """Share limits of bytes a second by partitions of each topic: `mine` are this slot's, of those `everywhere`."""
        self._fetcher.schedule.rates.share(mine, everywhere)

    def check(self) -> None:
        """Raise what ended a fetch by mistake. Report what clusters turned out not to support, and when brokers slow us
        down. To be called every now and then."""
        if (crash := self._fetcher.crashed() or self._origins.crashed()) is not None:
            raise crash
        self._reporter.report_clusters()

    async def end_silent(self) -> None:
        """Until it is cancelled: ends connections whose broker went silent. A task of its own, because the writer of
        progress may be waiting for that very broker."""
        while True:
            self._fetcher.end_stuck()
            self._sender.end_stuck()
            await asyncio.sleep(CHECK_INTERVAL_S)

    def wake(self) -> None:
        """Fetch again, if `waits` was why nothing was."""
        self._fetcher.wake()

    def is_resuming(self, tp: TopicPartition) -> bool:
        """Return whether it is still unknown what the target's log has of a partition that is tended."""
        partition = self.partitions.get(tp)
        return partition is None or partition.phase in (Phase.RESUMING, Phase.SETTLING, Phase.LOCATING)

    async def source_answers(self, tp: TopicPartition) -> bool:
        """Return whether the source answers about a partition. One that is gone holds up nothing."""
        return await self._resumer.source_answers(tp)

    def moved(self) -> Sequence[PartitionMachine]:
        """Those that may have something new to write down since this was asked last, or that lag: thousands at rest are
        not among them."""
        gathering, self._gathering = self._gathering, set()
        for partition in gathering:
            self._step(partition, AcksDue(now_ms()))
        moved = list(self._moved)
        self._moved = {partition for partition in moved if partition.lag}
        return moved

    def remove(self, tp: TopicPartition) -> None:
        """The partition is released and written down."""
        partition = self.partitions.pop(tp, None)
        if partition is not None:
            self._moved.discard(partition)
            self._gathering.discard(partition)
            self._changes.pop(partition, None)
            self._control_writer.remove_partition(partition)
            self._reporter.gone(partition)
            self._origins.remove(partition)
            self._fetcher.set_held(partition, 0)

    def leave(self, tp: TopicPartition, rests: str = "", *, goes_on: bool = False) -> None:
        """The partition is to leave. Its batches in flight are awaited, and where they ended in the target's log is
        found; then it is released. `rests`: why it is not copied then, in a word that its progress has. `goes_on`:
        another slot copies it at once, and finds that by itself."""
        if (partition := self.partitions.get(tp)) is not None:
            before = partition.leaving, partition.locates
            in_doubt = self.others_end_by is not None and not self._plane.read_back  # which has waited for their end
            self._happen(partition, Leave(rests, goes_on=goes_on, in_doubt=in_doubt))
            if (partition.leaving, partition.locates) != before:
                self._changes[partition].set()

    def topic_changed(self, topic: MirroredTopic) -> None:
        """A topic's row came in: its limits count from now on. A partition whose topic is another one now is examined
        again before it continues."""
        now = topic.source_topic_id, topic.target_topic_id, topic.target_partitions
        event = TopicChanged(target_limits(self._plane, topic, self._error_handler.refused_codecs), *now)
        for partition in self.partitions.values():
            if partition.topic == topic.source_topic:
                self._happen(partition, event)

    # -- one partition -------------------------------------------------------------------------------------------------

    async def tend(self, tp: TopicPartition, topic: MirroredTopic, *, rests: str | None = None) -> None:
        """See the partition through its phases until it is released. `rests`: it is not to be copied; where its copy
        ends is found, and then it is released with this word."""
        partition = PartitionMachine(
            *tp,
            topic.target_topic,
            self._plane.offset_lag_max,
            routing=KeyedRouting(tp[1]) if self._plane.by_key else IdentityRouting(tp[1]),
            limits=target_limits(self._plane, topic, self._error_handler.refused_codecs),
            provenance=self._origins if self._origins.concerns(tp[0], topic.target_topic) else NO_PROVENANCE,
        )
        self.partitions[tp] = partition
        self._control_writer.add_partition(partition)
        self._changes[partition] = asyncio.Event()
        if rests is not None:
            self.leave(tp, rests)
        await self._partition_tasks.tend(partition, self._on_turn)

    def _on_turn(self, partition: PartitionMachine) -> None:
        self._moved.add(partition)
        self._update_held(partition)

    # -- events in, I/O out --------------------------------------------------------------------------------------------

    def _happen(self, partition: PartitionMachine, event: PartitionEvent) -> None:
        """As `_step`; then the partition's transaction may be due, or one is to be opened."""
        self._step(partition, event)
        self._transaction_runner.update(partition)

    def _step_and_send(self, partition: PartitionMachine, event: PartitionEvent) -> None:
        if self._step(partition, event).appends:
            self._sender.pump()

    def _step(self, partition: PartitionMachine, event: PartitionEvent) -> Ready:
        """Let the event happen, and do what is to be done then."""
        before = partition.phase
        waited_for = before is not COPYING and not partition.quiet
        ready = partition.step(event)
        self._follow(partition, ready)
        if ready.phase is not before or (waited_for and partition.quiet):
            self._changes[partition].set()
        return ready

    def _follow(self, partition: PartitionMachine, ready: Ready) -> None:
        if ready.counted:
            self._count(partition, ready.counted)
        if ready.fetch_from is None:
            self._fetcher.detach(partition)
        if ready.appends:
            self._sender.ready(partition)
        if ready.persist:
            self._moved.add(partition)
        if ready.report:
            self._reporter.report(partition, ready.report)
        self._update_held(partition)

    def _count(self, partition: PartitionMachine, acks: Sequence[Ack]) -> None:
        """What the target has acknowledged counts for the slot."""
        self._gathering.discard(partition)
        if not self.appended:
            self._log.debug("first records", partition.target_name)
        for ack in acks:
            self.appended += ack.outgoing.count
            self.appended_bytes += ack.size
        self._moved.add(partition)
        if self._control_writer.syncs is not None and partition.in_one_log:
            self._control_writer.syncs.acknowledged(partition.tp, acks)
        self._reporter.well(partition)

    # -- between fetch and answer --------------------------------------------------------------------------------------

    def _on_fetched(self, delivery: Delivery) -> None:
        if delivery.partition.provenance is self._origins and self._origins.hold(delivery):
            self._update_held(delivery.partition)
        else:
            self._classify(delivery)

    def _update_held(self, partition: PartitionMachine) -> None:
        """To be called whenever what the partition holds may be another size."""
        self._fetcher.set_held(partition, partition.bytes_held + self._origins.bytes_held(partition))

    def _with_provenance(self, partition: PartitionMachine) -> None:
        self._update_held(partition)
        self._sender.pump()

    def _classify(self, delivery: Delivery) -> None:
        p, fetched = delivery.partition, delivery.fetched
        if not p.awaits(delivery.incarnation):
            return
        if fetched.code:
            self._happen(p, self._error_handler.on_fetch_error(p, fetched.code))
            return
        committed = self._plane.isolation_level == "read_committed"
        end = fetched.last_stable if committed else fetched.high_watermark
        aborted = AbortedTransactions(fetched.aborted)
        size = len(fetched.records)
        self._happen(p, Fetched(delivery.incarnation, delivery.batches, aborted, end, size, now_ms()))
        if not delivery.batches and p.lag == 0:
            self._reporter.well(p)

    def _on_fetch_lost(self, partition: PartitionMachine, why: str) -> None:
        """The source's connection ended. Whether its cluster is gone, resuming will say: one line for all partitions,
        not one for each."""
        self._happen(partition, Failed(source_failed=True))

    def _on_appended(self, partition: PartitionMachine, event: Acked) -> None:
        """As `_happen`. Of what most acknowledgements need, this is all."""
        if partition.phase is not COPYING:
            self._happen(partition, event)
        elif (ready := partition.step(event)).gathers:
            self._gathering.add(partition)
        else:
            self._follow(partition, ready)
            if ready.phase is not COPYING:  # the answer shows that another writer has appended
                self._changes[partition].set()
            self._transaction_runner.update(partition)

    def _on_answers(self, answered: Sequence[AnsweredBatch]) -> None:
        now = now_ms()
        for partition, sent, answer in answered:
            if isinstance(answer, ProduceAnswer) and not answer.code:
                self._on_appended(
                    partition, Acked(sent, answer.base_offset, now, answer.rewrote_times(sent.outgoing.max_timestamp))
                )
                continue
            if partition in self._gathering:
                self._step(partition, AcksDue(now))  # they came before
            self._happen(partition, self._error_handler.on_append_error(partition, sent, answer))
