"""A probe of the requests that a broker announces: it may refuse one all the same, or close the connection at it.

Nothing is changed on the cluster. A request names what does not exist, and asks to validate only where it can.
InitProducerId takes a producer id that nobody uses.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from lockstep_kafka.messages.message_versions import make_entity
from lockstep_kafka.session.broker_session import BrokerRequestFailed, BrokerSession
from lockstep_kafka.wire.error_codes import NOT_CARRIED_OUT
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request

NOBODY = "lockstep-nobody"
"""The name of a group, a transactional id and a topic that are on no cluster."""

TRIES = 2
"""Tries on a connection that is closed. A broker that stops closes its connections, too."""

WITHIN_S = 10.0
"""The seconds that all requests together may take."""

_ANY, _LITERAL, _TOPIC = 1, 3, 2
"""Kafka's numbers in requests: any operation or permission, a literal name, the resource type of topics."""


def _of_no_member(m: Any, name: str, topics: tuple[Any, ...] = ()) -> Any:
    """Return a request of a member that a group does not have: no broker creates the group for it."""
    return make_entity(
        getattr(m, name),
        group_id=NOBODY,
        generation_id_or_member_epoch=0,
        member_id=NOBODY,
        group_instance_id=None,
        retention_time=timedelta(milliseconds=-1),
        require_stable=False,
        topics=topics,
    )


def _offset_commit(m: Any) -> Any:
    partition = make_entity(
        m.OffsetCommitRequestPartition,
        partition_index=0,
        committed_offset=0,
        committed_leader_epoch=-1,
        committed_metadata=None,
    )
    topic = make_entity(m.OffsetCommitRequestTopic, name=NOBODY, partitions=(partition,))
    return _of_no_member(m, "OffsetCommitRequest", (topic,))


def _leader_epochs(m: Any) -> Any:
    partition = m.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    topic = m.OffsetForLeaderTopic(topic=NOBODY, partitions=(partition,))
    return make_entity(m.OffsetForLeaderEpochRequest, replica_id=-1, topics=(topic,))


def _add_partitions(m: Any) -> Any:
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=NOBODY,
        v3_and_below_producer_id=-1,
        v3_and_below_producer_epoch=-1,
        v3_and_below_topics=(m.AddPartitionsToTxnTopic(name=NOBODY, partitions=(0,)),),
    )


def _describe_acls(m: Any) -> Any:
    return m.DescribeAclsRequest(
        resource_type_filter=_TOPIC,
        resource_name_filter=NOBODY,
        pattern_type_filter=_LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def _describe_configs(m: Any) -> Any:
    resource = m.DescribeConfigsResource(resource_type=_TOPIC, resource_name=NOBODY, configuration_keys=())
    return make_entity(
        m.DescribeConfigsRequest, resources=(resource,), include_synonyms=False, include_documentation=False
    )


def _alter_configs(m: Any) -> Any:
    resource = m.AlterConfigsResource(resource_type=_TOPIC, resource_name=NOBODY, configs=())
    return m.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)


def _create_partitions(m: Any) -> Any:
    topic = m.CreatePartitionsTopic(name=NOBODY, count=1, assignments=None)
    return m.CreatePartitionsRequest(topics=(topic,), timeout=timedelta(seconds=WITHIN_S), validate_only=True)


_PROBES: Mapping[Request, Callable[[Any], Any]] = MappingProxyType(
    {
        Request.OFFSET_COMMIT: _offset_commit,
        Request.OFFSET_FETCH: lambda m: _of_no_member(m, "OffsetFetchRequest"),
        Request.DESCRIBE_GROUPS: lambda m: make_entity(
            m.DescribeGroupsRequest, groups=(NOBODY,), include_authorized_operations=False
        ),
        Request.LIST_GROUPS: lambda m: m.ListGroupsRequest(),
        Request.INIT_PRODUCER_ID: lambda m: m.InitProducerIdRequest(
            transactional_id=None, transaction_timeout=timedelta(0)
        ),
        Request.OFFSET_FOR_LEADER_EPOCH: _leader_epochs,
        Request.ADD_PARTITIONS_TO_TXN: _add_partitions,
        Request.DESCRIBE_ACLS: _describe_acls,
        Request.CREATE_ACLS: lambda m: m.CreateAclsRequest(creations=()),
        Request.DESCRIBE_CONFIGS: _describe_configs,
        Request.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
        Request.DESCRIBE_LOG_DIRS: lambda m: m.DescribeLogDirsRequest(topics=()),
        Request.CREATE_PARTITIONS: _create_partitions,
        Request.DESCRIBE_CLIENT_QUOTAS: lambda m: m.DescribeClientQuotasRequest(components=(), strict=True),
        Request.DESCRIBE_QUORUM: lambda m: m.DescribeQuorumRequest(topics=()),
        Request.DESCRIBE_PRODUCERS: lambda m: m.DescribeProducersRequest(
            topics=(m.TopicRequest(name=NOBODY, partition_indexes=(0,)),)
        ),
    }
)

PROBED = frozenset(_PROBES)
"""The requests that can be tried without a change of the cluster."""


async def find_refused_requests(
    connect: Callable[[], Awaitable[BrokerSession]], requests: Collection[Request]
) -> frozenset[Request]:
    """Return those of the requests that a broker announces, and does not carry out all the same.

    A request that is not announced in a version of ours is not among them, nor one for which a right is missing. A
    request without an answer ends the probe, and so do `WITHIN_S`.

    Args:
        connect: Opens a connection to the broker.
        requests: The requests to try. Those that are not in `PROBED` are left out.

    Raises:
        SessionRefused: The broker lets us in no more.
    """
    probe = _Probe(connect)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                for request in sorted(PROBED.intersection(requests)):
                    await probe.try_request(request)
    finally:
        probe.close()
    return frozenset(probe.refused)


class _Probe:
    def __init__(self, connect: Callable[[], Awaitable[BrokerSession]]) -> None:
        self._connect = connect
        self._session: BrokerSession | None = None
        self.refused: set[Request] = set()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    async def try_request(self, request: Request) -> None:
        for _ in range(TRIES):
            self._session = self._session or await self._connect()
            try:
                answer = await self._session.ask(request.api_name, _PROBES[request])
            except BrokerRequestFailed as exc:
                if exc.is_unknown:
                    return  # it is not announced
                self.close()
                if not exc.is_closed:
                    raise TimeoutError from exc  # a silent broker would be waited for at each request
            else:
                if not NOT_CARRIED_OUT.isdisjoint(_error_codes(answer)):
                    self.refused.add(request)
                return
        # The broker announced its versions again before the second try, so it is there.
        self.refused.add(request)


def _error_codes(entity: Any) -> Iterator[int]:
    """Yield the error codes of an answer: its own, and those of its entries."""
    if isinstance(entity, tuple):
        for entry in entity:
            yield from _error_codes(entry)
    elif is_dataclass(entity):
        for part in fields(entity):
            if part.name.endswith("error_code"):  # of partitions of a transaction it is `partition_error_code`
                yield int(getattr(entity, part.name))
            else:
                yield from _error_codes(getattr(entity, part.name))
