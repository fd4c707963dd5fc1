"""The trial of a target's producer ids, with a few events in the flow's own events topic, before the first record.

`core/append_trial.py` judges the answers.
"""

import asyncio
from datetime import timedelta
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_data_plane.core.append_trial import GAP, AppendFault, AppendTrial, TrialAnswer
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.codecs import NONE
from lockstep_data_plane.record_batch.layout import Batch, stamp
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build
from lockstep_kafka.messages.produce_codec import produce_answer, produce_request
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError, connect_cluster
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ConnectionClosedError, ProtocolUnfitError
from lockstep_kafka.wire.error_codes import BACK_PRESSURE, DENIED
from lockstep_kafka.wire.optional_requests import ask_again, new_producer
from lockstep_kafka.wire.transaction_coordinator import Producer, ProducerFenced, TransactionCoordinators
from lockstep_runtime.util.clock import now_ms
from lockstep_state.events import Event
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode, error_meaning
from lockstep_state.names import events_topic, transactional_id
from lockstep_state.offsets import TopicPartition

WITHIN = timedelta(seconds=15)
"""The time that the replicas have for a batch of the trial."""

TRANSACTIONS = ("find_coordinator", "init_producer_id", "add_partitions_to_txn", "end_txn")
"""The requests of a transaction."""

PASSES_WITHIN_S, AGAIN_AFTER_S = 10.0, 0.25

TRIES = 3
"""Tries of a transaction that another driver of the flow may disturb."""

NO_PRODUCER = -1

FINAL = DENIED | {KafkaErrorCode.UNSUPPORTED_VERSION}
"""Errors that do not pass within seconds."""


class TargetTrial:
    """The trial of one flow's target, on two connections of its own.

    Args:
        settings: The settings of the flow.
        clusters: The target, twice. None: two new connections by the settings.
    """

    def __init__(self, settings: FlowSettings, clusters: tuple[ClusterClient, ClusterClient] | None = None) -> None:
        self._settings = settings
        self._tp: TopicPartition = (events_topic(settings.flow, settings.group_id), 0)
        self._client, self._second_client = clusters or (self._connect("trial-1"), self._connect("trial-2"))

    def _connect(self, name: str) -> ClusterClient:
        properties = self._settings.clients.data_producer
        return connect_cluster(self._settings.flow.target, properties, client_id(self._settings, name, properties))

    async def close(self) -> None:
        """Close both connections."""
        await self._client.close()
        await self._second_client.close()

    async def find_faults(self) -> tuple[AppendFault, ...]:
        """Append the trial's records, read them back, and return the target's faults.

        The topic may have been created a moment ago, so errors that may pass are tried again, `PASSES_WITHIN_S` at
        most. Raises BrokerUnreachable and KafkaProtocolError.
        """
        deadline = asyncio.get_running_loop().time() + PASSES_WITHIN_S
        while True:
            try:
                return await self._try()
            except (BrokerUnreachable, KafkaProtocolError) as exc:
                is_final = isinstance(exc, KafkaProtocolError) and exc.code in FINAL
                if isinstance(exc, ProtocolUnfitError) or is_final or asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _try(self) -> tuple[AppendFault, ...]:
        for cluster in (self._client, self._second_client):
            await cluster.refresh([self._tp[0]])
        producer = await new_producer(self._client)
        if producer is None:
            await self._append_plain()
            return (AppendFault.IDS_ABSENT,)
        producer_id, epoch = producer
        first = await self._append(self._client, producer_id, epoch, 0)
        if not first.is_taken:
            await self._append_plain(first)
            return (AppendFault.IDS_REFUSED,)
        again = await self._append(self._client, producer_id, epoch, 0)
        gap = await self._append(self._client, producer_id, epoch, GAP)
        elsewhere = await self._append(self._second_client, producer_id, epoch, 1)
        next_epoch = await self._append(self._second_client, producer_id, epoch + 1, 0)
        earlier_epoch = await self._append(self._client, producer_id, epoch, 2)
        last = max(answer.base_offset for answer in (first, again, gap, elsewhere, next_epoch, earlier_epoch))
        log = await self._read_back(first.base_offset, last)
        trial = AppendTrial(producer_id, epoch, first, again, gap, elsewhere, next_epoch, earlier_epoch, log)
        return trial.find_faults()

    async def _append_plain(self, with_id: TrialAnswer | None = None) -> None:
        """Append a batch without producer id, after `with_id` answered one that had an id.

        Raises KafkaProtocolError if it is refused too: then the refusal says nothing of producer ids.
        """
        plain = await self._append(self._client, NO_PRODUCER, NO_PRODUCER, NO_PRODUCER)
        if not plain.is_taken:
            raise self._refused((with_id or plain).code)

    async def has_transactions(self) -> bool:
        """Return whether transactions do what a copy needs of them.

        A record of the trial is aborted, the log shows it as aborted, and a fenced producer begins no transaction.
        Raises BrokerUnreachable and KafkaProtocolError if that cannot be tried.
        """
        for _ in range(TRIES):
            try:
                connection = await self._client.any_connection()
                for api in TRANSACTIONS:  # at once: a coordinator would be asked for a minute
                    connection.version(api)
                return await self._try_transaction()
            except ProducerFenced:
                await asyncio.sleep(AGAIN_AFTER_S)  # another driver of the flow tries it now
            except (ProtocolUnfitError, ConnectionClosedError):
                return False
            except KafkaProtocolError as exc:
                if exc.code in BACK_PRESSURE or error_meaning(exc.code) in (
                    ErrorMeaning.RETRIABLE,
                    ErrorMeaning.DENIED,
                ):
                    raise
                return False
        return False

    async def _try_transaction(self) -> bool:
        name = transactional_id(self._settings.flow, self._settings.group_id, *self._tp)
        coordinators = TransactionCoordinators(self._client, self._settings.data_plane.transaction_timeout)
        producer = await coordinators.fence(name)
        await coordinators.open(name, producer, [self._tp])
        answer = await self._append(self._client, *producer, 0, in_transaction=name)
        await coordinators.end(name, producer, commit=False)
        if not (answer.is_taken and await self._is_aborted(producer, answer.base_offset)):
            return False
        await coordinators.fence(name)
        try:
            await coordinators.open(name, producer, [self._tp])
        except ProducerFenced:
            return True
        return False

    async def _is_aborted(self, producer: Producer, offset: int) -> bool:
        """Return whether the log has the batch as part of an aborted transaction of the producer.

        The marker comes a moment after the answer.
        """
        deadline = asyncio.get_running_loop().time() + PASSES_WITHIN_S
        while asyncio.get_running_loop().time() < deadline:
            async for batches, aborted in log_between(self._client, self._tp, offset, offset + 1, "read_committed"):
                for batch in batches:
                    is_held = aborted.holds(batch)
                    if batch.base_offset == offset:
                        return is_held and (batch.producer_id, batch.producer_epoch) == producer
            await asyncio.sleep(AGAIN_AFTER_S)
        return False

    async def _append(
        self, cluster: ClusterClient, producer_id: int, epoch: int, sequence: int, in_transaction: str | None = None
    ) -> TrialAnswer:
        """Return the answer to one batch. A connection that is closed each time is an answer, too."""
        answer = await ask_again(lambda: self._append_once(cluster, producer_id, epoch, sequence, in_transaction))
        return TrialAnswer(KafkaErrorCode.NETWORK_EXCEPTION) if answer is None else answer

    async def _append_once(
        self, cluster: ClusterClient, producer_id: int, epoch: int, sequence: int, in_transaction: str | None
    ) -> TrialAnswer:
        leader = cluster.require_leader(self._tp)
        connection = await cluster.connection(leader.broker, "trial")
        version = connection.version("produce")
        key, value = _event("AppendTried", f"cluster {cluster.alias}", self._settings).encode()
        (outgoing,) = build([PlainRecord(0, now_ms(), key, value, ())], NONE, 2**20, -1)
        data = stamp(outgoing.data, producer_id, epoch, sequence, transactional=in_transaction is not None)
        request = produce_request(version, [(self._tp, leader, data)], WITHIN, in_transaction)
        answer: Any = await connection.request(request)
        produced = produce_answer(answer.responses[0].partition_responses[0])
        trial = TrialAnswer(produced.code, produced.base_offset if produced.code == KafkaErrorCode.NONE else -1)
        if trial.passes or produced.code in BACK_PRESSURE:
            raise self._refused(produced.code)
        return trial

    def _refused(self, code: int) -> KafkaProtocolError:
        context = f"cluster {self._client.alias}: trying producer ids in {self._tp[0]}"
        return self._client.to_error(self._tp, code, context, "Write")

    async def _read_back(self, offset: int, last_offset: int) -> list[Batch]:
        """Return the log from `offset` to the batch at `last_offset`, which was acknowledged.

        A new leader learns a little later that the batch is replicated.
        """
        deadline = asyncio.get_running_loop().time() + PASSES_WITHIN_S
        while (end := await self._client.end_offset(self._tp)) <= last_offset:
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(AGAIN_AFTER_S)
        return [batch async for batches, _ in log_between(self._client, self._tp, offset, end) for batch in batches]


def _event(kind: str, subject: str, settings: FlowSettings) -> Event:
    """Return an event as a record of the trial, because readers of the topic expect nothing else."""
    return Event(kind=kind, service="data-plane", flow=str(settings.flow), subject=subject, at_ms=now_ms())
