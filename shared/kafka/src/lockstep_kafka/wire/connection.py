"""One connection to one broker, with kio's typed messages: TCP, TLS and SASL, versions, requests and answers.

The two requests that are sent for every record are encoded here (`produce_codec.py`, `fetch_codec.py`), all others by
kio. Frames go past asyncio's streams (`frame_protocol.py`). A login is repeated before its session ends
(`sasl_session.py`).
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from math import inf
from typing import Any

from lockstep_config.clients.sasl import SaslLogin
from lockstep_kafka.common.asyncio_util import retrieve_error
from lockstep_kafka.common.auth_errors import NOT_A_BROKER
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.connection_errors import (
    BrokerUnreachable,
    ConnectionClosedError,
    ProtocolUnfitError,
    failure_sentence,
)
from lockstep_kafka.wire.dial import dial
from lockstep_kafka.wire.frame_protocol import FrameProtocol
from lockstep_kafka.wire.link_bytes import LinkCount
from lockstep_kafka.wire.request_framing import ANSWER_BYTES, NUMBER, FramedRequest, PendingRequest, RequestFraming
from lockstep_kafka.wire.sasl_session import SaslSession
from lockstep_state.kafka.kafka_apis import APIS, NO_VERSIONS, versions_text
from lockstep_state.opening_step import OpeningStep
from lockstep_state.reasons.reason_catalogue import ReasonCode

NO_TIME = timedelta(0)

ANSWERED_S = 40.0
"""Default seconds for opening a connection, and for each answer of a login."""


class Connection:
    """A connection to one broker.

    Answers come in the order of the requests (the broker mutes a connection until its answer is out). So each long poll
    needs a connection of its own.

    An answer may say that we are over a quota, and for how long the broker reads nothing more of this connection
    (KIP-219). `request` waits for so long. A caller of `send` checks `throttled_for` before, or awaits
    `wait_unthrottled`.

    Args:
        host: The broker's name or address.
        port: The broker's port.
        client_id: The client id for the broker.
        opening_s: Seconds that opening may take, and each answer of a login.
        max_idle_s: Seconds without a request or an answer after which the connection is closed. None never closes it.
        ssl_context: The context of TLS. None connects without TLS.
        login: The credentials of the SASL login. None connects without SASL.
        waits_s: Seconds that the broker may keep a request while other requests are behind it.
    """

    alias = ""
    """The alias of the broker's cluster, for errors."""

    round_trip_s = 0.0
    """The shortest time that an answer took, 0 until the connection is open. No round trip is longer."""

    resting_until = 0.0
    """The time of `time.monotonic` before which no request is to be sent."""

    short_request_s = 30.0
    """Seconds that `request` waits for an answer."""

    trusted_s = 30.0
    """Seconds of silence after which a connection is tried before it is used: a firewall may have forgotten it."""

    trial_s = 1.0
    """Seconds that such a trial may take. If there is no answer another connection is opened, which costs little."""

    on_silent: Callable[[], None] | None = None
    """A callback for a connection that is given up because there was no answer."""

    on_throttled: Callable[[float, float], None] | None = None
    """A callback with the seconds for which the broker throttles us, and the time of the answer (`time.monotonic`)."""

    on_closed: Callable[[BaseException | None], None] | None = None
    """A callback for the end of the connection, called once.

    It gets the cause if the broker or the network ended the connection.
    """

    step = OpeningStep.CONNECTION
    """The last step of opening that began."""

    offered: tuple[str, ...] = ()
    """SASL mechanisms that the broker has. The tuple is empty without SASL."""

    _writer: Any = None
    """asyncio's transport. It is None if the connection is closed, or not open yet."""

    _closed_future: "asyncio.Future[None] | None" = None
    """A future that is done when the socket is closed."""

    _last_action = inf
    """The time of the last request or answer. A connection that was never opened is not silent."""

    @classmethod
    async def open(
        cls, host: str, port: int, settings: Mapping[str, Any], buffers: Mapping[int, int] | None = None
    ) -> "Connection":
        """Connect, read the broker's request versions, and log in.

        Args:
            host: The broker's name or address.
            port: The broker's port.
            settings: Keyword arguments of the class.
            buffers: Sizes of the socket's buffers (SO_RCVBUF, SO_SNDBUF), if the system is not to choose them.

        Raises:
            BrokerUnreachable: The connection was not opened. The text has the address and the cause.
        """
        connection = cls(host, port, **settings)
        try:
            await connection.connect()
        except (OSError, TimeoutError) as exc:
            raise BrokerUnreachable(connection._failure(exc)) from exc
        for option, size in (buffers or {}).items():
            connection._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, option, size)
        return connection

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        opening_s: float = ANSWERED_S,
        max_idle_s: float | None = None,
        ssl_context: ssl.SSLContext | None = None,
        login: SaslLogin | None = None,
        waits_s: float = 0.0,
    ) -> None:
        self.host = host
        self.port = port
        self.link = LinkCount()
        self._opening_s = opening_s
        self._max_idle_s = max_idle_s
        self._idle_check: asyncio.TimerHandle | None = None
        self._ssl_context = ssl_context
        self._login = login
        self._session = None if login is None else SaslSession(self, login, waits_s, self._send_held)
        self._framing = RequestFraming(client_id)
        self._versions: dict[int, tuple[int, int]] = {}
        self._requests: deque[tuple[int, PendingRequest, asyncio.Future[Any]]] = deque()
        """Requests that were sent and have no answer yet, in order."""
        self._held_back: deque[FramedRequest] = deque()
        """Requests that are held back while a login is due, in order."""

    async def connect(self) -> None:
        """Connect, read the broker's request versions, and log in.

        `open` calls it.

        Raises:
            OSError: The connection was not opened. TokenUnavailable and SaslRefused are among these errors.
            TimeoutError: Opening took too long.
        """
        self._closed_future = asyncio.get_running_loop().create_future()
        frames = FrameProtocol(self._answered, self._lost, self._note_gone, self._largest_answer)
        async with asyncio.timeout(self._opening_s):
            self._writer = await dial(frames, self.host, self.port, self._ssl_context)
        try:
            await self._learn_versions()
            if self._session is not None:
                await self._session.log_in()
        except BaseException:
            self.close()
            raise
        self.step = OpeningStep.OPEN
        if self._max_idle_s is not None:
            self._check_idle_in(self._max_idle_s, self._max_idle_s)

    async def _learn_versions(self) -> None:
        self.step = OpeningStep.VERSIONS
        asked_at = time.monotonic()
        answer = await self.request_at_once(load_message("api_versions", 0, "request").ApiVersionsRequest())
        self.round_trip_s = time.monotonic() - asked_at
        self._versions = {int(api.api_key): (int(api.min_version), int(api.max_version)) for api in answer.api_keys}

    def _note_gone(self) -> None:
        if self._closed_future is not None and not self._closed_future.done():
            self._closed_future.set_result(None)

    def _lost(self, exc: Exception | None) -> None:
        if self._writer is not None:
            self.close(exc or ConnectionResetError("the broker closed the connection"))

    def _largest_answer(self) -> int:
        """Return the largest size of the next answer."""
        return self._requests[0][1].largest if self._requests else ANSWER_BYTES

    def _answered(self, frame: memoryview) -> None:
        if not self._requests:
            raise ConnectionError("the broker answered a question that was not asked")
        correlation_id, request, future = self._requests[0]
        self.link.received += NUMBER.size + len(frame)
        entity = request.read(frame, correlation_id)
        self._requests.popleft()
        if self._session is not None and not self._requests:
            self._session.note_drained()
        self._last_action = now = time.monotonic()
        self.round_trip_s = min(self.round_trip_s, now - request.framed_at)
        # The oldest versions have no throttle time: their brokers answer late instead.
        if (throttled_s := getattr(entity, "throttle_time", NO_TIME).total_seconds()) > 0:
            self.pause_requests(throttled_s)
            if self.on_throttled is not None:
                self.on_throttled(throttled_s, now)
        if future.done():
            return
        try:
            if request.on_response is not None:
                request.on_response(entity)
        except Exception as exc:  # noqa: BLE001  # raised in the task that awaits the answer
            future.set_exception(exc)
        else:
            future.set_result(entity)

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """The oldest and the newest version of each request that the broker announces, by API key."""
        return dict(self._versions)

    def version(self, api: str, oldest: int = 0) -> int:
        """Return the newest version of an API that both sides know.

        Args:
            api: Its name in `kafka_apis.APIS`.
            oldest: The first version that serves.

        Raises:
            ProtocolUnfitError: There is no such version.
            BrokerUnreachable: The other side is a KRaft controller.
        """
        request_api = APIS[api].since(oldest)
        broker_versions = self._versions.get(request_api.key, NO_VERSIONS)
        version = request_api.common_version(*broker_versions)
        if version is not None:
            return version
        address = f"{self.host}:{self.port}"
        if api == "metadata" and broker_versions[1] < 0:
            raise BrokerUnreachable(f"{address}: {NOT_A_BROKER}", self.alias)
        reason = ReasonCode.REQUEST_UNFIT.to_reason(
            cluster=self.alias,
            broker=address,
            request=request_api.name,
            theirs=versions_text(*broker_versions),
            ours=versions_text(request_api.oldest, request_api.newest),
        )
        raise ProtocolUnfitError(self.alias, reason)

    def announces(self, api: str) -> bool:
        """Return whether both sides know an API in a version."""
        return APIS[api].common_version(*self._versions.get(APIS[api].key, NO_VERSIONS)) is not None

    def send(self, entity: Any, on_response: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        """Send a request, and return a future for its answer.

        The request is sent at once, unless the connection has to log in again first. The future fails with
        ConnectionClosedError if the connection ends first.

        Args:
            entity: The request.
            on_response: Called with the answer as soon as it is read, a turn of the event loop before any task that
                awaits the future. The future gets the error that it raises.

        Raises:
            BrokerUnreachable: The connection is closed already.
        """
        if self._writer is None:
            raise BrokerUnreachable(f"{self.host}:{self.port}: the connection is closed")
        framed = self._framing.framed(entity, on_response)
        if self._session is not None:
            self._session.begin_overdue_login()
            if self._session.is_holding:
                self._held_back.append(framed)
                return framed[-1]
        self._put(*framed)
        return framed[-1]

    async def request_at_once(self, entity: Any) -> Any:
        """Send a request of a login, ahead of those that are held back, and return its answer.

        Raises:
            ConnectionError: The connection is closed, or ended before the answer.
            TimeoutError: The answer took too long.
        """
        if self._writer is None:
            raise BrokerUnreachable(f"{self.host}:{self.port}: the connection is closed")
        framed = self._framing.framed(entity)
        self._put(*framed)
        async with asyncio.timeout(self._opening_s):
            return await framed[-1]

    def _put(self, frame: bytes, correlation_id: int, request: PendingRequest, future: asyncio.Future[Any]) -> None:
        self._requests.append((correlation_id, request, future))
        self.link.sent += len(frame)
        self._last_action = time.monotonic()
        try:
            self._writer.write(frame)
        except OSError as exc:
            future.add_done_callback(retrieve_error)  # the same error is raised here
            self.close(exc)
            raise ConnectionClosedError(f"{self.host}:{self.port}: {exc}") from exc

    def _send_held(self) -> None:
        while self._held_back and self._writer is not None:
            self._put(*self._held_back.popleft())

    def close(self, cause: BaseException | None = None) -> "asyncio.Future[None]":
        """Close the connection.

        Requests in flight fail with ConnectionClosedError.

        Args:
            cause: The error that ended the connection. None means that we close it.

        Returns:
            A future that is done when the socket is closed.
        """
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            if self._idle_check is not None:
                self._idle_check.cancel()
            if self._session is not None:
                self._session.end()
            self._fail_pending(cause)
            if self.on_closed is not None:
                self.on_closed(cause)
        if self._closed_future is None:
            self._closed_future = asyncio.get_running_loop().create_future()
            self._closed_future.set_result(None)
        return self._closed_future

    def _fail_pending(self, cause: BaseException | None) -> None:
        waiting = [request[-1] for request in self._requests] + [request[-1] for request in self._held_back]
        self._requests.clear()
        self._held_back.clear()
        for future in filter(lambda future: not future.done(), waiting):
            error = ConnectionClosedError(self._failure(cause or ConnectionError("the connection is closed")))
            error.__cause__ = cause
            future.set_exception(error)

    def _failure(self, exc: BaseException) -> str:
        return failure_sentence(self.host, self.port, exc, self._login)

    def _check_idle_in(self, seconds: float, max_idle_s: float) -> None:
        self._idle_check = asyncio.get_running_loop().call_later(seconds, self._close_if_idle, max_idle_s)

    def _close_if_idle(self, max_idle_s: float) -> None:
        if self.unanswered:  # the limits of answers end it
            self._check_idle_in(max_idle_s, max_idle_s)
        elif (left_s := max_idle_s - self.silent_s) > 0:
            self._check_idle_in(left_s, max_idle_s)
        else:
            self.close()

    def pause_requests(self, seconds: float) -> None:
        """Send no request for so many seconds, because the broker is overloaded or throttles us (KIP-219)."""
        self.resting_until = max(self.resting_until, time.monotonic() + seconds)

    @property
    def throttled_for(self) -> float:
        """Seconds for which no request is to be sent because we are over a quota; 0 if there is no such limit."""
        return max(0.0, self.resting_until - time.monotonic()) if self.resting_until else 0.0

    async def wait_unthrottled(self) -> None:
        """Wait until a request may be sent."""
        while (seconds := self.throttled_for) > 0:
            await asyncio.sleep(seconds)

    async def request(self, entity: Any) -> Any:
        """Send a request as soon as that is allowed, and return its answer.

        Raises:
            BrokerUnreachable: No answer came in time. The connection is then closed, since later answers on it could
                not come either.
        """
        await self.wait_unthrottled()
        try:
            async with asyncio.timeout(self.short_request_s):
                return await self.send(entity)
        except TimeoutError as exc:
            self.give_up()
            raise BrokerUnreachable(f"{self.host}:{self.port}: no answer within {self.short_request_s:g} s") from exc

    def give_up(self) -> None:
        """Close the connection, because its broker does not answer."""
        if not self.closed:
            self.close()
            if self.on_silent is not None:
                self.on_silent()

    @property
    def silent_s(self) -> float:
        """Seconds since the last request or answer."""
        return time.monotonic() - self._last_action

    @property
    def is_doubtful(self) -> bool:
        """Return whether the connection was silent for so long that it is to be tried before it is used."""
        return self.silent_s > self.trusted_s and not self.unanswered and not self.closed and not self.throttled_for

    async def is_answered(self, entity: Any) -> bool:
        """Send a request that every broker answers at once, and return whether it did.

        If it did not, the connection is closed.
        """
        try:
            async with asyncio.timeout(self.trial_s + 2 * self.round_trip_s):
                await self.send(entity)
        except (TimeoutError, BrokerUnreachable):
            self.close()
        return not self.closed

    @property
    def awaits_answer(self) -> bool:
        """True if a request that was sent has no answer yet."""
        return bool(self._requests)

    @property
    def unanswered(self) -> int:
        """Number of requests without an answer, including those that are held back."""
        return len(self._requests) + len(self._held_back)

    @property
    def closed(self) -> bool:
        return self._writer is None
