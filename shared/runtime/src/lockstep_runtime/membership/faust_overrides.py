"""Subclasses and wrappers that change what Faust and its aiokafka do, with the reason for each.

Faust and aiokafka wake several times a second whether there is anything to do or not, in a thread of each app. They do
not log in again before a SASL session ends (KIP-368). They lack new versions of requests, and do not report when a
group coordinator last answered. No class or global of theirs is replaced: each app has classes and objects of its own.

The private names that are used here are checked in `tests/contract/test_runtime_libraries.py`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any, Protocol

import faust
import faust.app  # Faust imports its parts when they are first used: do it before the loop runs, not in the midst of it
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError, UnknownError, for_code
from aiokafka.protocol.metadata import MetadataRequest
from faust.transport.drivers import aiokafka as driver
from mode import Service
from mode.supervisors import CrashingSupervisor

from lockstep_kafka.messages.message_versions import EncodedRequest
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.paused_opening import open_with_pause
from lockstep_runtime.membership.aiokafka_requests import with_newer_versions

_log = logging.getLogger("aiokafka.client")
"""The logger of aiokafka's client, whose connections are replaced here."""

SUPERVISOR = CrashingSupervisor
"""Ends the app when an agent fails."""

WAITS_S = 3.0
"""Seconds for which a broker may hold a fetch request of Faust's consumers when no records come.

Until then the broker reads no later request on the same connection. If the SASL session ends in that time, it closes
the connection.
"""

ASK_EVERY_S = 3.0
"""Longest wait of Faust for records in its consumer's thread, in seconds. Faust's default is a second.

Records end the wait. A newly assigned partition is first read when the wait is over.
"""

CHECK_INTERVAL_S = 3.0
"""Seconds between two checks of aiokafka's fetcher for work without a notification. Its default is 0.2."""


def _library_logger(part: str) -> logging.Logger:
    """Return a logger of Faust for a subclass. mode would choose a logger of this module, which is not silent."""
    return logging.getLogger(f"faust.{part}")


class Thread(driver.AIOKafkaConsumerThread):
    """The thread of Faust's consumer."""

    logger = _library_logger("thread")

    async def on_start(self) -> None:
        """Start as Faust does, and give the app aiokafka's consumer, which has not joined its group yet."""
        await super().on_start()
        app: Any = self.app
        app.listen(self._consumer)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        app: Any = self.app
        _use_our_connections(consumer._client, app.connection_settings)
        consumer._consumer_timeout = CHECK_INTERVAL_S
        consumer._fetch_max_wait_ms = round(WAITS_S * 1000)  # Faust lets it for half as long
        return consumer

    @Service.task
    async def _thread_keepalive(self) -> None:
        """Do nothing. Faust wakes this thread's loop every second for queued calls, but queueing wakes it anyway."""
        return

    async def _keepalive2(self) -> None:
        """Do nothing, as `_thread_keepalive`."""
        return


class Consumer(driver.Consumer):
    """A consumer whose thread is a `Thread`."""

    logger = _library_logger("consumer")

    def _new_consumer_thread(self) -> Thread:
        return Thread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:
        return await super()._getmany(active_partitions, max(timeout, ASK_EVERY_S))


class Transport(driver.Transport):
    """A transport whose consumers are `Consumer`s."""

    Consumer = Consumer


class SilentMonitor(faust.Monitor):
    """Faust's monitor without its averages of every second, which Lockstep does not read."""

    logger = _library_logger("sensors")

    @Service.task
    async def _sampler(self) -> None:
        return


class ConsumerOnlyBoot(faust.app.BootStrategy):
    """The services of an app that only consumes. Faust would also start a producer, which makes connections of its own.

    Those would be aiokafka's: without the login of `wire_connection`, and without the newer versions of requests.
    """

    enable_kafka_producer = False


class App(faust.App):
    """A Faust app that writes nothing to disk. It has no tables, so its data folder would stay empty.

    `listen` gets aiokafka's consumer before it joins its group, in the consumer's thread.
    """

    BootStrategy = ConsumerOnlyBoot
    logger = _library_logger("app")
    listen: Callable[[Any], None]
    connection_settings: Mapping[str, Any]
    """Keyword arguments of `Connection`, for each connection to a broker."""

    def _create_directories(self) -> None:
        return

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def follow(self, topic: Any, on_stream: Callable[[Any], Any]) -> None:
        """Give the stream of this topic's events to `on_stream`, as Faust's decorator `agent` does.

        The decorator also reads the caller's source and the path of every module, to search agents in them.
        """
        settings: Any = self.conf
        agent = settings.Agent(
            on_stream,
            app=self,
            channel=topic,
            concurrency=1,
            supervisor_strategy=SUPERVISOR,
            on_error=self._on_agent_error,
        )
        self.agents[agent.name] = agent


# -- connections -------------------------------------------------------------------------------------------------------


class _ResponseFormat:
    """The format of a response to aiokafka. It passes the response's error code, if any, to `note_code`."""

    def __init__(self, struct: Any, note_code: Callable[[int], None]) -> None:
        self._struct = struct
        self._note_code = note_code
        self.is_flexible = bool(struct.FLEXIBLE_VERSION)

    def read_response(self, frame: memoryview) -> Any:
        """Return the answer as aiokafka's class for it."""
        content = BytesIO(frame)
        self._struct.parse_response_header(content)
        answer = self._struct.RESPONSE_TYPE.decode(content)
        if (code := getattr(answer, "error_code", None)) is not None:
            self._note_code(code)
        return answer


class AiokafkaConnection:
    """A `Connection` with the interface of aiokafka's own connections."""

    def __init__(
        self,
        connection: Connection,
        timeout_s: float,
        on_closed: Callable[[Any, CloseReason], None] | None,
        note_code: Callable[[int], None],
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._on_closed = on_closed
        self._note_code = note_code
        connection.on_closed = self._ended

    def _ended(self, cause: BaseException | None) -> None:
        if cause is not None:
            self._report(CloseReason.CONNECTION_BROKEN)

    def _report(self, reason: CloseReason) -> None:
        if self._on_closed is not None:
            self._on_closed(self, reason)

    def connected(self) -> bool:
        """Return whether the connection is open."""
        return not self._connection.closed

    def send(self, request: Any, expect_response: bool = True) -> Awaitable[Any]:  # it only consumes
        """Send a request of aiokafka at once, and return an awaitable of its answer.

        Raises:
            KafkaConnectionError: The connection has ended, or ends before the answer.
        """
        struct = with_newer_versions(request).prepare(self._connection.versions)
        response_format = _ResponseFormat(struct, self._note_code)
        encoded = EncodedRequest(struct.API_KEY, struct.API_VERSION, (struct.encode(),), format=response_format)
        try:
            response = self._connection.send(encoded)
        except BrokerUnreachable as exc:
            raise KafkaConnectionError(str(exc)) from exc
        return self._answer(response)

    async def _answer(self, response: asyncio.Future[Any]) -> Any:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await response
        except BrokerUnreachable as exc:
            raise KafkaConnectionError(str(exc)) from exc

    def close(self, reason: CloseReason | None = None) -> asyncio.Future[None]:
        """Close the connection. Return a future that is done when the socket is closed."""
        if reason is CloseReason.CONNECTION_TIMEOUT and self.connected():
            self._report(reason)
        return self._connection.close()


class LockstepClient(AIOKafkaClient):  # type: ignore[misc]  # aiokafka ships no types
    """aiokafka's client over Lockstep's connections.

    They log in again before a SASL session ends (KIP-368). They pause before they connect again to a broker that
    refuses, where aiokafka would try ten times a second.
    """

    connection_settings: Mapping[str, Any]
    unnamed_code = 0
    """The error code of the last answer, if aiokafka has no name for it and raises UnknownError. Otherwise 0."""
    _sync_task: "asyncio.Task[None] | None"

    async def bootstrap(self) -> None:
        """Learn the brokers from the first bootstrap server that answers.

        Raises:
            KafkaConnectionError: No bootstrap server answers.
        """
        for host, port, _ in self.hosts:
            try:
                connection = await self._open(host, port, None)
                self.cluster.update_metadata(await connection.send(MetadataRequest([])))
            except (OSError, TimeoutError, KafkaError) as exc:
                _log.error('Unable connect to "%s:%s": %s', host, port, exc)
                continue
            if self.cluster.brokers():
                connection.close()
            else:  # of a cluster without topics
                self._conns["bootstrap", ConnectionGroup.DEFAULT] = connection
            break
        else:
            raise KafkaConnectionError(f"Unable to bootstrap from {self.hosts}")
        if self._sync_task is None:
            self._sync_task = asyncio.create_task(self._md_synchronizer())

    async def _get_conn(
        self, node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> AiokafkaConnection | None:
        if (connection := self._connected(node_id, group)) is not None:
            return connection
        async with self._get_conn_lock:
            if (connection := self._connected(node_id, group)) is not None:
                return connection
            broker = self.cluster.broker_metadata(node_id)
            try:
                if broker is None:
                    raise BrokerUnreachable(f"broker {node_id} is not in the metadata")
                opened = await self._open(broker.host, broker.port, self._on_connection_closed)
            except (OSError, TimeoutError) as exc:  # the metadata is most likely out of date
                _log.error("Unable connect to node with id %s: %s", node_id, exc)
                self.force_metadata_update()
                return None
            self._conns[node_id, group] = opened
            return opened

    def _connected(self, node_id: Any, group: ConnectionGroup) -> AiokafkaConnection | None:
        connection: AiokafkaConnection | None = self._conns.get((node_id, group))
        return connection if connection is not None and connection.connected() else None

    async def _open(
        self, host: str, port: int, on_closed: Callable[[Any, CloseReason], None] | None
    ) -> AiokafkaConnection:
        connection = await open_with_pause(host, port, self.connection_settings)
        return AiokafkaConnection(connection, self._request_timeout_ms / 1000, on_closed, self._note_code)

    def _note_code(self, code: int) -> None:
        self.unnamed_code = code if for_code(code) is UnknownError else 0


def _use_our_connections(client: Any, settings: Mapping[str, Any]) -> None:
    """Give our connections to the client that aiokafka's consumer has made. The consumer accepts no other client."""
    client.__class__ = LockstepClient
    client.connection_settings = settings


# -- the group ---------------------------------------------------------------------------------------------------------


UNKNOWN_MEMBER = ""
"""aiokafka's `member_id` after the coordinator has answered a heartbeat with UNKNOWN_MEMBER_ID."""


class GroupListener(Protocol):
    """The receiver of what a group's coordinator answers."""

    def now(self) -> float:
        """Return the seconds of a monotonic clock."""

    def heartbeat_answered(self, asked_at: float) -> None:
        """Note that the coordinator has answered the heartbeat sent at that moment of `now`."""

    def instance_id_is_taken(self) -> bool:
        """Note that the group has removed this member. Return whether another member has its instance id."""

    def group_failed(self, error: BaseException, unnamed_code: int) -> None:
        """Note an error of the group that ends the membership, with the client's `unnamed_code`."""

    def reading_failed(self, error: BaseException) -> None:
        """Note that reading has ended with an error. The member stays in its group."""


def listen_to_group(consumer: Any, listener: GroupListener) -> None:
    """Make aiokafka's consumer report to the listener what its group answers. Call this before the consumer joins.

    aiokafka does not report when its group last answered, nor that another member has its instance id. So its heartbeat
    is wrapped.

    aiokafka raises an error of the group in the read that waits at that moment. If none waits, as before the first
    assignment, the error is lost: the member sends no heartbeat and does not join again. So the method that raises the
    error is wrapped too.
    """
    coordinator = consumer._coordinator
    heartbeat, push = coordinator._do_heartbeat, coordinator._push_error_to_user

    async def reported_heartbeat() -> bool:
        asked_at = listener.now()
        answered: bool = await heartbeat()
        if answered:
            listener.heartbeat_answered(asked_at)
        elif coordinator.member_id == UNKNOWN_MEMBER and listener.instance_id_is_taken():
            # The group session has not ended, so another member joined with the same instance id. To join with it
            # again would fence that member, which would fence this one, and so on.
            coordinator._group_instance_id = None
        return answered

    def reported_error(error: BaseException) -> Any:
        listener.group_failed(error, consumer._client.unnamed_code)
        return push(error)

    def reading_ended(reading: "asyncio.Task[None]") -> None:
        if not reading.cancelled() and (error := reading.exception()) is not None:
            listener.reading_failed(error.__cause__ or error)

    coordinator._do_heartbeat = reported_heartbeat
    coordinator._push_error_to_user = reported_error
    consumer._fetcher._fetch_task.add_done_callback(reading_ended)


def send_leave_group_on_stop(app: App) -> None:
    """Make the app's member send LeaveGroup when the app stops.

    A static member of aiokafka leaves without a request, and its partitions wait until its session ends. A member
    without an instance id sends the request.
    """
    coordinator = getattr(getattr(_thread_of(app), "_consumer", None), "_coordinator", None)
    if coordinator is not None:  # the consumer has started
        coordinator._group_instance_id = None


def stop_without_thread(app: App) -> None:
    """Make the app stop without waiting for its consumer's thread, which ends by itself.

    A Faust app that stops blocks the event loop until the thread has ended. That takes as long as aiokafka needs to
    close its connections, and never ends if closing hangs.
    """
    worker = getattr(_thread_of(app), "_thread", None)
    if worker is not None:
        worker.stop = lambda: None


def _thread_of(app: App) -> Any:
    """Return the service in which Faust's consumer lives, or None before it has started."""
    return getattr(app.consumer, "_thread", None)
