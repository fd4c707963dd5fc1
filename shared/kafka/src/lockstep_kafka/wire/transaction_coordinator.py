"""Requests about transactional ids to their coordinators: fence, open, end (KIP-98)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from zlib import crc32

from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.messages.coordinator_codec import TRANSACTION_KEY, coordinator_request, read_coordinator
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.errors import RetriableError
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

CONNECTIONS = 4
"""Number of connections to each coordinator.

A coordinator answers one request of a connection at a time, and each request waits for its log.
"""

WITHIN_S = 60.0
"""Seconds that a coordinator may be moving, or still be ending the last transaction."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.1

FENCED = frozenset({KafkaErrorCode.INVALID_PRODUCER_EPOCH, KafkaErrorCode.PRODUCER_FENCED})
BUSY = frozenset({KafkaErrorCode.COORDINATOR_NOT_AVAILABLE, KafkaErrorCode.CONCURRENT_TRANSACTIONS})
"""Codes of a coordinator that cannot write its log now, or still ends the last transaction."""

NOT_YET = BUSY | {KafkaErrorCode.COORDINATOR_LOAD_IN_PROGRESS, KafkaErrorCode.NOT_COORDINATOR}
"""Codes of a coordinator that is busy or moves."""

NO_ERROR_OF_ITS_OWN = frozenset({KafkaErrorCode.NONE, KafkaErrorCode.OPERATION_NOT_ATTEMPTED})
"""Codes for a partition without an error. With the second one, another partition of the same request failed."""


class Producer(NamedTuple):
    """Producer id and epoch of a transactional id since it was last fenced."""

    id: int
    epoch: int


class ProducerFenced(RetriableError):
    """An error if another producer has taken over the transactional id."""


class TransactionCoordinators:
    """The transaction coordinators of one cluster.

    Each call is repeated while a coordinator still ends the last transaction, for `WITHIN_S` at most. It raises
    KafkaProtocolError, BrokerUnreachable and ProducerFenced.

    `fence` is repeated also while a coordinator moves. `open` and `end` are not. A coordinator that has restarted may
    have left out markers of the last transaction (KAFKA-20734), and what follows in its epoch could then decide about
    it. So they go over the connection of the last `fence` or `connect` only, which a restart closes.
    """

    def __init__(self, cluster: ClusterClient, timeout: timedelta) -> None:
        """Use the connections of this cluster.

        Args:
            cluster: The client of the cluster.
            timeout: The time after which the cluster itself aborts a transaction that is not ended.
        """
        self._cluster = cluster
        self._timeout = timeout
        self._brokers: dict[str, int] = {}
        self._connections: dict[str, Connection] = {}
        """The connection to the coordinator of each transactional id, since it was fenced or connected."""

    def is_connected(self, transactional_id: str) -> bool:
        """Return whether the connection to the id's coordinator is open since the last `fence` or `connect`."""
        connection = self._connections.get(transactional_id)
        return connection is not None and not connection.closed

    async def connect(self, transactional_id: str) -> None:
        """Connect to the id's coordinator again. The last transaction has to be examined before another is opened."""
        self._brokers.pop(transactional_id, None)
        self._connections[transactional_id] = await self._connection(transactional_id)

    async def fence(self, transactional_id: str) -> Producer:
        """Fence the former producer of the transactional id, and return the new one.

        The former producer cannot append any more. A transaction that was open has been committed or aborted.
        """
        answer = await self._ask(
            transactional_id,
            "init_producer_id",
            lambda m: m.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout=self._timeout),
            follows=True,
        )
        return Producer(int(answer.producer_id), int(answer.producer_epoch))

    async def open(self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition]) -> None:
        """Add these partitions to the id's transaction, which is opened if none is open."""
        await self._ask(
            transactional_id,
            "add_partitions_to_txn",
            lambda m: m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer.id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=tuple(
                    m.AddPartitionsToTxnTopic(name=topic, partitions=(number,)) for topic, number in partitions
                ),
            ),
        )

    async def end(self, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort the id's transaction.

        From now on its outcome does not change. Repeat the call if the outcome is unknown: it is idempotent.
        """
        await self._ask(
            transactional_id,
            "end_txn",
            lambda m: m.EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                committed=commit,
            ),
        )

    async def _ask(self, transactional_id: str, api: str, request: Any, *, follows: bool = False) -> Any:
        """Ask the id's coordinator; with `follows`, also one that has moved or restarted."""
        deadline = asyncio.get_running_loop().time() + WITHIN_S
        backoff = Backoff(first=FIRST_PAUSE_S, limit=LONGEST_PAUSE_S)
        while True:
            late = asyncio.get_running_loop().time() > deadline
            try:
                if follows:
                    self._connections[transactional_id] = await self._connection(transactional_id)
                connection = self._connections[transactional_id]
                answer = await connection.request(request(load_message(api, connection.version(api), "request")))
                code = _code(answer)
            except BrokerUnreachable:
                self._brokers.pop(transactional_id, None)
                if late or not follows:
                    raise
                await self._cluster.refresh([])
                code = KafkaErrorCode.COORDINATOR_NOT_AVAILABLE
            if code == KafkaErrorCode.NONE:
                return answer
            context = f"cluster {self._cluster.alias}: {api} of {transactional_id}"
            if code in FENCED:
                raise ProducerFenced(f"{context}: somebody else has taken it over")
            if code == KafkaErrorCode.NOT_COORDINATOR:
                self._brokers.pop(transactional_id, None)
            if code not in (NOT_YET if follows else BUSY) or late:
                raise KafkaProtocolError(
                    code, context, self._cluster.alias, ("transactional-id", transactional_id, "Write")
                )
            await asyncio.sleep(backoff.next())

    async def _connection(self, transactional_id: str) -> Connection:
        broker = self._brokers.get(transactional_id)
        if broker is None:
            broker = self._brokers[transactional_id] = await self._coordinator(transactional_id)
        return await self._cluster.connection(broker, f"transactions-{crc32(transactional_id.encode()) % CONNECTIONS}")

    async def _coordinator(self, transactional_id: str) -> int:
        connection = await self._cluster.any_connection()
        version = connection.version("find_coordinator")
        request = coordinator_request(version, transactional_id, TRANSACTION_KEY)
        coordinator = read_coordinator(await connection.request(request))
        if coordinator.error_code != KafkaErrorCode.NONE:
            if coordinator.error_code == KafkaErrorCode.COORDINATOR_NOT_AVAILABLE:
                raise BrokerUnreachable(f"no coordinator of {transactional_id} yet", self._cluster.alias)
            context = f"cluster {self._cluster.alias}: coordinator of {transactional_id}"
            needs = ("transactional-id", transactional_id, "Write")
            raise KafkaProtocolError(int(coordinator.error_code), context, self._cluster.alias, needs)
        return int(coordinator.node_id)


def _code(answer: Any) -> int:
    """Return the first error code of an answer; 0 if there is none."""
    if hasattr(answer, "error_code"):
        return int(answer.error_code)
    codes = [
        int(partition.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
    real = [code for code in codes if code not in NO_ERROR_OF_ITS_OWN]
    return real[0] if real else max(codes, default=int(KafkaErrorCode.NONE))
