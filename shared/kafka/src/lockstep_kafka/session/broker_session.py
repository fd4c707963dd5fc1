"""One connection to one broker that remembers how far it came, and asks what librdkafka has no call for.

A client library says that a cluster cannot be reached. `lockstep doctor` says at which step: connection, versions,
token, mechanism or credentials.
"""

import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.conn import collect_hosts
from aiokafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, KafkaError
from aiokafka.protocol.admin import (
    ApiVersionRequest,
    DescribeClientQuotasRequest,
    SaslAuthenticateRequest,
    SaslHandShakeRequest,
)
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

from lockstep_config.clients.token_source import TokenUnavailable
from lockstep_kafka.session.aiokafka_client import client_error_text
from lockstep_kafka.session.newer_versions import OperationsRequest
from lockstep_kafka.session.sasl_session import SessionConnection
from lockstep_rules.clusters.cluster_kind import ApiVersions
from lockstep_state.kafka.kafka_apis import APIS, UnfitRequest, unfit_requests
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.kafka.kafka_requests import KafkaRequest
from lockstep_state.opening_step import OpeningStep

DESCRIBE_QUORUM = 55
METADATA_TOPIC = "__cluster_metadata"


class SessionRefused(Exception):
    """A connection that was not opened: at which step, why, and the mechanisms that the broker offers, where it said
    so."""

    def __init__(self, step: OpeningStep, why: str, offered: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.step = step
        self.why = why
        self.offered = offered


class QuestionRefused(Exception):
    """A broker did not answer a question. `is_denied`: for lack of a permission. `is_unknown`: its version does not
    know the question. `is_closed`: it closed the connection instead."""

    def __init__(self, why: str, *, is_denied: bool = False, is_unknown: bool = False, is_closed: bool = False) -> None:
        super().__init__(why)
        self.is_denied = is_denied
        self.is_unknown = is_unknown
        self.is_closed = is_closed


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


class QuorumAnswer(Response):  # type: ignore[misc]  # aiokafka has no annotations
    """Version 1 (KIP-836), which brokers of 3.3 and newer know."""

    API_KEY = DESCRIBE_QUORUM
    API_VERSION = 1
    _REPLICAS = CompactArray(
        ("replica_id", Int32),
        ("log_end_offset", Int64),
        ("last_fetch_timestamp", Int64),
        ("last_caught_up_timestamp", Int64),
        ("tags", TaggedFields),
    )
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "topics",
            CompactArray(
                ("topic_name", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition_index", Int32),
                        ("error_code", Int16),
                        ("leader_id", Int32),
                        ("leader_epoch", Int32),
                        ("high_watermark", Int64),
                        ("current_voters", _REPLICAS),
                        ("observers", _REPLICAS),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class QuorumQuestion(RequestStruct):  # type: ignore[misc]  # aiokafka has no annotations
    """About the quorum of the cluster's metadata."""

    FLEXIBLE_VERSION = True
    API_KEY = DESCRIBE_QUORUM
    API_VERSION = 1
    RESPONSE_TYPE = QuorumAnswer
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic_name", CompactString("utf-8")),
                ("partitions", CompactArray(("partition_index", Int32), ("tags", TaggedFields))),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class QuorumRequest(Request[QuorumQuestion]):  # type: ignore[misc]  # aiokafka has no annotations
    """About the quorum of the cluster's metadata."""

    API_KEY = DESCRIBE_QUORUM

    def build(self, request_struct_class: type[QuorumQuestion]) -> QuorumQuestion:
        """The question as aiokafka sends it."""
        return request_struct_class([(METADATA_TOPIC, [(0, {})], {})], {})


def bootstrap_addresses(properties: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return host and port of each bootstrap server, in the order of the file."""
    return [(host, port) for host, port, _ in collect_hosts(properties["bootstrap.servers"], randomize=False)]


class BrokerSession(SessionConnection):
    """A connection to one broker. Open it with `open`, and close it."""

    step = OpeningStep.CONNECTION
    """The last step that began."""

    offered: tuple[str, ...] = ()
    """SASL mechanisms that the broker has; empty without SASL."""

    @classmethod
    async def open(cls, host: str, port: int, settings: Mapping[str, Any]) -> "BrokerSession":
        """Connect and log in. `settings` are aiokafka's (`client_settings.aiokafka_connection`, and time-outs). Raises
        SessionRefused."""
        session = cls(host, port, **settings)
        try:
            await session.connect()
        except TokenUnavailable as exc:
            raise SessionRefused(OpeningStep.TOKEN, str(exc), session.offered) from exc
        except (OSError, TimeoutError, KafkaError, EOFError, AssertionError) as exc:
            raise SessionRefused(session.step, _innermost(exc), session.offered) from exc
        session.step = OpeningStep.OPEN
        return session

    async def _do_version_lookup(self) -> None:
        self.step = OpeningStep.VERSIONS
        await super()._do_version_lookup()

    async def _do_sasl_handshake(self) -> None:
        self.step = OpeningStep.MECHANISM
        await super()._do_sasl_handshake()

    def send(self, request: Any, expect_response: bool = True) -> Awaitable[Any]:
        if isinstance(request, SaslAuthenticateRequest):
            self.step = OpeningStep.CREDENTIALS
        sent = super().send(request, expect_response)
        return self._noting_mechanisms(sent) if isinstance(request, SaslHandShakeRequest) else sent

    async def _noting_mechanisms(self, sent: Awaitable[Any]) -> Any:
        answer = await sent
        self.offered = tuple(answer.enabled_mechanisms or ())
        return answer

    @property
    def is_broker(self) -> bool:
        """Whether clients are served here: a KRaft controller has no Metadata."""
        return APIS["metadata"].key in self._versions

    @property
    def versions(self) -> ApiVersions:
        """Return the versions of each request that the broker announces."""
        return dict(self._versions)

    def unfit_requests(self, required: Iterable[str]) -> tuple[UnfitRequest, ...]:
        """Return those of the required requests (of `kafka_apis.APIS`) that this broker knows in no version of ours."""
        return unfit_requests(self._versions, required)

    async def metadata(self) -> tuple[str, tuple[AdvertisedBroker, ...]]:
        """The cluster's id, and its brokers as they are advertised. Raises QuestionRefused."""
        answer = await self._ask(MetadataRequest([]))
        found = sorted((int(one[0]), str(one[1]), int(one[2])) for one in answer.brokers)
        return str(answer.cluster_id), tuple(AdvertisedBroker(*one) for one in found)

    async def says_cluster_operations(self) -> bool:
        """Return whether the broker says what we may do on the cluster. Raises QuestionRefused."""
        try:
            return bool((await self._ask(OperationsRequest())).says_cluster_operations)
        except QuestionRefused as refused:
            if refused.is_unknown:
                return False
            raise

    async def producer_id_code(self) -> int:
        """Return the error code of an answer to InitProducerId. Raises QuestionRefused."""
        return int((await self._ask(InitProducerIdRequest(None, 0))).error_code)

    async def round_trips(self, count: int) -> tuple[float, ...]:
        """Seconds that so many small requests took, one after the other. Raises QuestionRefused."""
        found = []
        for _ in range(count):
            began = time.perf_counter()
            await self._ask(ApiVersionRequest())
            found.append(time.perf_counter() - began)
        return tuple(found)

    async def quotas(self) -> tuple[QuotaEntry, ...]:
        """Every client quota of the cluster. Raises QuestionRefused; it needs DescribeConfigs on the cluster."""
        answer = await self._ask(DescribeClientQuotasRequest([], False))
        _check(answer.error_code, answer.error_message)
        return tuple(_quota_entry(*entry) for entry in answer.entries or ())

    async def controller_clock(self) -> ClockReading:
        """The clock of the active controller, which says the time in its answer (KRaft, Kafka 3.3). Raises
        QuestionRefused; it needs Describe on the cluster."""
        before = time.time()
        answer = await self._ask(QuorumRequest())
        after = time.time()
        _check(answer.error_code)
        for _, partitions, _ in answer.topics:
            for _, code, leader, _, _, voters, _, _ in partitions:
                _check(code)
                at_ms = next((voter[3] for voter in voters if voter[0] == leader), -1)
                if at_ms > 0:
                    return clock_reading(f"controller {leader}", at_ms, before, after)
        raise QuestionRefused("the active controller does not say its time")

    async def _ask(self, request: Any) -> Any:
        try:
            return await self.send(request)
        except (NotImplementedError, IncompatibleBrokerVersion) as exc:
            name = KafkaRequest(request.API_KEY).kafka_name
            raise QuestionRefused(f"the broker knows {name} in no version of ours", is_unknown=True) from exc
        except (OSError, TimeoutError, KafkaError, EOFError) as exc:
            raise QuestionRefused(_innermost(exc), is_closed=isinstance(exc, KafkaConnectionError)) from exc


def clock_reading(node: str, at_ms: float, before_s: float, after_s: float) -> ClockReading:
    """What a node's time of day says of its clock. It was read between two of our own, in Unix seconds."""
    ours_ms = (before_s + after_s) * 500
    return ClockReading(node, at_ms - ours_ms, abs(after_s - before_s) * 500)


def _quota_entry(entity: Any, values: Any) -> QuotaEntry:
    names = {kind: name or "" for kind, name in entity}
    return QuotaEntry(names.get("user"), names.get("client-id"), {str(key): float(value) for key, value in values})


def _check(code: int, message: str | None = None) -> None:
    if code:
        raise QuestionRefused(
            " ".join(filter(None, (message, f"({error_name(code)})"))),
            is_denied=code == KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        )


def _innermost(exc: BaseException) -> str:
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return client_error_text(exc)
