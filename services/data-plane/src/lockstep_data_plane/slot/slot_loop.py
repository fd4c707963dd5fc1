"""The loop of a slot, which turns what comes from both clusters into events of partitions.

`step` applies an event, and `apply_effects` carries out what follows from it. Deliveries come from the fetcher
(`on_fetched`), and answers to appends from the sender (`on_answers`). Both are handled as they are read, without a
task in between. With one record a batch, each switch of tasks costs more than the copy. One task for each partition
(`partition_task.py`) takes it through its phases. The loop carries out the events of these tasks too.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_sequence import Ack, IdentityRouting
from lockstep_data_plane.core.effects import (
    PERSISTS,
    Append,
    Effects,
    Fetch,
    JoinTransaction,
    OfferAppends,
    Persist,
    StopFetching,
)
from lockstep_data_plane.core.events import Acked, AcksDue, Failed, Fetched, Leave, PartitionEvent, TopicChanged
from lockstep_data_plane.core.keyed_routing import KeyedRouting
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.provenance import NO_PROVENANCE, FlowIds
from lockstep_data_plane.fetch.fetch_limits import FetchLimits
from lockstep_data_plane.fetch.fetcher import Delivery, Fetcher
from lockstep_data_plane.produce.sender import AnsweredBatch, Sender
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.progress.event_reporter import EventReporter
from lockstep_data_plane.provenance.origin_lookup import OriginLookup
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.resume.resumer import Resumer
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_data_plane.slot.error_handler import ErrorHandler
from lockstep_data_plane.slot.partition_task import PartitionTasks
from lockstep_data_plane.slot.slot_clusters import connect_clusters
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_data_plane.slot.target_limits import target_limits
from lockstep_data_plane.slot.transform_stage import Decided, TransformStage
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.messages.fetch_codec import FetchedPartition
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_runtime.state.unreadable_records import PassOver
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.data_plane_rows import TransformCount
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress, SeenEnds

COPYING = Phase.COPYING
"""The phase that is compared for each batch. A constant, because the lookup of an enum member is a call."""

CHECK_INTERVAL_S = 0.5
"""Seconds between two checks for silent brokers."""


class SlotLoop:
    """The copy of one slot's partitions: their states, the connections to both clusters, and the tasks between them."""

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
        transforms: SlotTransforms | None = None,
        waits: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create the loop. Nothing connects before `run_partition`.

        Args:
            settings: The flow's settings.
            ids: The producer id of the flow, and the id of its source.
            control_writer: Writes rows and events.
            troubles: The errors that this slot has now.
            topics: The rows of mirrored topics, by name in the source.
            rows: The newest progress of each partition.
            find_runs: Returns the rows of a partition's offset runs that the state topic has now.
            pass_over: Called for records that cannot be read.
            transforms: The transforms of the slot; None: those of the settings, of which none was compiled.
            waits: Returns whether nothing is to be fetched now.
        """
        self._settings = settings
        self._log = FlowLog("data-plane", settings.flow)
        self._plane = settings.data_plane
        self._control_writer = control_writer
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self._unwritten: set[PartitionState] = set()
        """The partitions that may have a new row to write or acknowledged batches to count, and those that lag.
        Thousands of idle partitions are not among them.
        """
        self.appended = self.appended_bytes = 0
        """Records that the target acknowledged in this run, and the bytes of their batches."""
        self._changes: dict[PartitionState, asyncio.Event] = {}
        self.others_end_by: float | None = None
        self._waits = waits
        self._source, self._target = connect_clusters(settings, control_writer.slot)
        self._reporter = EventReporter(settings, control_writer, troubles, self._source, self._target)
        recompress = self._plane.compression.recompress
        self._error_handler = ErrorHandler(self._source, self._target, self._reporter, recompress=recompress)
        self._transaction_runner = TransactionRunner(settings, self._target, control_writer, self, pass_over)
        self._resumer = Resumer(
            settings,
            ids,
            self._source,
            self._target,
            control_writer,
            rows,
            self,
            self._transaction_runner,
        )
        self._origins = OriginLookup(
            settings,
            ids,
            self._source,
            self._target,
            control_writer,
            deliver=self._evaluate_or_judge,
            delivered=self._on_released,
            trouble=partial(self._reporter.report_slot_failure, "provenance"),
            pass_over=pass_over,
        )
        self._transforms = transforms or SlotTransforms(settings, ())
        self._stage = TransformStage(
            decided=self._on_decided,
            judge=self._judge,
            refused=self.apply_event,
            released=self._on_released,
            trouble=partial(self._reporter.report_slot_failure, "transforms"),
        )
        self._sender = Sender(self._target, self.on_answers)
        self._fetch_limits = FetchLimits(settings.delay_ms, topics)
        self._fetcher = Fetcher(self._source, self._plane, self, self._fetch_limits)
        self._partition_tasks = PartitionTasks(
            plane=self._plane,
            target=self._target,
            topics=topics,
            find_runs=find_runs,
            control_writer=control_writer,
            reporter=self._reporter,
            resumer=self._resumer,
            transaction_runner=self._transaction_runner,
            sender=self._sender,
            changes=self._changes,
            io=self,
        )

    @property
    def held_bytes(self) -> int:
        """The bytes that are fetched and not yet acknowledged."""
        return self._fetcher.budget.held

    @property
    def transform_counts(self) -> tuple[TransformCount, ...]:
        """The value of `SlotStatus.transforms`."""
        return self._transforms.counts(self._stage.held_by_name())

    @property
    def link_bytes(self) -> tuple[tuple[str, str, str, int], ...]:
        """The value of `SlotStatus.link_bytes`."""
        return tuple((c.alias, *total) for c in (self._source, self._target) for total in c.links.totals())

    async def close(self) -> None:
        """End fetching and producing, without waiting for batches in flight. A drained slot has none."""
        await self._transaction_runner.close()
        await self._fetcher.close()
        await self._origins.close()
        await self._stage.close()
        await self._transforms.close()
        await self._source.close()
        await self._target.close()

    def share_rates(self, own_counts: Mapping[str, int], flow_counts: Mapping[str, int]) -> None:
        """Set this slot's share of the limits of bytes a second.

        Args:
            own_counts: The number of this slot's partitions, by topic.
            flow_counts: The number of the flow's partitions, by topic.
        """
        self._fetcher.schedule.rates.set_shares(own_counts, flow_counts)

    def check(self) -> None:
        """Raise the mistake that ended a fetch, a lookup or an evaluation, and report the state of the clusters.

        The report names what clusters do not support and when brokers throttle. The slot calls this at every turn.
        """
        crash = self._fetcher.crashed() or self._origins.crashed() or self._stage.crashed()
        if crash is not None:
            raise crash
        self._reporter.report_clusters()

    async def end_silent(self) -> None:
        """Close connections whose broker went silent, until cancelled.

        It is a task of its own, because the writer of progress may be waiting for the silent broker.
        """
        while True:
            self._fetcher.end_stuck()
            self._sender.end_stuck()
            await asyncio.sleep(CHECK_INTERVAL_S)

    def wake(self) -> None:
        """Fetch again, if `waits` was the reason for the pause."""
        self._fetcher.wake()

    def take_seen_ends(self, row: SeenEnds) -> None:
        """Take what the driver has seen of a delayed partition: more of it may be fetched now."""
        if self._fetch_limits.take_row(row):
            self._fetcher.wake()

    def set_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Set the offsets at which copies end, in place of all that were set before."""
        if self._fetch_limits.set_ends(ends):
            self._fetcher.wake()

    def has_reached(self, tp: TopicPartition, end: int) -> bool:
        """Return whether a partition that has a task has nothing more to copy before `end`."""
        partition = self.partitions.get(tp)
        return partition is not None and self._fetch_limits.has_reached(partition, end)

    def is_resuming(self, tp: TopicPartition) -> bool:
        """Return whether it is still unknown what the target's log has of a partition that has a task."""
        partition = self.partitions.get(tp)
        return partition is None or partition.phase in (Phase.RESUMING, Phase.SETTLING, Phase.LOCATING)

    async def source_answers(self, tp: TopicPartition) -> bool:
        """Return whether the source answers about a partition. A source that is gone delays nothing."""
        return await self._resumer.source_answers(tp)

    async def flush(self) -> None:
        """Write the rows that have changed since they were written last.

        Raises:
            ClusterError: The rows were not taken. They are still due.
        """
        for partition in list(self._unwritten):
            self.step(partition, AcksDue(now_ms()))
        due, self._unwritten = self._unwritten, set()
        try:
            await self._control_writer.flush(due)
        except ClusterError:
            self._unwritten |= {partition for partition in due if self._owns(partition)}
            raise
        self._unwritten |= {partition for partition in due if partition.acked.lag and self._owns(partition)}

    def _owns(self, partition: PartitionState) -> bool:
        return self.partitions.get(partition.tp) is partition

    def remove(self, tp: TopicPartition) -> None:
        """Forget a partition that is released and whose last row is written."""
        partition = self.partitions.pop(tp, None)
        if partition is not None:
            self._unwritten.discard(partition)
            self._changes.pop(partition, None)
            self._control_writer.remove_partition(partition)
            self._reporter.forget(partition)
            self._origins.remove(partition)
            self._fetch_limits.forget(tp)
            self._stage.remove(partition)
            self._fetcher.set_held(partition, 0)

    def leave(self, tp: TopicPartition, rests: str = "", *, goes_on: bool = False) -> None:
        """Begin to end the copy of a partition in this slot. Idempotent.

        The partition is released once its batches in flight have answers and their end in the target's log is found.

        Args:
            tp: The partition, by its name in the source.
            rests: The phase in its progress row that says why it is not copied then, as `paused`.
            goes_on: Another run of a slot copies it at once, and finds the end by itself.
        """
        if (partition := self.partitions.get(tp)) is not None:
            before = partition.leaving, partition.resolves_end
            in_doubt = self.others_end_by is not None and not self._plane.read_back  # which has waited for their end
            self.apply_event(partition, Leave(rests, goes_on=goes_on, in_doubt=in_doubt))
            if (partition.leaving, partition.resolves_end) != before:
                self._changes[partition].set()

    def topic_changed(self, topic: MirroredTopic) -> None:
        """Apply a topic's new row: its limits hold from now on.

        Partitions whose topic was re-created are examined again before they go on.
        """
        now = topic.source_topic_id, topic.target_topic_id, topic.target_partitions
        event = TopicChanged(self._limits(topic), *now)
        for partition in self.partitions.values():
            if partition.topic == topic.source_topic:
                self.apply_event(partition, event)

    def _limits(self, topic: MirroredTopic) -> TargetLimits:
        rules = self._settings.record_rules(topic.source_topic)
        return target_limits(self._plane, topic, self._error_handler.refused_codecs, rules)

    # -- one partition -------------------------------------------------------------------------------------------------

    async def run_partition(self, tp: TopicPartition, topic: MirroredTopic, *, rests: str | None = None) -> None:
        """Take the partition through its phases until it is released.

        Args:
            tp: The partition, by its name in the source.
            topic: The row of its topic.
            rests: None if it is to be copied. Otherwise only the end of its copy is found, and it is released with
                this phase.
        """
        evaluated = self._transforms.find_evaluated(tp[0])
        partition = PartitionState(
            *tp,
            topic.target_topic,
            self._plane.offset_lag_max,
            routing=KeyedRouting(tp[1]) if self._plane.by_key else IdentityRouting(tp[1]),
            limits=self._limits(topic),
            provenance=self._origins if self._origins.traces(tp[0]) else NO_PROVENANCE,
            has_foreign_writers=self._settings.hides_origin(tp[0]),
            transform=self._transforms.find(tp[0]),
            is_evaluated=evaluated is not None,
        )
        self.partitions[tp] = partition
        if evaluated is not None:
            self._stage.add(partition, evaluated)
        self._control_writer.add_partition(partition)
        self._changes[partition] = asyncio.Event()
        if rests is not None:
            self.leave(tp, rests)
        await self._partition_tasks.run_partition(partition)

    def resuming(self) -> Iterable[PartitionState]:
        """Return the partitions that are in the phase RESUMING."""
        return [partition for partition in self.partitions.values() if partition.phase is Phase.RESUMING]

    # -- events in, effects out ----------------------------------------------------------------------------------------

    def apply_event(self, partition: PartitionState, event: PartitionEvent) -> None:
        """Apply the event as `step` does. Then open a transaction of the partition, or end one that is due."""
        self.step(partition, event)
        self._transaction_runner.update(partition)

    def step(self, partition: PartitionState, event: PartitionEvent) -> None:
        """Apply the event to the partition, carry out the effects, and wake its task if it waits for them."""
        before = partition.phase
        waited_for = before is not COPYING and not partition.drained
        effects = partition.step(event)
        if not self._owns(partition):  # it has left, or is asked for another one's sake
            return
        self.apply_effects(partition, effects)
        if partition.phase is not before or (waited_for and partition.drained):
            self._changes[partition].set()

    def apply_effects(self, partition: PartitionState, effects: Effects) -> None:
        """Carry out the effects of a step.

        Raises:
            TypeError: An effect is `Append` or `JoinTransaction`. Only the sender and the transaction runner ask for
                these.
        """
        for effect in effects:
            match effect:
                case Persist():
                    self._unwritten.add(partition)
                    if effect.acks:
                        self._count(partition, effect.acks)
                case OfferAppends():
                    self._sender.mark_ready(partition)
                case StopFetching():
                    self._fetcher.detach(partition)
                case Fetch():
                    self._fetch(partition)
                case Append() | JoinTransaction():
                    raise TypeError(f"{effect} is for who asked")
                case _:
                    self._reporter.report(partition, effect)
        self._update_held(partition)

    def pump(self) -> None:
        """Send now what can be sent."""
        self._sender.pump()

    def _fetch(self, partition: PartitionState) -> None:
        try:
            self._fetcher.attach(partition)
        except BrokerUnreachable as exc:  # another partition's metadata request has found its leader gone
            self.step(partition, Failed(exc, source_failed=True))

    def _count(self, partition: PartitionState, acks: Sequence[Ack]) -> None:
        """Count for the slot what the target has acknowledged."""
        if not self.appended:
            self._log.debug("first records", partition.target_name)
        for ack in acks:
            self.appended += ack.outgoing.count
            self.appended_bytes += ack.size
        if self._control_writer.syncs is not None and partition.routing.in_one_log:
            self._control_writer.syncs.send_due(partition.tp, acks)
        self._reporter.recovered(partition)

    def _update_held(self, partition: PartitionState) -> None:
        """Update the number of bytes that the partition holds. To be called whenever it may have changed."""
        waiting = self._origins.bytes_held(partition) + self._stage.bytes_held(partition)
        self._fetcher.set_held(partition, partition.routing.bytes_held + waiting)

    # -- what the fetcher brings ---------------------------------------------------------------------------------------

    def may_fetch(self, partition: PartitionState) -> bool:
        """Return whether the partition may be fetched now. Its memory is judged elsewhere."""
        return not (self._waits() or self._origins.holds(partition) or self._stage.waits(partition))

    def on_fetched(self, delivery: Delivery) -> None:
        """Judge what was fetched, or hold it until the origin of its records is known and they are evaluated."""
        if delivery.partition.provenance is self._origins and self._origins.hold(delivery):
            self._update_held(delivery.partition)
        else:
            self._evaluate_or_judge(delivery)

    def on_delivered(self) -> None:
        """Send what an answer of the source brought, after its last delivery was judged."""
        self._sender.pump()

    def on_fetch_lost(self, partition: PartitionState, reason: str) -> None:
        """Let the partition resume, because the connection to the source ended.

        Nothing is reported here. If the source is gone, resuming reports it once for all partitions.
        """
        self.apply_event(partition, Failed(source_failed=True))

    def _on_released(self, partition: PartitionState) -> None:
        """Count what a partition still holds, and send what was released of it."""
        if self._owns(partition):
            self._update_held(partition)
        self._sender.pump()

    def _evaluate_or_judge(self, delivery: Delivery) -> None:
        if self._stage.evaluates(delivery.partition):
            self._stage.hold(delivery)
            self._update_held(delivery.partition)
        else:
            self._judge(delivery)

    def _on_decided(self, decided: Decided) -> None:
        """Judge what a transform has decided about batches of a delivery."""
        delivery, batches, parts = decided
        partition, size = delivery.partition, sum(len(batch.data) for batch in batches)
        end = self._end(partition, delivery.fetched)
        event = Fetched(delivery.incarnation, batches, AbortedTransactions(), end, size, now_ms(), parts)
        self.apply_event(partition, event)
        self._sender.pump()

    def _end(self, partition: PartitionState, fetched: FetchedPartition) -> int:
        """Return the end of the source's log that counts for the copy."""
        committed = self._plane.reads_committed
        end = fetched.last_stable if committed else fetched.high_watermark
        if partition.records_to_skip:  # for those it has to be known how many the source has
            return end
        # What is held back on purpose is no lag here. The driver knows of it, and no row grows older each second.
        return min(end, self._fetch_limits.find(partition))

    def _judge(self, delivery: Delivery) -> None:
        partition, fetched = delivery.partition, delivery.fetched
        if not partition.awaits(delivery.incarnation):
            return
        if fetched.code:
            self.apply_event(partition, self._error_handler.on_fetch_error(partition, fetched.code))
            return
        end = self._end(partition, fetched)
        aborted = AbortedTransactions(fetched.aborted)
        size = len(fetched.records)
        self.apply_event(partition, Fetched(delivery.incarnation, delivery.batches, aborted, end, size, now_ms()))
        if not delivery.batches and partition.acked.lag == 0:
            self._reporter.recovered(partition)

    # -- what the sender brings ----------------------------------------------------------------------------------------

    def on_answers(self, answered: Sequence[AnsweredBatch]) -> None:
        """Apply the outcome of each batch of a produce request."""
        now = now_ms()
        for partition, sent, answer in answered:
            if isinstance(answer, ProduceAnswer) and not answer.code:
                rewrote = answer.rewrote_times(sent.outgoing.max_timestamp)
                self._on_appended(partition, Acked(sent, answer.base_offset, now, rewrote))
            else:
                self.step(partition, AcksDue(now))  # they came before
                self.apply_event(partition, self._error_handler.on_append_error(partition, sent, answer))

    def _on_appended(self, partition: PartitionState, event: Acked) -> None:
        """Do as `apply_event`, at the least cost for the usual acknowledgement."""
        if partition.phase is not COPYING:
            self.apply_event(partition, event)
        elif (effects := partition.step(event)) is PERSISTS:
            self._unwritten.add(partition)
        else:
            self.apply_effects(partition, effects)
            if partition.phase is not COPYING:  # the answer shows that another writer has appended
                self._changes[partition].set()
            self._transaction_runner.update(partition)
