"""A cluster as a slot sees it: the leaders of partitions, and connections to the leaders."""

import asyncio
import base64
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

from lockstep_config.flow.client_settings import wire_connection
from lockstep_kafka.messages.message_versions import load_message, make_entity
from lockstep_kafka.messages.metadata_codec import PartitionLeader, metadata_request, read_topics
from lockstep_kafka.messages.request_size import RequestSize
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ProtocolUnfitError, TopicDeletedError
from lockstep_kafka.wire.error_codes import LED_ELSEWHERE
from lockstep_kafka.wire.link_bytes import LinkBytes
from lockstep_kafka.wire.throttle_notice import ThrottleNotice
from lockstep_kafka.wire.timeouts import USUAL, Timeouts, timeouts_from
from lockstep_kafka.wire.unsupported_requests import UnsupportedRequests
from lockstep_state.errors import RetriableError
from lockstep_state.kafka.kafka_apis import OF_BOTH
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

CONSUMER, DEBUGGING = -1, -2
"""Replica ids of ListOffsets: a consumer gets replicated offsets, a debugger all (`kafka-wire.md` §2)."""

EARLIEST, LATEST = -2, -1
"""Timestamps of ListOffsets that stand for the two ends of the log."""

BUFFERS = {"receive.buffer.bytes": socket.SO_RCVBUF, "send.buffer.bytes": socket.SO_SNDBUF}
WITH_ISOLATION = 2
"""The first version of ListOffsets that knows the last stable offset."""

UNKNOWN_TOPIC = (KafkaErrorCode.NONE, 0, None)
"""The entry of a topic that no metadata answer has named."""

SYSTEMS_CHOICE = "-1"
"""The value by which the system sizes a socket's buffers, as the network line requires.

Java's clients have 64 and 128 KiB by default, which is too little for a far broker.
"""


class KafkaProtocolError(RetriableError):
    """An error code in a broker's answer.

    `code` is Kafka's number. `needs` is what the request needs there: the kind of the resource, its name, and the
    operation, in the words of `lockstep_config.credentials.permissions`.
    """

    def __init__(self, code: int, context: str, alias: str = "", needs: tuple[str, str, str] | None = None) -> None:
        super().__init__(f"{context}: {error_name(code)}")
        self.code = code
        self.alias = alias
        self.needs = needs


class ClusterClient:
    """The leaders and connections of one cluster.

    One instance belongs to one event loop.
    """

    def __init__(
        self,
        alias: str,
        bootstrap: Sequence[tuple[str, int]],
        settings: Mapping[str, Any],
        buffers: Mapping[int, int] | None = None,
        timeouts: Timeouts = USUAL,
    ) -> None:
        """Prepare a client without a connection.

        Args:
            alias: The alias of the cluster.
            bootstrap: Host and port of each bootstrap server.
            settings: The settings of each connection.
            buffers: The sizes of each socket's buffers (`Connection.open`).
            timeouts: The limits of connections and requests.
        """
        self.alias = alias
        self.timeouts = timeouts
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in bootstrap)
        self._bootstrap = tuple(bootstrap)
        self._settings = dict(settings)
        self._buffers = dict(buffers or {})
        self.quota = ThrottleNotice()
        """The notice of quotas that we are over."""
        self.request_size = RequestSize()
        """The limit of requests with batches."""
        self.unsupported = UnsupportedRequests()
        """The requests that brokers turned out not to support."""
        self._answered: tuple[str, int] | None = None
        self._brokers: dict[int, tuple[str, int]] = {}
        self._racks: dict[tuple[str, int], str] = {}
        self.links = LinkBytes()
        self._leaders: dict[TopicPartition, PartitionLeader] = {}
        self._topics: dict[str, tuple[int, int, UUID | None]] = {}
        """Error code, number of partitions and id of each topic, from the last metadata answer about it."""
        self._connections: dict[tuple[int, str], Connection] = {}
        self._opening: dict[tuple[int, str], asyncio.Lock] = {}
        self.cluster_id = ""

    async def refresh(self, topics: Iterable[str]) -> None:
        """Fetch the metadata of these topics and the list of brokers from any broker that answers.

        Without topics it fetches the brokers alone. It tries the last broker that answered, then all known brokers,
        then each bootstrap address. It never creates a topic.

        Raises:
            BrokerUnreachable: No broker answered. The text names every address that was tried.
            ProtocolUnfitError: No broker served the request, and one of them is too old.
        """
        requested, unfit = sorted(set(topics)), None
        tried: list[str] = []
        latest = [address for address in self._brokers.values() if address == self._answered]
        for address in [*dict.fromkeys([*latest, *self._brokers.values(), *self._bootstrap])]:
            broker = next((b for b, a in self._brokers.items() if a == address), -1 - hash(address) % 2**30)
            try:
                connection = await self._open((broker, "metadata"), address)
                version = connection.version("metadata")
                self._store_metadata(await connection.request(metadata_request(version, requested)), requested)
                self._answered = address
                return
            except BrokerUnreachable as exc:
                tried.append(str(exc))
                unfit = exc if isinstance(exc, ProtocolUnfitError) else unfit
        raise unfit or BrokerUnreachable("; ".join(tried), self.alias)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The ids of the brokers in the last metadata answer, sorted."""
        return tuple(sorted(self._brokers))

    async def topic_names(self) -> list[str]:
        """Return every topic that we may describe.

        Raises:
            BrokerUnreachable: No broker answered.
        """
        await self.refresh([])  # so the broker that is asked is up
        connection = await self.any_connection()
        answer = await connection.request(metadata_request(connection.version("metadata"), None))
        return [str(topic.name) for topic in answer.topics if topic.name is not None]

    def _store_metadata(self, answer: Any, requested: Sequence[str]) -> None:
        self.cluster_id = getattr(answer, "cluster_id", None) or ""  # from version 2 on
        self._brokers = {int(b.node_id): (b.host, int(b.port)) for b in answer.brokers}
        self._racks = {(b.host, int(b.port)): b.rack or "" for b in answer.brokers}
        topics = {topic.name: topic for topic in read_topics(answer, requested)}
        self._leaders = {tp: leader for tp, leader in self._leaders.items() if tp[0] not in topics}
        for topic in topics.values():
            self._topics[topic.name] = topic.code, topic.partitions, topic.topic_id
            for number, broker, epoch in topic.leaders:
                self._leaders[topic.name, number] = PartitionLeader(broker, epoch, topic.topic_id)

    def leader(self, tp: TopicPartition) -> PartitionLeader | None:
        """Return the leader of the partition.

        None means that the leader is not known, that the partition has none now, or that the topic does not exist.
        """
        return self._leaders.get(tp)

    def require_leader(self, tp: TopicPartition) -> PartitionLeader:
        """Return the leader of the partition.

        Raises:
            TopicDeletedError: The topic does not exist.
            BrokerUnreachable: The partition has no leader, or its leader is not known.
        """
        leader = self._leaders.get(tp)
        if leader is None:
            # The metadata hides the leaders of topics that we may not describe.
            trouble = self.trouble(tp[0])
            if trouble == KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise TopicDeletedError(self.alias, tp[0])
            hidden = trouble == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED
            needs = ("topic", tp[0], "Describe") if hidden else None
            raise BrokerUnreachable(f"{tp[0]}-{tp[1]} has no leader", self.alias, needs)
        return leader

    @asynccontextmanager
    async def leader_for_request(self, tp: TopicPartition) -> AsyncIterator[PartitionLeader]:
        """Give the partition's leader for a request, from the metadata if it is not known yet.

        After any error inside, the leader is forgotten, because another broker may lead by then. The next try finds
        out.

        Raises:
            BrokerUnreachable: There is no leader.
        """
        if tp not in self._leaders:
            await self.refresh([tp[0]])
        leader = self.require_leader(tp)
        try:
            yield leader
        except Exception:
            self._leaders.pop(tp, None)
            raise

    def to_error(self, tp: TopicPartition, code: int, context: str, needs: str) -> KafkaProtocolError:
        """Return the error for an answer about the partition.

        If another broker may lead by now, the leader is forgotten until the metadata is fetched again.

        Args:
            tp: The partition.
            code: The error code of the answer.
            context: The beginning of the error's text.
            needs: The operation on the topic that the request needs.
        """
        if code in LED_ELSEWHERE:
            self._leaders.pop(tp, None)
        return KafkaProtocolError(code, context, self.alias, ("topic", tp[0], needs))

    def partitions(self, topic: str) -> int:
        """Return the number of partitions in the last metadata answer; 0 if the topic is not known."""
        return self._topics.get(topic, UNKNOWN_TOPIC)[1]

    def topic_id(self, tp: TopicPartition) -> str:
        """Return the id of the partition's topic as Kafka prints it, from the last metadata; "" if it is not known."""
        topic_id = self._topics.get(tp[0], UNKNOWN_TOPIC)[2]
        return "" if topic_id is None else base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")

    def trouble(self, topic: str) -> int:
        """Return the error code of the topic in the last metadata answer; 0 if there was none."""
        return self._topics.get(topic, UNKNOWN_TOPIC)[0]

    async def connection(self, broker: int, purpose: str) -> Connection:
        """Return the connection to a broker for this purpose, and open it if none is open.

        Raises:
            BrokerUnreachable: The broker is not in the metadata, or cannot be connected to.
        """
        if broker not in self._brokers:
            raise BrokerUnreachable(f"broker {broker} is not in the metadata", self.alias)
        return await self._open((broker, purpose), self._brokers[broker])

    async def any_connection(self) -> Connection:
        """Return a connection to the first broker in the metadata.

        Raises:
            BrokerUnreachable: The metadata has no broker, or it cannot be connected to.
        """
        if not self._brokers:
            raise BrokerUnreachable("no broker in the metadata", self.alias)
        return await self.connection(min(self._brokers), "ask")

    async def _open(self, key: tuple[int, str], address: tuple[str, int]) -> Connection:
        connection = self._connections.get(key)
        if connection is not None and _leads_to(address, connection) and not connection.is_doubtful:
            return connection
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            was_silent = False
            if connection is not None and connection.is_doubtful:
                was_silent = not await connection.is_answered(metadata_request(connection.version("metadata"), []))
            if connection is None or not _leads_to(address, connection):
                if connection is not None:
                    connection.close()
                began = time.monotonic()
                try:
                    connection = await Connection.open(*address, self._settings, self._buffers)
                except BrokerUnreachable as exc:
                    raise BrokerUnreachable(str(exc), self.alias) from exc
                if was_silent and time.monotonic() - began <= Connection.trial_s:
                    self._close_idle(address)  # the broker answers a new connection at once, so it was not slow
                connection.alias, connection.link = self.alias, self.links.of_rack(self._racks.get(address, ""))
                try:
                    for api in OF_BOTH:  # check now: a copy would only lose its connection later
                        connection.version(api)
                except BrokerUnreachable:
                    connection.close()
                    raise
                connection.on_throttled = self.quota.throttled
                connection.short_request_s = self.timeouts.short_request_s
                connection.trusted_s = self.timeouts.trusted_s
                connection.on_silent = partial(self._close_idle, address)
                self._connections[key] = connection
            return connection

    def _close_idle(self, address: tuple[str, int]) -> None:
        """Close the idle connections to a broker after one of them had no answer.

        They are most likely dead too, and each would be waited for.
        """
        for connection in self._connections.values():
            if _leads_to(address, connection) and not connection.unanswered:
                connection.close()

    async def close(self) -> None:
        """Close every connection.

        Requests in flight fail.
        """
        closing = [c.close() for c in self._connections.values() if not c.closed]
        self._connections.clear()
        for done in closing:
            if done is not None:
                await done

    async def end_offset(
        self, tp: TopicPartition, *, timestamp: int = LATEST, replica_id: int = CONSUMER, committed: bool = False
    ) -> int:
        """Return an offset of the partition's log, from its leader.

        `timestamp` -1 asks for the log end, and -2 for the log start. Any other asks for the first offset at or after
        that time in ms, and the result is -1 if there is none. The log end is the high watermark; for `committed` it is
        the last stable offset. For a DEBUGGING replica it is the end of the leader's own log.

        Raises:
            KafkaProtocolError: The leader answered with an error code.
            BrokerUnreachable: There is no leader, or it does not answer.
        """

        def request(m: Any, _: PartitionLeader) -> Any:
            partition = make_entity(
                m.ListOffsetsPartition, partition_index=tp[1], current_leader_epoch=-1, timestamp=timestamp
            )
            topic = m.ListOffsetsTopic(name=tp[0], partitions=(partition,))
            return make_entity(
                m.ListOffsetsRequest, replica_id=replica_id, isolation_level=int(committed), topics=(topic,)
            )

        oldest = WITH_ISOLATION if committed else 0
        return int((await self.ask_leader(tp, "list_offsets", request, "offsets", oldest=oldest)).offset)

    async def ask_leader(
        self,
        tp: TopicPartition,
        api: str,
        request: Callable[[Any, PartitionLeader], Any],
        subject: str,
        needs: str = "Describe",
        purpose: str = "ask",
        oldest: int = 0,
    ) -> Any:
        """Return the answer of the partition's leader to a request about this partition alone.

        Args:
            tp: The partition.
            api: The name of the request in `kafka_apis.APIS`.
            request: A function that makes the request with kio's module of the version.
            subject: What is asked for, for errors.
            needs: The operation on the topic that the request needs.
            purpose: The purpose of the connection.
            oldest: The first version that serves.

        Raises:
            KafkaProtocolError: The leader answered with an error code.
            BrokerUnreachable: There is no leader, or it does not answer.
        """
        leader = self.require_leader(tp)
        connection = await self.connection(leader.broker, purpose)
        answer = await connection.request(
            request(load_message(api, connection.version(api, oldest), "request"), leader)
        )
        partition_answer = answer.topics[0].partitions[0]
        if partition_answer.error_code != KafkaErrorCode.NONE:
            context = f"cluster {self.alias}: {subject} of {tp[0]}-{tp[1]}"
            raise self.to_error(tp, int(partition_answer.error_code), context, needs)
        return partition_answer


def connect_cluster(
    alias: str, properties: Mapping[str, str], client_id: str, timeouts: Timeouts | None = None
) -> ClusterClient:
    """Return a client for the cluster in a client's Java properties (`bootstrap.servers`, security, socket buffers).

    Certificate files are read now.

    Args:
        alias: The alias of the cluster.
        properties: A client's Java properties.
        client_id: The client id for the brokers.
        timeouts: The limits of connections and requests. None means those of the properties.

    Raises:
        BrokerUnreachable: The certificate files cannot be used.
    """
    timeouts = timeouts or timeouts_from(properties)
    try:
        settings = wire_connection(properties, client_id, timeouts.opening_s)
    except OSError as exc:
        raise BrokerUnreachable(f"cluster {alias}: the certificates do not serve: {exc}", alias) from exc
    sizes = {option: int(properties.get(key, SYSTEMS_CHOICE)) for key, option in BUFFERS.items()}
    buffers = {option: size for option, size in sizes.items() if size > 0}
    return ClusterClient(alias, bootstrap_addresses(properties), settings, buffers, timeouts)


def bootstrap_addresses(properties: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return host and port of each bootstrap server, in the order of the file."""
    return [_address(entry) for entry in properties["bootstrap.servers"].split(",") if entry.strip()]


def _leads_to(address: tuple[str, int], connection: Connection) -> bool:
    return not connection.closed and (connection.host, connection.port) == address


def _address(entry: str) -> tuple[str, int]:
    host, _, port = entry.strip().rpartition(":")
    return host.strip("[]"), int(port)
