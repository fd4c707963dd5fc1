"""Requests that a cluster may not support.

Their answer is None then, and the caller reads the log instead.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any, TypeVar

from lockstep_kafka.messages.message_versions import load_message, make_entity
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import CONSUMER, ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection_errors import ConnectionClosedError, ProtocolUnfitError
from lockstep_kafka.wire.error_codes import NOT_CARRIED_OUT
from lockstep_kafka.wire.unsupported_requests import UnsupportedCase
from lockstep_state.errors import RetriableError
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

T = TypeVar("T")

CLOSES, AGAIN_AFTER_S = 3, 0.25
"""Closed connections that `ask_again` takes for the answer None, and the seconds that it waits behind each."""

TRIES = 2
"""Number of tries on a closed connection.

A broker that stops closes its connections too, so one close does not show that it lacks the request.
"""

PURPOSE = "optional"
"""The purpose of a separate connection, because a broker may close it on such a request."""


async def active_producers(
    cluster: ClusterClient, tp: TopicPartition, producer_ids: Set[int]
) -> Mapping[int, tuple[int, int]] | None:
    """Return (epoch, last sequence) of those producers that the leader remembers at its log's end.

    The end of the leader's log may not be replicated yet. None means that the cluster does not support
    DescribeProducers.

    Raises:
        KafkaProtocolError: The leader answered with an error code.
        BrokerUnreachable: There is no leader, or it does not answer.
    """
    producers = await _described_producers(cluster, tp)
    if producers is None:
        return None
    return {
        int(p.producer_id): (int(p.producer_epoch), int(p.last_sequence))
        for p in producers
        if p.producer_id in producer_ids and p.last_sequence >= 0
    }


async def open_transaction(cluster: ClusterClient, tp: TopicPartition, producer_id: int) -> int | None:
    """Return the first offset of the transaction that a producer has open in a partition.

    None means that it has none open there, or that the cluster does not support DescribeProducers. Raises as
    `active_producers`.
    """
    for producer in await _described_producers(cluster, tp) or ():
        if producer.producer_id == producer_id and producer.current_txn_start_offset >= 0:
            return int(producer.current_txn_start_offset)
    return None


async def _described_producers(cluster: ClusterClient, tp: TopicPartition) -> Sequence[Any] | None:
    partition = await _ask_leader(
        cluster,
        tp,
        "describe_producers",
        lambda m, _: m.DescribeProducersRequest(topics=(m.TopicRequest(name=tp[0], partition_indexes=(tp[1],)),)),
        "producers",
        needs="Read",
    )
    return None if partition is None else partition.active_producers


async def epoch_end(cluster: ClusterClient, tp: TopicPartition, leader_epoch: int) -> int | None:
    """Return the offset at which the records of this leader epoch and all before it end in the partition's log.

    The leader answers it (OffsetForLeaderEpoch, KIP-101, KIP-320). The result is -1 if the leader does not know, and
    None if the cluster does not support the request.

    Raises:
        KafkaProtocolError: The leader answered with an error code.
        BrokerUnreachable: There is no leader, or it does not answer.
    """

    def request(m: Any, leader: PartitionLeader) -> Any:
        # It is the leader epoch of the later fetch, which shows that no other leader was in between.
        partition = m.OffsetForLeaderPartition(
            partition=tp[1], current_leader_epoch=leader.epoch, leader_epoch=leader_epoch
        )
        topic = m.OffsetForLeaderTopic(topic=tp[0], partitions=(partition,))
        return make_entity(m.OffsetForLeaderEpochRequest, replica_id=CONSUMER, topics=(topic,))

    answer = await _ask_leader(cluster, tp, "offset_for_leader_epoch", request, "leader epochs")
    return None if answer is None else int(answer.end_offset)


async def new_producer(cluster: ClusterClient) -> tuple[int, int] | None:
    """Return a new producer id of the cluster, and its epoch.

    None means that the cluster gives none. Then brokers do not announce InitProducerId, refuse it by version or by
    policy, or close the connection at it each time.

    Raises:
        BrokerUnreachable: No broker answered.
        KafkaProtocolError: A broker answered with another error code.
    """

    async def ask() -> Any:
        connection = await cluster.any_connection()
        if not connection.announces("init_producer_id"):
            return None
        m = load_message("init_producer_id", connection.version("init_producer_id"), "request")
        return await connection.request(
            m.InitProducerIdRequest(transactional_id=None, transaction_timeout=timedelta(0))
        )

    answer = await ask_again(ask)
    if answer is None or answer.error_code in NOT_CARRIED_OUT:
        return None
    if answer.error_code != KafkaErrorCode.NONE:
        raise KafkaProtocolError(int(answer.error_code), f"cluster {cluster.alias}: a producer id", cluster.alias)
    return int(answer.producer_id), int(answer.producer_epoch)


async def ask_again(ask: Callable[[], Awaitable[T]]) -> T | None:
    """Return the answer, or None if the connection is closed each time.

    A connection that is closed instead of an answer is tried again.
    """
    for _ in range(CLOSES):
        try:
            return await ask()
        except ConnectionClosedError:
            await asyncio.sleep(AGAIN_AFTER_S)
    return None


async def _ask_leader(
    cluster: ClusterClient,
    tp: TopicPartition,
    api: str,
    request: Callable[[Any, PartitionLeader], Any],
    subject: str,
    needs: str = "Describe",
) -> Any | None:
    """Return the answer as `ClusterClient.ask_leader` does, or None if the cluster does not support the request.

    The cluster's client remembers the unsupported request.
    """
    for _ in range(TRIES):
        if api in cluster.unsupported:
            return None
        try:
            return await cluster.ask_leader(tp, api, request, subject, needs, purpose=PURPOSE)
        except ProtocolUnfitError:
            cluster.unsupported.add_case(api, UnsupportedCase.ABSENT)
            return None
        except KafkaProtocolError as exc:
            if exc.code not in NOT_CARRIED_OUT:
                raise
            cluster.unsupported.add_case(api, UnsupportedCase.REFUSED)
            return None
        except ConnectionClosedError as exc:
            closed = exc
    try:
        await cluster.end_offset(tp)  # an answer shows that the broker serves the partition
    except RetriableError:
        raise closed from None
    cluster.unsupported.add_case(api, UnsupportedCase.CONNECTION_CLOSED)
    return None
