"""The edge around `machine.py`: what a slot does with what it fetches for its partitions, and with the answers
to what it appends.

One task tends each partition (`partition_task.py`). Batches and answers are handled in callbacks, without a task in
between, because at one record a batch each switch costs more than the copy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_sequence import Ack, InFlightBatch
from lockstep_data_plane.core.appended_skipper import RecordMismatch
from lockstep_data_plane.core.keyed_mirror_partition import KeyedMirrorPartition
from lockstep_data_plane.core.machine import BatchRejected, PartitionMachine
from lockstep_data_plane.core.phases import PartitionEvent, Phase
from lockstep_data_plane.fetch.fetch_request import Delivery
from lockstep_data_plane.fetch.fetcher import Fetcher
from lockstep_data_plane.fetch.flow_control import FlowControl
from lockstep_data_plane.produce.sender import NoProduceAnswer, Sender
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.progress.event_reporter import EventReporter
from lockstep_data_plane.provenance.origin_lookup import OriginLookup
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.resume.resumer import Resumer
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_data_plane.slot.error_handler import ErrorHandler
from lockstep_data_plane.slot.partition_task import PartitionTasks
from lockstep_data_plane.slot.slot_clusters import connect_clusters
from lockstep_data_plane.wire.produce_codec import ProduceAnswer
from lockstep_data_plane.wire.topic_limits import target_limits
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.util.clock import now_ms

__all__ = ["SlotEngine"]

LOOK_EVERY_S = 0.5
"""How often silent brokers are looked for."""


class SlotEngine:
    """Copies the partitions of one slot: owns them, the connections to both clusters, and the tasks between them."""

    def __init__(
        self,
        settings: FlowSettings,
        producer_id: int,
        control_writer: ControlTopicWriter,
        troubles: FailureTracker,
        topics: Mapping[str, MirroredTopic],
        rows: Mapping[TopicPartition, PartitionProgress],
        runs_of: Callable[[TopicPartition], Iterable[OffsetRuns]],
    ) -> None:
        """`runs_of`: the rows that tell of a partition's offset runs, as they stand now."""
        self._settings = settings
        self._plane = settings.data_plane
        self._keeps_names = settings.keeps_names
        self._control_writer = control_writer
        self.partitions: dict[TopicPartition, PartitionMachine] = {}
        self._moved: set[PartitionMachine] = set()
        self._unmeasured: list[tuple[PartitionMachine, Sequence[Batch], int, int]] = []
        self.appended = self.appended_bytes = 0
        """Records acknowledged by the target in this run, and bytes of their batches."""
        self._changes: dict[PartitionMachine, asyncio.Event] = {}
        self.others_end_by: float | None = None
        """Until when, by the loop's clock, a run that was cut off may append: copies end behind that."""
        self._source, self._target = connect_clusters(settings, control_writer.slot)
        self._reporter = EventReporter(settings, control_writer, troubles, self._source, self._target)
        self._error_handler = ErrorHandler(self._source, self._target, self._reporter, on_failed=self._stop)
        self.flow_control = FlowControl(self._plane, lambda p: self._fetcher.nudge(p))
        self._transaction_runner = TransactionRunner(
            settings,
            self._target,
            on_open=self._send,
            on_commit=self._committed,
            on_failed=self._error_handler.on_append_failed,
        )
        self._resumer = Resumer(
            settings,
            producer_id,
            self._source,
            self._target,
            control_writer,
            rows,
            lambda: [p for p in self.partitions.values() if p.phase is Phase.RESUMING],
            self._transaction_runner,
        )
        self._origins = OriginLookup(
            settings,
            producer_id,
            self._source,
            self._target,
            control_writer,
            deliver=self._classify,
            delivered=self._with_provenance,
            trouble=partial(self._reporter.slot_trouble, "provenance"),
        )
        self._sender = Sender(self._target, self._on_answer)
        self._fetcher = Fetcher(
            self._source,
            self._plane.fetch,
            self._plane.isolation_level,
            in_flight=self.flow_control.in_flight,
            has_room=lambda p: not self._origins.holds(p) and self.flow_control.within_rate(p),
            on_fetched=self._on_fetched,
            on_delivered=self._delivered,
            on_trouble=self._error_handler.source_cut,
            limited=self.flow_control.limited,
        )

        self._partition_tasks = PartitionTasks(
            plane=self._plane,
            target=self._target,
            topics=topics,
            runs_of=runs_of,
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
        return self.flow_control.in_flight.held

    async def close(self) -> None:
        """End fetching and producing. What is in flight is not awaited: a drained slot has nothing in flight."""
        self.flow_control.close()
        await self._transaction_runner.close()
        await self._fetcher.close()
        await self._origins.close()
        await self._source.close()
        await self._target.close()
        await self._reporter.close()

    def check(self) -> None:
        """To be called every now and then: raises what ended a fetch by mistake, says when brokers slow us down."""
        if (crash := self._fetcher.crashed() or self._origins.crashed()) is not None:
            raise crash
        for cluster in (self._source, self._target):
            if seconds := cluster.quota.news():
                self._reporter.throttled(cluster.alias, seconds)

    async def end_silent(self) -> None:
        """Until it is cancelled: ends connections whose broker went silent. A task of its own, for whoever writes
        progress down may be waiting for that very broker."""
        while True:
            self._fetcher.end_stuck()
            self._sender.end_stuck()
            await asyncio.sleep(LOOK_EVERY_S)

    def moved(self) -> Sequence[PartitionMachine]:
        """Those that may have something new to write down since this was asked last, or that lag: thousands at rest are
        not among them."""
        moved = list(self._moved)
        self._moved = {partition for partition in moved if partition.acked.lag}
        return moved

    def remove(self, tp: TopicPartition) -> None:
        """The partition is released and written down."""
        partition = self.partitions.pop(tp, None)
        if partition is not None:
            self._moved.discard(partition)
            self._changes.pop(partition, None)
            self._control_writer.remove(partition)
            self._origins.remove(partition)
            self._fetcher.holds(partition, 0)

    def leave(self, tp: TopicPartition, rests: str = "", *, goes_on: bool = False) -> None:
        """The partition is to leave: what flies is awaited, and where it ended in the target's log is found; then it is
        released. `rests`: why nobody is to copy it then, in a word that its progress bears. `goes_on`: another slot
        copies it at once, and finds that by itself."""
        partition = self.partitions.get(tp)
        if partition is None:
            return
        partition.rests = rests
        event = PartitionEvent.LEAVE if goes_on else PartitionEvent.REST
        news = not partition.leaving or (goes_on and partition.locates)
        if news and partition.phase is not Phase.RELEASED:
            partition.on(event)
            if self.others_end_by is not None:
                partition.doubt()
            self._fetcher.detach(partition)
            self._transaction_runner.update(partition)
            self._update_held(partition)
            self._changes[partition].set()

    def topic_changed(self, topic: MirroredTopic) -> None:
        """A topic's row came in: its limits count from now on, and a partition whose topic is another one now looks
        again before it goes on."""
        for partition in self.partitions.values():
            if partition.topic != topic.source_topic:
                continue
            partition.limits = target_limits(self._plane, topic)
            ids = (partition.acked.written.source_topic_id, partition.acked.written.target_topic_id)
            if partition.phase is Phase.COPYING and ids != (topic.source_topic_id, topic.target_topic_id):
                self._error_handler.on_append_failed(partition, "its topic was re-created")
            elif partition.phase is Phase.COPYING and not partition.fits(topic.target_partitions):
                self._error_handler.on_append_failed(
                    partition, f"{topic.target_topic} has {topic.target_partitions} partitions now"
                )

    # -- one partition -------------------------------------------------------------------------------------------------

    async def tend(self, tp: TopicPartition, topic: MirroredTopic, *, rests: str | None = None) -> None:
        """See the partition through its phases until it is released. `rests`: it is not to be copied; where its copy
        ends is found, and then it is released with this word."""
        kind = KeyedMirrorPartition if self._plane.by_key else PartitionMachine
        partition = kind(tp[0], tp[1], topic.target_topic, self._plane.offset_lag_max)
        partition.limits = target_limits(self._plane, topic)
        if self._origins.concerns(partition.topic, partition.target_topic):
            partition.provenance = self._origins
        self.partitions[tp] = partition
        self._control_writer.add(partition)
        self._changes[partition] = asyncio.Event()
        if rests is not None:
            self.leave(tp, rests)
        await self._partition_tasks.tend(partition, self._on_turn)

    def _on_turn(self, partition: PartitionMachine) -> None:
        self._moved.add(partition)
        self._update_held(partition)

    def _stop(self, partition: PartitionMachine) -> None:
        """It is no longer to copy: nothing more is fetched for it, and its task goes on."""
        self._fetcher.detach(partition)
        self._transaction_runner.update(partition)
        self._update_held(partition)
        self._changes[partition].set()

    # -- between fetch and answer --------------------------------------------------------------------------------------

    def _on_fetched(self, delivery: Delivery) -> None:
        if delivery.partition.provenance is not self._origins or not self._origins.hold(delivery):
            self._classify(delivery)
        self._update_held(delivery.partition)

    def _update_held(self, partition: PartitionMachine) -> None:
        """To be called whenever what the partition holds may be another size."""
        self._fetcher.holds(partition, partition.append_sequence.bytes_held + self._origins.bytes_held(partition))

    def _with_provenance(self, partition: PartitionMachine) -> None:
        self._update_held(partition)
        self._delivered()
        self._fetcher.nudge(partition)

    def _delivered(self) -> None:
        self._sender.pump()
        for partition, batches, size, at_ms in self._unmeasured:  # what has been sent waits for nobody's statistics
            partition.acked.stats.fetched(batches, size, at_ms)
        self._unmeasured.clear()

    def _classify(self, delivery: Delivery) -> None:
        p = delivery.partition
        if not p.reads or p.incarnation != delivery.incarnation:
            return
        fetched = delivery.fetched
        if fetched.code:
            self._error_handler.fetch_refused(p, fetched.code)
            return
        self._moved.add(p)
        self.flow_control.on_fetched(p, len(fetched.records))
        p.acked.source_end = (
            fetched.last_stable if self._plane.isolation_level == "read_committed" else fetched.high_watermark
        )
        self._unmeasured.append((p, delivery.batches, len(fetched.records), now_ms()))
        if not delivery.batches:
            if p.acked.lag == 0:
                self._reporter.well(p)
            return
        try:
            p.admit(delivery.batches, AbortedTransactions(fetched.aborted))
        except RecordMismatch as exc:
            self._error_handler.misnumbered(p, str(exc))
        except BatchRejected as exc:
            self._error_handler.refused(p, str(exc), None if p.records_to_skip else exc.refusal)
        if p.reads and p.records_to_skip and p.position >= p.acked.source_end >= 0:
            self._error_handler.misnumbered(
                p, f"the target holds {p.records_to_skip} more records of ours than the source has up to {p.position}"
            )
        if p.phase is Phase.LOCATING and not p.records_to_skip:
            self._stop(p)
        self._sender.ready(p)
        self._transaction_runner.update(p)

    def _on_answer(
        self, partition: PartitionMachine, flight: InFlightBatch, answer: ProduceAnswer | NoProduceAnswer
    ) -> None:
        if isinstance(answer, ProduceAnswer) and answer.code == KafkaErrorCode.NONE:
            acks = partition.acknowledged(flight, answer.base_offset)
            for ack in acks:
                if ack.foreign and not self._keeps_names:
                    self._reporter.foreign(partition, ack)
            if acks:
                if answer.rewrote_times(flight.piece):
                    self._reporter.times_rewritten(partition)
                self._fetcher.nudge(partition)
                if partition.transactions is None:
                    self._counted(partition, acks)
        else:
            partition.lost(flight)
            if isinstance(answer, NoProduceAnswer):
                self._error_handler.cut(partition, str(answer))
            else:
                self._error_handler.append_refused(partition, flight, answer)
        self._update_held(partition)
        self._transaction_runner.update(partition)
        if partition.phase is not Phase.COPYING:
            self._changes[partition].set()

    def _send(self, partition: PartitionMachine) -> None:
        self._sender.ready(partition)
        self._sender.pump()

    def _committed(self, partition: PartitionMachine) -> None:
        """A transaction of the partition has ended: what it held counts."""
        self._counted(partition, partition.committed())

    def _counted(self, partition: PartitionMachine, acks: Sequence[Ack]) -> None:
        self._moved.add(partition)
        if acks:
            self.appended += sum(ack.piece.count for ack in acks)
            self.appended_bytes += sum(ack.size for ack in acks)
            if self._control_writer.syncs is not None and partition.in_one_log:
                self._control_writer.syncs.acknowledged(partition.tp, acks)
            partition.acked.stats.acknowledged(acks, now_ms())
            self._reporter.well(partition)
