"""The execution of `transaction_state.py`: one task for each open transaction of a partition.

It opens the transaction, lets batches go, waits until it is due, appends progress, and commits. After any failure the
partition resumes, which fences its transactional id. Then the progress topic says whether the transaction counted.
"""

import asyncio
from datetime import timedelta

from lockstep_config import FlowSettings
from lockstep_data_plane.core.effects import JoinTransaction
from lockstep_data_plane.core.events import (
    Failed,
    PartitionEvent,
    TransactionCommitted,
    TransactionEnding,
    TransactionJoined,
    TransactionJoining,
    TransactionOpened,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.slot_io import SlotIO
from lockstep_data_plane.core.target_log.hanging_transaction import HangingTransaction
from lockstep_data_plane.core.transaction_state import TransactionBoundary, TransactionState
from lockstep_data_plane.progress.committed_progress import CommittedProgressReader, appended_to_header
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.record_batch.codecs import NONE
from lockstep_data_plane.record_batch.layout import stamp
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build
from lockstep_data_plane.resume.hanging_transactions import HangingTransactions
from lockstep_kafka.common.asyncio_util import cancelled, set_within
from lockstep_kafka.messages.produce_codec import PRODUCE_BY_TOPIC_ID, produce_answer, produce_request
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.error_codes import RETRIABLE_ERRORS
from lockstep_kafka.wire.transaction_coordinator import Producer, TransactionCoordinators
from lockstep_runtime.state.unreadable_records import PassOver
from lockstep_runtime.util.clock import now_ms
from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.names import transactional_id
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import PartitionProgress

LARGEST_RECORD = 1 << 20


class TransactionRunner:
    """The runner of the transactions of one slot's partitions. One instance belongs to one event loop."""

    def __init__(
        self,
        settings: FlowSettings,
        target: ClusterClient,
        control_writer: ControlTopicWriter,
        io: SlotIO,
        pass_over: PassOver,
    ) -> None:
        """Begin with no transaction open. `pass_over` is called for records that are not progress."""
        self._settings = settings
        self._target = target
        self._control_writer = control_writer
        self._io = io
        self._coordinators = TransactionCoordinators(target, settings.data_plane.transaction_timeout)
        control = settings.control
        self._progress = CommittedProgressReader(
            target, control.offset_storage_topic, control.progress_connector, settings.aliases.source, pass_over
        )
        self._hanging = HangingTransactions(target, self._progress)
        self._boundary = TransactionBoundary(_seconds(settings.data_plane.transaction_interval))
        self._tasks: dict[PartitionState, asyncio.Task[None]] = {}
        self._landed: dict[PartitionState, asyncio.Event] = {}
        self._leaders: dict[PartitionState, frozenset[Connection]] = {}
        """The connections to the leaders of what the last transaction may have had, since before it was opened."""

    @property
    def is_enabled(self) -> bool:
        """Return whether the configuration asks for transactions (`exactly.once.source.support=enabled`)."""
        return self._settings.data_plane.exactly_once

    async def fence(self, partition: PartitionState) -> tuple[Producer, int | None]:
        """Take over the partition's transactional id, and return what it stands for and the committed progress.

        No other writer appends under the id any more, and its open transaction has ended in each of its partitions.

        Returns:
            The producer id and epoch of the transactional id, and the last upstream offset that committed progress
            names. The producer id is written as the flow's own before this returns.

        Raises:
            RetriableError: The target does not answer or refuses a request, or the producer id could not be written.
        """
        if (task := self._tasks.get(partition)) is not None:
            task.cancel()
            await asyncio.wait([task])
        transactional_id = self._id(partition)
        self._leaders.pop(partition, None)
        producer = await self._coordinators.fence(transactional_id)
        if (hanging := await self._hanging.find(partition, producer.id)) is not None:
            await self._coordinators.open(transactional_id, producer, hanging.partitions)
            await self._coordinators.end(transactional_id, producer, commit=hanging.is_committed)
            producer = await self._coordinators.fence(transactional_id)  # returns once the markers are written
            await self._require_markers(partition, producer)
            self._report(partition, hanging)
        await partition.provenance.claim(producer.id)  # before the first batch that has it
        return producer, await self.progress(partition)

    async def find_contradiction(
        self, partition: PartitionState, row: PartitionProgress, producer_id: int
    ) -> str | None:
        """Return how the target contradicts a commit, as `HangingTransactions.find_contradiction`."""
        return await self._hanging.find_contradiction(partition, row, producer_id)

    def _report(self, partition: PartitionState, hanging: HangingTransaction) -> None:
        partitions = [f"{topic}-{number}" for topic, number in hanging.partitions]
        outcome = "commit" if hanging.is_committed else "abort"
        text = f"the transaction has no marker in {', '.join(partitions)}, so it is ended again: {outcome}"
        self._control_writer.event(
            "HangingTransactionEnded",
            partition.name,
            f"{partition.name}: {text}",
            outcome=outcome,
            partitions=partitions,
        )

    async def _require_markers(self, partition: PartitionState, producer: Producer) -> None:
        """Require that the producer has no transaction open. Raises as `_require_ended`."""
        if await self._hanging.find(partition, producer.id) is not None:
            context = f"cluster {self._target.alias}: markers of the last transaction of {self._id(partition)}"
            raise KafkaProtocolError(KafkaErrorCode.CONCURRENT_TRANSACTIONS, context, self._target.alias)

    async def progress(self, partition: PartitionState) -> int | None:
        """Return the last upstream offset of the partition that MM2's progress topic names; None: it names none.

        Only committed progress counts. Raises KafkaProtocolError and BrokerUnreachable.
        """
        return await self._progress.read_newest(partition.tp)

    def start(self, partition: PartitionState) -> TransactionState:
        """Return the transactions of a partition that has just been fenced."""
        return TransactionState(self._id(partition), self._boundary)

    def update(self, partition: PartitionState) -> None:
        """Open a transaction if one is needed, and let the open one check whether it is due.

        Call it when a batch waits to be sent, was appended, or failed.
        """
        if (event := self._landed.get(partition)) is not None:
            event.set()
        if partition.wants_transaction and partition not in self._tasks:
            partition.step(TransactionJoining())
            self._landed[partition] = asyncio.Event()
            self._tasks[partition] = asyncio.create_task(
                self._run_transaction(partition, partition.incarnation), name=f"transaction of {partition.name}"
            )

    def is_under_way(self, partition: PartitionState) -> bool:
        """Return whether this slot has a transaction of the partition under way."""
        return partition in self._tasks

    async def wait_ended(self, partition: PartitionState) -> None:
        """Wait until this slot has no transaction of the partition under way."""
        if (event := self._landed.get(partition)) is not None:
            event.set()
        if (task := self._tasks.get(partition)) is not None:
            await asyncio.wait([task])

    async def close(self) -> None:
        """Stop, and leave open transactions to the slot that takes the partitions over."""
        await cancelled(self._tasks.values())

    def _step(self, partition: PartitionState, event: PartitionEvent) -> None:
        self._io.step(partition, event)
        self._io.pump()

    # -- one transaction -----------------------------------------------------------------------------------------------

    async def _run_transaction(self, partition: PartitionState, incarnation: int) -> None:
        failed: Failed | None = None
        transactional_id = self._id(partition)
        producer = Producer(partition.routing.producer_id, partition.routing.epoch)
        try:
            await self._transaction(partition, incarnation, producer)
            if partition.phase is Phase.DRAINING and not partition.routing.ends_whole:
                # Readers of committed records would wait for its end until it times out.
                await self._coordinators.end(transactional_id, producer, commit=False)
        except RETRIABLE_ERRORS as exc:
            failed = Failed(str(exc))
        finally:
            self._tasks.pop(partition, None)
            self._landed.pop(partition, None)
        if failed is not None:
            self._step(partition, failed)
        else:
            self.update(partition)

    async def _transaction(self, partition: PartitionState, incarnation: int, producer: Producer) -> None:
        loop, landed = asyncio.get_running_loop(), self._landed[partition]
        progress_partition = await self._progress.progress_partition(partition.tp)
        if progress_partition is None:
            context = f"cluster {self._target.alias}: topic {self._progress.topic}"
            raise KafkaProtocolError(KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION, context)
        await self._require_ended(partition, producer, progress_partition)
        if not await self._join(partition, incarnation, producer, progress_partition):
            return
        self._step(partition, TransactionOpened(loop.time()))
        while (wait := partition.transaction_due_in(loop.time())) != 0.0:
            landed.clear()
            await set_within(landed, wait)
            if partition.transaction_is_spent or not await self._join(partition, incarnation, producer):
                return
        partition.step(TransactionEnding(loop.time()))
        while not partition.routing.all_sent:
            landed.clear()
            await landed.wait()
            if not partition.is_in_transaction(incarnation):
                return
        await self._append_progress(partition, producer, progress_partition)
        await self._coordinators.end(self._id(partition), producer, commit=True)
        if partition.is_in_transaction(incarnation):
            self._step(partition, TransactionCommitted(now_ms()))

    async def _require_ended(
        self, partition: PartitionState, producer: Producer, progress_partition: TopicPartition
    ) -> None:
        """Require that the last transaction does not hang, if its coordinator or a leader may have restarted since.

        A restart closes their connections, and so does a long silence.

        Raises:
            KafkaProtocolError: It hangs, or a broker answers with an error.
            BrokerUnreachable: A broker does not answer.
        """
        transactional_id, leaders = self._id(partition), self._leaders.pop(partition, frozenset())
        is_connected = self._coordinators.is_connected(transactional_id)
        if not is_connected or any(leader.closed or leader.is_doubtful for leader in leaders):
            if not is_connected:
                await self._coordinators.connect(transactional_id)
            await self._require_markers(partition, producer)
        numbers = self._hanging.target_numbers(partition)
        partitions = [progress_partition, *((partition.target_topic, number) for number in numbers)]
        brokers = {self._target.require_leader(tp).broker for tp in partitions}
        self._leaders[partition] = frozenset([await self._target.connection(each, "progress") for each in brokers])

    async def _join(
        self, partition: PartitionState, incarnation: int, producer: Producer, *progress_partitions: TopicPartition
    ) -> bool:
        """Tell the coordinator which partitions the transaction is about to have as well. The first call opens it.

        Returns whether the transaction goes on. Raises as `TransactionCoordinators.open`.
        """
        if not partition.is_in_transaction(incarnation):
            return False
        joins: frozenset[int] = frozenset()
        for effect in partition.step(TransactionJoining()):
            if isinstance(effect, JoinTransaction):
                joins = effect.partitions
        added = [*((partition.target_topic, number) for number in sorted(joins)), *progress_partitions]
        if added:
            await self._coordinators.open(self._id(partition), producer, added)
            if not partition.is_in_transaction(incarnation):
                return False
        if joins or not partition.routing.in_one_log:
            self._step(partition, TransactionJoined(joins))
        return True

    async def _append_progress(
        self, partition: PartitionState, producer: Producer, progress_partition: TopicPartition
    ) -> None:
        """Append Connect's progress record in the transaction.

        If it raises KafkaProtocolError or BrokerUnreachable, the record may have been appended. That does not matter,
        because the transaction will not be committed.
        """
        connector, source = self._settings.control.progress_connector, self._settings.aliases.source
        upstream, sequence = partition.progress
        key, value = encode_source_progress(source, partition.topic, partition.number, upstream, connector)
        header = appended_to_header(self._target.topic_id(partition.target_tp), partition.appended_to)
        (outgoing,) = build([PlainRecord(0, now_ms(), key, value, [header])], NONE, LARGEST_RECORD, -1)
        data = stamp(outgoing.data, producer.id, producer.epoch, sequence, transactional=True)
        async with self._target.leader_for_request(progress_partition) as leader:
            connection = await self._target.connection(leader.broker, "progress")
            version = min(connection.version("produce"), PRODUCE_BY_TOPIC_ID - 1)  # by name, as control topics are
            request = produce_request(
                version, [(progress_partition, leader, data)], PROGRESS_WITHIN, self._id(partition)
            )
            answer = produce_answer((await connection.request(request)).responses[0].partition_responses[0])
            if answer.code != KafkaErrorCode.NONE:
                context = f"cluster {self._target.alias}: progress into {progress_partition[0]}-{progress_partition[1]}"
                raise KafkaProtocolError(
                    answer.code, context, self._target.alias, ("topic", progress_partition[0], "Write")
                )

    def _id(self, partition: PartitionState) -> str:
        return transactional_id(self._settings.flow, self._settings.group_id, partition.topic, partition.number)


PROGRESS_WITHIN = timedelta(seconds=30)


def _seconds(interval: timedelta | None) -> float | None:
    return None if interval is None else interval.total_seconds()
