"""One connection to one broker that says how far it came, and asks what librdkafka has no call for.

A client library says that a cluster cannot be reached. `lockstep doctor` says at which step: connection, versions,
token, mechanism or credentials.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep_config.clients.token_source import TokenUnavailable
from lockstep_kafka.messages.message_versions import filled, message
from lockstep_kafka.messages.metadata_codec import metadata_request
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, innermost
from lockstep_rules.clusters.cluster_kind import ApiVersions
from lockstep_state.kafka.kafka_apis import APIS, UnfitRequest, unfit_requests
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.opening_step import OpeningStep

METADATA_TOPIC = "__cluster_metadata"

SAYS_OPERATIONS = range(8, 11)
"""Versions of Metadata that say what we may do on the cluster (KIP-430)."""

OPERATIONS_NOT_SAID = -(2**31)
"""What stands for operations that a broker does not say."""


class SessionRefused(Exception):
    """A connection that was not opened: at which step, why, and the mechanisms that the broker offers, where it said
    so.
    """

    def __init__(self, step: OpeningStep, why: str, offered: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.step = step
        self.why = why
        self.offered = offered


class QuestionRefused(Exception):
    """A broker did not answer a question. `is_denied`: for lack of a permission. `is_unknown`: its version does not
    know the question.
    """

    def __init__(self, why: str, *, is_denied: bool = False, is_unknown: bool = False) -> None:
        super().__init__(why)
        self.is_denied = is_denied
        self.is_unknown = is_unknown


@dataclass(frozen=True, slots=True)
class AdvertisedBroker:
    """A broker at the address that clients are given."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class QuotaEntry:
    """Quotas of one entity. `user` and `client_id` None: the entity does not name one; "": its default."""

    user: str | None
    client_id: str | None
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The time of day of a node, compared with ours. `ahead_ms`: how far it is ahead, give or take `error_ms`."""

    node: str
    ahead_ms: float
    error_ms: float


class BrokerSession:
    """A connection to one broker. Open it with `open`, and close it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.offered = connection.offered
        """SASL mechanisms that the broker has; empty without SASL."""

    @classmethod
    async def open(cls, host: str, port: int, settings: Mapping[str, Any]) -> "BrokerSession":
        """Connect and log in. `settings` are those of a connection (`client_settings.wire_connection`). Raises
        SessionRefused.
        """
        connection = Connection(host, port, **settings)
        connection.question_s = settings["opening_s"]
        try:
            await connection.connect()
        except TokenUnavailable as exc:
            raise SessionRefused(OpeningStep.TOKEN, str(exc), connection.offered) from exc
        except (OSError, TimeoutError) as exc:
            raise SessionRefused(connection.step, innermost(exc), connection.offered) from exc
        return cls(connection)

    def close(self) -> "asyncio.Future[None]":
        """Close the connection. Returns a future that is done when the socket is closed."""
        return self._connection.close()

    @property
    def is_broker(self) -> bool:
        """Whether clients are served here: a KRaft controller has no Metadata."""
        return APIS["metadata"].key in self._connection.versions

    @property
    def versions(self) -> ApiVersions:
        """Return the versions of each request that the broker announces."""
        return self._connection.versions

    def unfit_requests(self, required: Iterable[str]) -> tuple[UnfitRequest, ...]:
        """Return those of the required requests (of `kafka_apis.APIS`) that this broker knows in no version of ours."""
        return unfit_requests(self._connection.versions, required)

    async def metadata(self) -> tuple[str, tuple[AdvertisedBroker, ...]]:
        """The cluster's id, and its brokers as they are advertised. Raises QuestionRefused."""
        answer = await self._ask("metadata", lambda m: metadata_request(m.MetadataRequest.__version__, []))
        brokers = sorted((int(broker.node_id), str(broker.host), int(broker.port)) for broker in answer.brokers)
        return str(getattr(answer, "cluster_id", None)), tuple(AdvertisedBroker(*broker) for broker in brokers)

    async def says_cluster_operations(self) -> bool:
        """Return whether the broker says what we may do on the cluster. Raises QuestionRefused."""
        oldest, newest = self._connection.versions.get(APIS["metadata"].key, (0, -1))
        version = min(newest, SAYS_OPERATIONS[-1])
        if version < max(oldest, SAYS_OPERATIONS[0]):
            return False
        request = filled(
            message("metadata", version, "request").MetadataRequest,
            topics=(),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=False,
        )
        answer = await self._call(request)
        return bool(answer.cluster_authorized_operations != OPERATIONS_NOT_SAID)

    async def round_trips(self, count: int) -> tuple[float, ...]:
        """Seconds that so many small requests took, one after the other. Raises QuestionRefused."""
        seconds = []
        for _ in range(count):
            began = time.perf_counter()
            await self._ask("api_versions", lambda m: m.ApiVersionsRequest())
            seconds.append(time.perf_counter() - began)
        return tuple(seconds)

    async def quotas(self) -> tuple[QuotaEntry, ...]:
        """Every client quota of the cluster. Raises QuestionRefused; it needs DescribeConfigs on the cluster."""
        answer = await self._ask(
            "describe_client_quotas", lambda m: m.DescribeClientQuotasRequest(components=(), strict=False)
        )
        _check(int(answer.error_code), answer.error_message)
        return tuple(_quota_entry(entry) for entry in answer.entries or ())

    async def controller_clock(self) -> ClockReading:
        """The clock of the active controller, which says the time in its answer (KRaft, Kafka 3.3). Raises
        QuestionRefused; it needs Describe on the cluster.
        """

        def request(m: Any) -> Any:
            topic = m.TopicData(topic_name=METADATA_TOPIC, partitions=(m.PartitionData(partition_index=0),))
            return m.DescribeQuorumRequest(topics=(topic,))

        before = time.time()
        answer = await self._ask("describe_quorum", request)
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
        raise QuestionRefused("the active controller does not say its time")

    async def _ask(self, api: str, request: Callable[[Any], Any]) -> Any:
        """Return the answer to a request that is made with kio's module of the newest version in common."""
        try:
            version = self._connection.version(api)
        except BrokerUnreachable as exc:  # also a controller's, which has no Metadata
            why = f"the broker knows {APIS[api].name} in no version of ours"
            raise QuestionRefused(why, is_unknown=True) from exc
        return await self._call(request(message(api, version, "request")))

    async def _call(self, entity: Any) -> Any:
        try:
            return await self._connection.call(entity)
        except OSError as exc:
            raise QuestionRefused(innermost(exc)) from exc


def clock_reading(node: str, at_ms: float, before_s: float, after_s: float) -> ClockReading:
    """What a node's time of day says of its clock. It was read between two of our own, in Unix seconds."""
    ours_ms = (before_s + after_s) * 500
    return ClockReading(node, at_ms - ours_ms, abs(after_s - before_s) * 500)


def _quota_entry(entry: Any) -> QuotaEntry:
    names = {str(entity.entity_type): entity.entity_name or "" for entity in entry.entity}
    values = {str(value.key): float(value.value) for value in entry.values}
    return QuotaEntry(names.get("user"), names.get("client-id"), values)


def _check(code: int, message: str | None = None) -> None:
    if code:
        raise QuestionRefused(
            " ".join(filter(None, (message, f"({error_name(code)})"))),
            is_denied=code == KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        )
