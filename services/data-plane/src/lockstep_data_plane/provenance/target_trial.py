"""The trial of what a target makes of producer ids: a few events in our own events topic, before the first record
(`core/append_trial.py` judges)."""

import asyncio
from datetime import timedelta
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_data_plane.core.append_trial import GAP, AppendFault, AppendTrial, TrialAnswer
from lockstep_data_plane.record_batch.codecs import NONE
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.outgoing_batch import stamp
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build
from lockstep_data_plane.wire.cluster import ClusterClient, KafkaProtocolError, connect_cluster
from lockstep_data_plane.wire.connection import (
    BrokerUnreachable,
    ConnectionClosedError,
    ProtocolUnfitError,
)
from lockstep_data_plane.wire.error_codes import DENIED
from lockstep_data_plane.wire.log_reader import log_between
from lockstep_data_plane.wire.message_versions import message
from lockstep_data_plane.wire.produce_codec import produce_answer, produce_request
from lockstep_data_plane.wire.transaction_coordinator import ProducerFenced, TransactionCoordinators
from lockstep_protocol.events import Event
from lockstep_protocol.kafka_errors import ErrorMeaning, KafkaErrorCode, error_meaning
from lockstep_protocol.names import events_topic, transactional_id
from lockstep_protocol.offsets import TopicPartition
from lockstep_runtime.util.clock import now_ms

WITHIN = timedelta(seconds=15)
"""How long the replicas have for a batch of the trial."""

TRANSACTIONS = ("find_coordinator", "init_producer_id", "add_partitions_to_txn", "end_txn")
"""The requests of a transaction."""

PASSES_WITHIN_S, AGAIN_AFTER_S = 10.0, 0.25


class TargetTrial:
    """Tries the target of one flow, on two connections of its own."""

    def __init__(self, settings: FlowSettings, clusters: tuple[ClusterClient, ClusterClient] | None = None) -> None:
        """`clusters`: the target, twice. None: by the flow's settings."""
        self._settings = settings
        self._tp: TopicPartition = (events_topic(settings.flow, settings.group_id), 0)
        self._first, self._second = clusters or (self._connect("trial-1"), self._connect("trial-2"))

    def _connect(self, name: str) -> ClusterClient:
        properties = self._settings.clients.data_producer
        return connect_cluster(self._settings.flow.target, properties, client_id(self._settings, name, properties))

    async def close(self) -> None:
        """Close both connections."""
        await self._first.close()
        await self._second.close()

    async def find_faults(self) -> tuple[AppendFault, ...]:
        """Append the trial's records and read them back. The topic may have been created a moment ago, so what passes
        is tried again, `PASSES_WITHIN_S` at most. Raises BrokerUnreachable and KafkaProtocolError."""
        deadline = asyncio.get_running_loop().time() + PASSES_WITHIN_S
        while True:
            try:
                return await self._try()
            except (BrokerUnreachable, KafkaProtocolError) as exc:
                denied = isinstance(exc, KafkaProtocolError) and exc.code in DENIED
                if isinstance(exc, ProtocolUnfitError) or denied or asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _try(self) -> tuple[AppendFault, ...]:
        for cluster in (self._first, self._second):
            await cluster.refresh([self._tp[0]])
        producer_id, epoch = await new_producer(self._first)
        first = await self._append(self._first, producer_id, epoch, 0)
        if not first.is_taken:
            return (AppendFault.IDS_REFUSED,)
        trial = AppendTrial(
            producer_id,
            epoch,
            first,
            again=await self._append(self._first, producer_id, epoch, 0),
            gap=await self._append(self._first, producer_id, epoch, GAP),
            elsewhere=await self._append(self._second, producer_id, epoch, 1),
            next_epoch=await self._append(self._second, producer_id, epoch + 1, 0),
            earlier_epoch=await self._append(self._first, producer_id, epoch, 2),
            log=await self._read_back(first.base_offset),
        )
        return trial.find_faults()

    async def has_transactions(self) -> bool:
        """Return whether a transaction of one record of the trial can be begun and aborted. Raises BrokerUnreachable
        and KafkaProtocolError if that showed nothing."""
        name = transactional_id(self._settings.flow, self._settings.group_id, *self._tp)
        coordinators = TransactionCoordinators(self._first, self._settings.data_plane.transaction_timeout)
        try:
            connection = await self._first.any_connection()
            for api in TRANSACTIONS:  # at once: a coordinator would be asked for a minute
                connection.version(api)
            producer = await coordinators.fence(name)
            await coordinators.open(name, producer, [self._tp])
            await coordinators.end(name, producer, commit=False)
        except (ProtocolUnfitError, ConnectionClosedError, ProducerFenced):
            return False
        except KafkaProtocolError as exc:
            if error_meaning(exc.code) in (ErrorMeaning.RETRIABLE, ErrorMeaning.DENIED):
                raise
            return False
        return True

    async def _append(self, cluster: ClusterClient, producer_id: int, epoch: int, sequence: int) -> TrialAnswer:
        leader = cluster.require_leader(self._tp)
        connection = await cluster.connection(leader.broker, "trial")
        version = connection.version("produce")
        key, value = _event("AppendTried", f"cluster {cluster.alias}", self._settings).encode()
        (outgoing,) = build([PlainRecord(0, now_ms(), key, value, ())], NONE, 2**20, -1)
        data = stamp(outgoing.data, producer_id, epoch, sequence)
        answer: Any = await connection.call(produce_request(version, [(self._tp, leader, data)], WITHIN))
        found = produce_answer(answer.responses[0].partition_responses[0])
        trial = TrialAnswer(found.code, found.base_offset if found.code == KafkaErrorCode.NONE else -1)
        if trial.passes:
            raise self._refused(found.code)
        return trial

    def _refused(self, code: int) -> KafkaProtocolError:
        about = f"cluster {self._first.alias}: trying producer ids in {self._tp[0]}"
        return self._first.refused(self._tp, code, about, "Write")

    async def _read_back(self, offset: int) -> list[Batch]:
        end = await self._first.end_offset(self._tp)
        return [batch async for batches, _ in log_between(self._first, self._tp, offset, end) for batch in batches]


async def new_producer(cluster: ClusterClient) -> tuple[int, int]:
    """Return a producer id that the cluster has never given to anybody, and its epoch. Raises BrokerUnreachable and
    KafkaProtocolError."""
    connection = await cluster.any_connection()
    m = message("init_producer_id", connection.version("init_producer_id"), "request")
    answer: Any = await connection.call(
        m.InitProducerIdRequest(transactional_id=None, transaction_timeout=timedelta(0))
    )
    if answer.error_code != KafkaErrorCode.NONE:
        raise KafkaProtocolError(int(answer.error_code), f"cluster {cluster.alias}: a producer id", cluster.alias)
    return int(answer.producer_id), int(answer.producer_epoch)


def _event(kind: str, subject: str, settings: FlowSettings) -> Event:
    """Return what a record of the trial is: an event, since readers of the topic expect nothing else."""
    return Event(kind=kind, service="data-plane", flow=str(settings.flow), subject=subject, at_ms=now_ms())
