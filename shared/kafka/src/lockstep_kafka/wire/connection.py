"""One connection to one broker: kio's typed messages over aiokafka's connection.

aiokafka opens the socket and does TLS and SASL, again before a session ends (`lockstep_kafka.session.sasl_session`).
Its own messages end at Fetch 11 and Produce 8, so requests and answers are kio's. The two requests that are sent for
every record are written here (`produce_codec.py`, `fetch_codec.py`). Once the connection is open its frames go past
asyncio's streams (`frame_protocol.py`)."""

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from math import inf
from typing import Any, NamedTuple

from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError

from lockstep_kafka.common.asyncio_util import error_retrieved
from lockstep_kafka.common.auth_errors import NOT_A_BROKER, login_name, refused_login
from lockstep_kafka.session.sasl_session import SessionConnection
from lockstep_kafka.wire.flexible_encoding import NO_TAGS
from lockstep_kafka.wire.frame_protocol import EncodedRequest, FrameProtocol
from lockstep_kafka.wire.link_bytes import LinkCount
from lockstep_kafka.wire.message_versions import MessageFormat, encoded, message_format
from lockstep_state.errors import RetriableError
from lockstep_state.kafka.kafka_apis import APIS, NO_VERSIONS, versions_text
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence

_NUMBER = struct.Struct(">i")
_HEADER = struct.Struct(">hhi")
"""API, version, number of the request. The client's id comes behind them, then the tags, of which we have none, where a
version has any."""
ANSWER_BYTES = 256 * 1024 * 1024
"""An answer may be longer by so much than what was asked for. A broker sends a batch whole that is larger, and the
metadata of everything."""

NO_TIME = timedelta(0)


class BrokerUnreachable(RetriableError, ConnectionError):
    """A broker cannot be reached, refuses us, or went away while it owed an answer. `alias` names the cluster where
    known, `needs` the permission without which it would not say more (as `KafkaProtocolError`)."""

    def __init__(self, sentence: str, alias: str = "", needs: tuple[str, str, str] | None = None) -> None:
        super().__init__(sentence)
        self.alias = alias
        self.needs = needs


class ConnectionClosedError(BrokerUnreachable):
    """The broker closed the connection while it owed an answer."""


class ProtocolUnfitError(BrokerUnreachable):
    """The broker and we know no version of a request in common, or it does not know the request at all."""

    def __init__(self, alias: str, reason: Reason) -> None:
        super().__init__(format_sentence(reason), alias)
        self.reason = reason


class TopicDeletedError(BrokerUnreachable):
    """The partition has no leader, for the cluster has no such topic: it was deleted."""

    def __init__(self, alias: str, topic: str) -> None:
        super().__init__(f"{topic} is not there", alias)
        self.topic = topic


class _PendingRequest(NamedTuple):
    """How an answer is read, when it was asked for, and which callback sees it at once. It is in the place of
    aiokafka's own request object."""

    format: MessageFormat
    at: float
    seen: Callable[[Any], None] | None
    largest: int

    def read(self, frame: memoryview, correlation_id: int) -> Any:
        """The answer, which must have this correlation id. Raises KafkaConnectionError."""
        if _NUMBER.unpack_from(frame)[0] != correlation_id:
            raise KafkaConnectionError("the broker answered another question than the one that was next")
        return self.format.read_answer(frame)


class Connection(SessionConnection):
    """A connection that also asks kio's messages. Answers come in the order of the questions (the broker mutes a
    connection until its answer is out), so one connection per outstanding long poll.

    An answer may say that we are over a quota, and for how long the broker reads nothing more of this connection
    (KIP-219). `call` waits for so long. A caller of `ask` checks `throttled_for` before, or awaits `throttle_over`."""

    _held: deque[tuple[bytes, int, _PendingRequest, asyncio.Future[Any]]]
    """What was asked while a login is due, in order."""

    alias = ""
    """The cluster of the broker, as errors name it."""

    round_trip_s = 0.0
    """The shortest time that an answer took: no round trip is longer. 0 until the connection is open."""

    resting_until = 0.0
    """The moment (of `time.monotonic`) before which nothing is to be asked."""

    question_s = 30.0
    """How long `call` waits for an answer."""

    trusted_s = 30.0
    """A connection that was silent for so long is tried before it is used: a firewall may have forgotten it."""

    _last_action = inf
    """When something was asked or answered last. Of the class as well: what was never opened is not silent."""

    trial_s = 1.0
    """How long that may take. If there is no answer another connection is opened, which costs little."""

    on_silent: Callable[[], None] | None = None
    """Called when the connection is given up, for there was no answer."""

    on_throttled: Callable[[float, float], None] | None = None
    """Called with the seconds that the broker wants us to stay away, and the moment (of `time.monotonic`)."""

    @classmethod
    async def open(
        cls, host: str, port: int, settings: Mapping[str, Any], buffers: Mapping[int, int] | None = None
    ) -> "Connection":
        """Connect, authenticate, learn the broker's versions. `buffers`: sizes of the socket's (SO_RCVBUF, SO_SNDBUF)
        where they are not to be the system's. Raises BrokerUnreachable with the address and the cause."""
        connection = cls(host, port, **settings)
        try:
            await connection.connect()
        except (OSError, TimeoutError, KafkaError, EOFError) as exc:
            raise BrokerUnreachable(f"{host}:{port}: {connection._why(exc)}") from exc
        for option, size in (buffers or {}).items():
            connection._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, size)
        # From now on each answer is taken from the socket by `FrameProtocol`; nothing is on its way at this moment.
        connection._read_task.cancel()
        on_lost = partial(connection.close, CloseReason.CONNECTION_BROKEN)
        frames = FrameProtocol(connection._protocol, connection._answered, on_lost, connection._largest_answer)
        connection._writer.transport.set_protocol(frames)
        return connection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held, self.link = deque(), LinkCount()
        client = self._client_id.encode()
        named = struct.pack(f">h{len(client)}s", len(client), client)
        self._client_id_headers = named, named + NO_TAGS

    def _largest_answer(self) -> int:
        """Return how long the next answer may be."""
        asked = self._requests[0][1] if self._requests else None
        return asked.largest if isinstance(asked, _PendingRequest) else ANSWER_BYTES

    def _answered(self, frame: memoryview) -> None:
        if not self._requests:
            raise KafkaConnectionError("the broker answered a question that was not asked")
        correlation_id, asked, future = self._requests[0]
        if not isinstance(asked, _PendingRequest):
            self._handle_frame(bytes(frame))  # aiokafka's own question: a login
            return
        self.link.received += _NUMBER.size + len(frame)
        entity = asked.read(frame, correlation_id)
        self._requests.popleft()
        self._note_drained()
        self._last_action = now = time.monotonic()
        self.round_trip_s = min(self.round_trip_s, now - asked.at)
        # The oldest versions say nothing of it: their brokers answer late instead.
        if (throttled_s := getattr(entity, "throttle_time", NO_TIME).total_seconds()) > 0:
            self.rest(throttled_s)
            if self.on_throttled is not None:
                self.on_throttled(throttled_s, now)
        if future.done():
            return
        try:
            if asked.seen is not None:
                asked.seen(entity)
        except Exception as exc:  # noqa: BLE001  # for the task that awaits the answer, as if it had been raised there
            future.set_exception(exc)
        else:
            future.set_result(entity)

    async def _do_version_lookup(self) -> None:
        asked_at = time.monotonic()
        await super()._do_version_lookup()
        self.round_trip_s = time.monotonic() - asked_at

    def version(self, api: str, oldest: int = 0) -> int:
        """Return the newest version of an API that both sides know. `oldest`: none before it serves. Raises
        ProtocolUnfitError if there is none."""
        ours = APIS[api].since(oldest)
        theirs = self._versions.get(ours.key, NO_VERSIONS)
        version = ours.common_version(*theirs)
        if version is not None:
            return version
        address = f"{self.host}:{self.port}"
        if api == "metadata" and theirs[1] < 0:
            raise BrokerUnreachable(f"{address}: {NOT_A_BROKER}", self.alias)
        reason = ReasonCode.REQUEST_UNFIT.to_reason(
            cluster=self.alias,
            broker=address,
            request=ours.name,
            theirs=versions_text(*theirs),
            ours=versions_text(ours.oldest, ours.newest),
        )
        raise ProtocolUnfitError(self.alias, reason)

    def announces(self, api: str) -> bool:
        """Return whether both sides know an API in a version."""
        return APIS[api].common_version(*self._versions.get(APIS[api].key, NO_VERSIONS)) is not None

    def ask(self, entity: Any, seen: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        """Send a request, and return its answer's future. It is sent at once unless the connection is to log in again
        first. The future fails with BrokerUnreachable or KafkaConnectionError when the connection ends first. Raises
        BrokerUnreachable when the connection is closed already.

        `seen` is given the answer as soon as it is read, a turn of the event loop before any task that awaits the
        future. The future has what it raises."""
        if self._writer is None:
            raise BrokerUnreachable(f"{self.host}:{self.port}: the connection is closed")
        key, version, parts, asked_bytes = entity if isinstance(entity, EncodedRequest) else encoded(entity)
        correlation_id = self._next_correlation_id()
        message = message_format(key, version)
        client_id_header = self._client_id_headers[message.is_flexible]
        size = _HEADER.size + len(client_id_header) + sum(map(len, parts))
        frame = b"".join((_NUMBER.pack(size), _HEADER.pack(key, version, correlation_id), client_id_header, *parts))
        future: asyncio.Future[Any] = self._loop.create_future()
        pending = _PendingRequest(message, time.monotonic(), seen, asked_bytes + ANSWER_BYTES)
        asked = (frame, correlation_id, pending, future)
        self.begin_overdue_login()
        if self.holding:
            self._held.append(asked)
        else:
            self._put(*asked)
        return future

    def _put(self, frame: bytes, correlation_id: int, asked: _PendingRequest, future: asyncio.Future[Any]) -> None:
        self._requests.append((correlation_id, asked, future))
        self.link.sent += len(frame)
        self._last_action = time.monotonic()
        try:
            self._writer.write(frame)
        except OSError as exc:
            future.add_done_callback(error_retrieved)  # the error that is raised here says the same
            self.close()
            raise ConnectionClosedError(f"{self.host}:{self.port}: {exc}") from exc

    def _release(self) -> None:
        while self._held and self._writer is not None:
            self._put(*self._held.popleft())
        super()._release()

    def close(self, reason: CloseReason | None = None, exc: BaseException | None = None) -> Any:
        while self._held:
            error = KafkaConnectionError(f"Connection at {self.host}:{self.port} closed")
            error.__cause__ = exc
            future = self._held.popleft()[-1]
            if not future.done():
                future.set_exception(error)
        return super().close(reason, exc)

    def rest(self, seconds: float) -> None:
        """Let nothing be asked for so long, because the broker wants it so."""
        self.resting_until = max(self.resting_until, time.monotonic() + seconds)

    @property
    def throttled_for(self) -> float:
        """Seconds for which nothing is to be asked, for we are over a quota; 0: ask."""
        return max(0.0, self.resting_until - time.monotonic()) if self.resting_until else 0.0

    async def throttle_over(self) -> None:
        """Wait until the connection may be asked something."""
        while (seconds := self.throttled_for) > 0:
            await asyncio.sleep(seconds)

    async def call(self, entity: Any) -> Any:
        """Ask as soon as that may be, and wait. Raises BrokerUnreachable when no answer comes in time; the connection
        is then closed, since later answers on it could not come either."""
        await self.throttle_over()
        try:
            async with asyncio.timeout(self.question_s):
                return await self.ask(entity)
        except TimeoutError as exc:
            self.give_up()
            raise BrokerUnreachable(f"{self.host}:{self.port}: no answer within {self.question_s:g} s") from exc
        except KafkaError as exc:
            raise ConnectionClosedError(f"{self.host}:{self.port}: {self._why(exc)}") from exc

    def give_up(self) -> None:
        """Close the connection, for its broker does not answer."""
        if not self.closed:
            self.close()
            if self.on_silent is not None:
                self.on_silent()

    @property
    def is_doubtful(self) -> bool:
        """Return whether the connection was silent for so long that it is to be tried before it is used."""
        silent_s = time.monotonic() - self._last_action
        return silent_s > self.trusted_s and not self.unanswered and not self.closed and not self.throttled_for

    async def is_answered(self, entity: Any) -> bool:
        """Ask something that every broker answers at once. Return whether it did; if not, the connection is closed."""
        try:
            async with asyncio.timeout(self.trial_s + 2 * self.round_trip_s):
                await self.ask(entity)
        except (TimeoutError, BrokerUnreachable, KafkaError):
            self.close()
        return not self.closed

    def _why(self, exc: BaseException) -> str:
        login = {"sasl.mechanism": self._sasl_mechanism, "sasl.username": self._sasl_plain_username}
        return refused_login(_cause(exc), login_name(login))

    @property
    def unanswered(self) -> int:
        """Requests whose answer is still out."""
        return len(self._requests) + len(self._held)

    @property
    def closed(self) -> bool:
        return self._writer is None


def _cause(exc: BaseException) -> str:
    """The innermost reason, in one line, for people."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return str(exc) or type(exc).__name__
