"""The edge around `transaction_state.py`: one task for each open transaction of a partition.

It opens the transaction, lets batches go, waits until it is due, appends progress, and commits. Whatever fails on the
way ends in the same place: the partition resumes, which fences its transactional id, and the progress topic says
whether the transaction counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from lockstep_config import FlowSettings
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.transaction_state import TransactionBoundary, TransactionStage, TransactionState
from lockstep_data_plane.progress.connect_offsets import CommittedProgressReader
from lockstep_data_plane.record_batch.codecs import NONE
from lockstep_data_plane.record_batch.rebuild import PlainRecord, build
from lockstep_data_plane.record_batch.stamp import stamp
from lockstep_data_plane.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_data_plane.wire.connection import BrokerUnreachable
from lockstep_data_plane.wire.produce_codec import PRODUCE_BY_TOPIC_ID, produce_answer, produce_request
from lockstep_data_plane.wire.transaction_coordinator import Producer, ProducerFenced, TransactionCoordinators
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_protocol.mm2_codec import encode_source_progress
from lockstep_protocol.names import transactional_id
from lockstep_protocol.offsets import TopicPartition
from lockstep_runtime.util.asyncio_util import cancelled, set_within
from lockstep_runtime.util.clock import now_ms

__all__ = ["TransactionRunner"]

SENDING = (Phase.COPYING, Phase.DRAINING)
LARGEST_RECORD = 1 << 20


class TransactionRunner:
    """The transactions of one slot's partitions. One instance belongs to one event loop."""

    def __init__(
        self,
        settings: FlowSettings,
        target: ClusterClient,
        *,
        on_open: Callable[[PartitionMachine], None],
        on_commit: Callable[[PartitionMachine], None],
        on_failed: Callable[[PartitionMachine, str], None],
    ) -> None:
        """`on_open`: batches may be sent; `on_commit`: what the transaction holds is visible; `on_failed`: it was cut
        off, and nobody knows yet what became of it."""
        self._settings = settings
        self._target = target
        self._on_open = on_open
        self._on_commit = on_commit
        self._on_failed = on_failed
        self._coordinators = TransactionCoordinators(target, settings.data_plane.transaction_timeout)
        control = settings.control
        self._progress = CommittedProgressReader(
            target, control.offset_storage_topic, control.progress_connector, settings.aliases.source
        )
        self._boundary = TransactionBoundary(_seconds(settings.data_plane.transaction_interval))
        self._tasks: dict[PartitionMachine, asyncio.Task[None]] = {}
        self._landed: dict[PartitionMachine, asyncio.Event] = {}

    @property
    def wanted(self) -> bool:
        """Whether the file asks for transactions (`exactly.once.source.support=enabled`)."""
        return self._settings.data_plane.exactly_once

    async def fence(self, partition: PartitionMachine) -> tuple[Producer, int | None]:
        """Take the partition's transactional id over: nobody else appends under it any more, and what was open has
        ended. Returns what the id stands for now, which is written down as the flow's own, and the last upstream offset
        that committed progress names. Raises KafkaProtocolError, BrokerUnreachable, ClusterError."""
        if (task := self._tasks.get(partition)) is not None:
            task.cancel()
            await asyncio.wait([task])
        producer = await self._coordinators.fence(self._id(partition))
        await partition.provenance.own(producer.id)  # before the first batch that bears it
        return producer, await self.progress(partition)

    async def progress(self, partition: PartitionMachine) -> int | None:
        """The last upstream offset of the partition that MM2's progress topic names, committed; None where it names
        none. Raises KafkaProtocolError, BrokerUnreachable."""
        return await self._progress.newest(partition.tp)

    def start(self, partition: PartitionMachine) -> TransactionState:
        """The transactions of a partition that has just been fenced."""
        return TransactionState(self._id(partition), self._boundary)

    def update(self, partition: PartitionMachine) -> None:
        """To be called when something waits to be sent, was appended, or failed: opens a transaction where one is
        needed, and lets the open one see whether it is due."""
        if (event := self._landed.get(partition)) is not None:
            event.set()
        transactions = partition.transactions
        if transactions is None or partition.phase not in SENDING:
            return
        if (
            transactions.stage is TransactionStage.CLOSED
            and partition.append_sequence.sendable
            and partition not in self._tasks
        ):
            transactions.opening()
            self._landed[partition] = asyncio.Event()
            self._tasks[partition] = asyncio.create_task(
                self._one(partition, transactions), name=f"transaction of {partition.name}"
            )

    def busy(self, partition: PartitionMachine) -> bool:
        """Whether a transaction of the partition is under way here."""
        return partition in self._tasks

    async def ended(self, partition: PartitionMachine) -> None:
        """Wait until no transaction of the partition is under way here."""
        if (event := self._landed.get(partition)) is not None:
            event.set()
        if (task := self._tasks.get(partition)) is not None:
            await asyncio.wait([task])

    async def close(self) -> None:
        """Leave what is open to whoever takes the partitions over."""
        await cancelled(self._tasks.values())

    # -- one transaction -----------------------------------------------------------------------------------------------

    async def _one(self, partition: PartitionMachine, transactions: TransactionState) -> None:
        why = ""
        try:
            await self._transaction(partition, transactions)
            if partition.phase is Phase.DRAINING and not partition.ends_whole:
                # Readers of committed records would wait for its end until it times out.
                producer = Producer(partition.append_sequence.producer_id, partition.append_sequence.epoch)
                await self._coordinators.end(transactions.transactional_id, producer, commit=False)
        except (BrokerUnreachable, KafkaProtocolError, ProducerFenced) as exc:
            why = str(exc)
        finally:
            self._tasks.pop(partition, None)
            self._landed.pop(partition, None)
        if why:
            self._on_failed(partition, why)
        elif partition.transactions is transactions:
            self.update(partition)

    async def _transaction(self, partition: PartitionMachine, transactions: TransactionState) -> None:
        loop, landed = asyncio.get_running_loop(), self._landed[partition]
        producer = Producer(partition.append_sequence.producer_id, partition.append_sequence.epoch)
        place = await self._progress.place(partition.tp)
        if place is None:
            about = f"cluster {self._target.alias}: topic {self._progress.topic}"
            raise KafkaProtocolError(KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about)
        await self._join(partition, transactions, producer, [place])
        if not _is_running(partition, transactions):
            return
        transactions.opened(loop.time())
        self._on_open(partition)
        while (wait := self._due_in(partition, transactions)) != 0.0:
            landed.clear()
            await set_within(landed, wait)
            if not _is_running(partition, transactions):
                return
            if wait is None and partition.phase is not Phase.COPYING and partition.quiet and not transactions.held:
                return
            if await self._join(partition, transactions, producer) or not partition.in_one_log:
                if not _is_running(partition, transactions):
                    return
                self._on_open(partition)
        transactions.ending(loop.time())
        while not partition.all_sent:
            landed.clear()
            await landed.wait()
            if not _is_running(partition, transactions):
                return
        await self._append_progress(partition, transactions, producer, place)
        await self._coordinators.end(transactions.transactional_id, producer, commit=True)
        if _is_running(partition, transactions):
            self._on_commit(partition)

    async def _join(
        self,
        partition: PartitionMachine,
        transactions: TransactionState,
        producer: Producer,
        places: Sequence[TopicPartition] = (),
    ) -> bool:
        """Tell the coordinator which partitions the transaction is about to have as well; whether there were any. The
        first time opens it. Raises as `TransactionCoordinators.open`."""
        data = partition.joining()
        there = [*((partition.target_topic, number) for number in sorted(data)), *places]
        if there:
            await self._coordinators.open(transactions.transactional_id, producer, there)
            transactions.joined |= data
        return bool(there)

    def _due_in(self, partition: PartitionMachine, transactions: TransactionState) -> float | None:
        return transactions.due_in(
            asyncio.get_running_loop().time(),
            idle=partition.quiet,
            caught_up=partition.caught_up,
            leaving=partition.phase is not Phase.COPYING,
        )

    async def _append_progress(
        self, partition: PartitionMachine, transactions: TransactionState, producer: Producer, place: TopicPartition
    ) -> None:
        """Connect's record of progress, in the transaction. Raises KafkaProtocolError and BrokerUnreachable; whether it
        was appended then does not matter, for the transaction will not be committed."""
        connector, source = self._settings.control.progress_connector, self._settings.aliases.source
        key, value = encode_source_progress(source, partition.topic, partition.number, partition.progress, connector)
        (piece,) = build([PlainRecord(0, now_ms(), key, value, [])], NONE, LARGEST_RECORD, -1)
        data = stamp(piece.data, producer.id, producer.epoch, transactions.progress_sequence, transactional=True)
        async with self._target.led(place) as leader:
            connection = await self._target.connection(leader.broker, "progress")
            version = min(connection.version("produce"), PRODUCE_BY_TOPIC_ID - 1)  # by name, as control topics are
            request = produce_request(version, [(place, leader, data)], PROGRESS_WITHIN, transactions.transactional_id)
            said = produce_answer((await connection.call(request)).responses[0].partition_responses[0])
            if said.code != KafkaErrorCode.NONE:
                about = f"cluster {self._target.alias}: progress into {place[0]}-{place[1]}"
                raise KafkaProtocolError(said.code, about, self._target.alias, ("topic", place[0], "Write"))

    def _id(self, partition: PartitionMachine) -> str:
        return transactional_id(self._settings.flow, self._settings.group_id, partition.topic, partition.number)


PROGRESS_WITHIN = timedelta(seconds=30)


def _is_running(partition: PartitionMachine, transactions: TransactionState) -> bool:
    ends = partition.phase in SENDING or (partition.phase is Phase.SETTLING and partition.ends_first)
    return partition.transactions is transactions and ends and partition.ends_whole


def _seconds(interval: timedelta | None) -> float | None:
    return None if interval is None else interval.total_seconds()
