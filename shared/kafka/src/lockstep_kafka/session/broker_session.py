"""A connection to one broker that reports the step at which it failed, and sends requests that librdkafka lacks.

A client library says that a cluster cannot be reached. `lockstep doctor` says at which step: connection, versions,
token, mechanism or credentials.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_config.clients.token_source import TokenUnavailable
from lockstep_kafka.messages.message_versions import load_message, make_entity
from lockstep_kafka.messages.metadata_codec import metadata_request
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ConnectionClosedError, innermost_cause
from lockstep_rules.clusters.client_quotas import ClientQuota
from lockstep_rules.clusters.cluster_kind import ApiVersions
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.opening_step import OpeningStep

METADATA_TOPIC = "__cluster_metadata"

SAYS_OPERATIONS = range(8, 11)
"""Versions of Metadata that report what we may do on the cluster (KIP-430)."""

OPERATIONS_NOT_SAID = -(2**31)
"""The value in place of operations that a broker does not report."""


class SessionRefused(Exception):
    """The error of a connection that could not be opened.

    It has the step that failed, the cause, and the SASL mechanisms that the broker offers if it named them.
    """

    def __init__(self, step: OpeningStep, message: str, offered: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.step = step
        self.message = message
        self.offered = offered


class BrokerRequestFailed(Exception):
    """The error of a request that a broker refused or did not answer.

    `is_denied` is true if a permission is missing, `is_unknown` if the broker announces no version of ours, and
    `is_closed` if it closed the connection instead of an answer.
    """

    def __init__(
        self, message: str, *, is_denied: bool = False, is_unknown: bool = False, is_closed: bool = False
    ) -> None:
        super().__init__(message)
        self.is_denied = is_denied
        self.is_unknown = is_unknown
        self.is_closed = is_closed


@dataclass(frozen=True, slots=True)
class AdvertisedBroker:
    """A broker with its advertised address."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The clock of a node compared with ours.

    It is `ahead_ms` ahead, give or take `error_ms`.
    """

    node: str
    ahead_ms: float
    error_ms: float


class BrokerSession:
    """A connection to one broker, which `open` opens and the caller closes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.offered = connection.offered
        """SASL mechanisms that the broker has. The tuple is empty without SASL."""

    @classmethod
    async def open(cls, host: str, port: int, settings: Mapping[str, Any]) -> "BrokerSession":
        """Connect and log in.

        Args:
            host: The host of the broker.
            port: The port of the broker.
            settings: The settings of a connection (`client_settings.wire_connection`).

        Raises:
            SessionRefused: The connection was not opened.
        """
        connection = Connection(host, port, **settings)
        connection.short_request_s = settings["opening_s"]
        try:
            await connection.connect()
        except TokenUnavailable as exc:
            raise SessionRefused(OpeningStep.TOKEN, str(exc), connection.offered) from exc
        except (OSError, TimeoutError) as exc:
            raise SessionRefused(connection.step, innermost_cause(exc), connection.offered) from exc
        return cls(connection)

    def close(self) -> "asyncio.Future[None]":
        """Close the connection.

        Returns:
            A future that is done when the socket is closed.
        """
        return self._connection.close()

    @property
    def is_broker(self) -> bool:
        """Return whether this is a broker for clients: a KRaft controller has no Metadata."""
        return APIS["metadata"].key in self._connection.versions

    @property
    def versions(self) -> ApiVersions:
        """Return the versions of each request that the broker announces."""
        return self._connection.versions

    async def metadata(self) -> tuple[str, tuple[AdvertisedBroker, ...]]:
        """Return the cluster's id, and its brokers with their advertised addresses, sorted by id.

        Raises:
            BrokerRequestFailed: The broker did not answer.
        """
        answer = await self.ask("metadata", lambda m: metadata_request(m.MetadataRequest.__version__, []))
        brokers = sorted((int(broker.node_id), str(broker.host), int(broker.port)) for broker in answer.brokers)
        return str(getattr(answer, "cluster_id", None)), tuple(AdvertisedBroker(*broker) for broker in brokers)

    async def says_cluster_operations(self) -> bool:
        """Return whether the broker reports what we may do on the cluster.

        Raises:
            BrokerRequestFailed: The broker did not answer.
        """
        oldest, newest = self._connection.versions.get(APIS["metadata"].key, (0, -1))
        version = min(newest, SAYS_OPERATIONS[-1])
        if version < max(oldest, SAYS_OPERATIONS[0]):
            return False
        request = make_entity(
            load_message("metadata", version, "request").MetadataRequest,
            topics=(),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=False,
        )
        answer = await self._call(request)
        return bool(answer.cluster_authorized_operations != OPERATIONS_NOT_SAID)

    async def round_trips(self, count: int) -> tuple[float, ...]:
        """Return the seconds that each of so many small requests took, one after the other.

        Raises:
            BrokerRequestFailed: The broker did not answer.
        """
        seconds = []
        for _ in range(count):
            began = time.perf_counter()
            await self.ask("api_versions", lambda m: m.ApiVersionsRequest())
            seconds.append(time.perf_counter() - began)
        return tuple(seconds)

    async def quotas(self) -> tuple[ClientQuota, ...]:
        """Return every client quota of the cluster.

        Raises:
            BrokerRequestFailed: The broker did not answer, or DescribeConfigs on the cluster is missing.
        """
        answer = await self.ask(
            "describe_client_quotas", lambda m: m.DescribeClientQuotasRequest(components=(), strict=False)
        )
        _check(int(answer.error_code), answer.error_message)
        return tuple(_client_quota(entry) for entry in answer.entries or ())

    async def controller_clock(self) -> ClockReading:
        """Return the clock of the active controller, which is in its answer (KRaft, Kafka 3.3).

        Raises:
            BrokerRequestFailed: The broker did not answer, Describe on the cluster is missing, or it has no time.
        """

        def request(m: Any) -> Any:
            topic = m.TopicData(topic_name=METADATA_TOPIC, partitions=(m.PartitionData(partition_index=0),))
            return m.DescribeQuorumRequest(topics=(topic,))

        before = time.time()
        answer = await self.ask("describe_quorum", request)
        after = time.time()
        _check(int(answer.error_code))
        for partition in (partition for topic in answer.topics for partition in topic.partitions):
            _check(int(partition.error_code))
            leader = int(partition.leader_id)
            caught_up = (
                voter.last_caught_up_timestamp for voter in partition.current_voters if voter.replica_id == leader
            )
            at_ms = int(next(caught_up, -1))
            if at_ms > 0:
                return clock_reading(f"controller {leader}", at_ms, before, after)
        raise BrokerRequestFailed("the active controller does not say its time")

    async def ask(self, api: str, request: Callable[[Any], Any]) -> Any:
        """Return the answer to a request that is made with kio's module of the newest version in common.

        Raises:
            BrokerRequestFailed: The broker did not answer.
        """
        try:
            version = self._connection.version(api)
        except BrokerUnreachable as exc:  # also raised by a controller, which has no Metadata
            reason = f"the broker knows {APIS[api].name} in no version of ours"
            raise BrokerRequestFailed(reason, is_unknown=True) from exc
        return await self._call(request(load_message(api, version, "request")))

    async def _call(self, entity: Any) -> Any:
        try:
            return await self._connection.request(entity)
        except OSError as exc:
            is_closed = isinstance(exc, ConnectionClosedError)
            raise BrokerRequestFailed(innermost_cause(exc), is_closed=is_closed) from exc


def clock_reading(node: str, at_ms: float, before_s: float, after_s: float) -> ClockReading:
    """Return the clock of a node.

    Args:
        node: The name of the node.
        at_ms: The node's time in Unix milliseconds.
        before_s: Our time before it was read, in Unix seconds.
        after_s: Our time after it was read, in Unix seconds.
    """
    ours_ms = (before_s + after_s) * 500
    return ClockReading(node, at_ms - ours_ms, abs(after_s - before_s) * 500)


def _client_quota(entry: Any) -> ClientQuota:
    names = {str(entity.entity_type): entity.entity_name or "" for entity in entry.entity}
    values = {str(value.key): float(value.value) for value in entry.values}
    return ClientQuota(names.get("user"), names.get("client-id"), values)


def _check(code: int, message: str | None = None) -> None:
    if code:
        raise BrokerRequestFailed(
            " ".join(filter(None, (message, f"({error_name(code)})"))),
            is_denied=code == KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        )
