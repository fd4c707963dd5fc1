"""Connections that log in again before their session ends (KIP-368), which aiokafka's own do not.

A broker says with each login how long the session lasts. It ends the connection when a request comes after that; a
login is always taken. So when most of the session is over, new requests are held back, and those under way are awaited.
Then the same login is done once more on the same connection. Then the held requests go out, in their order: nothing is
lost, doubled or overtaken, and a late login does no harm.
"""

import asyncio
import random
import socket
import time
from collections.abc import Awaitable
from typing import Any

import aiokafka.client
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_kafka.session.newer_versions import in_all_versions

EARLIEST, LATEST = 0.7, 0.85
"""Parts of a session after which it logs in again, at random between them: connections that were opened together do not
all log in together. Java's are 0.85 and 0.95; what is sent before may reach a busy broker a good while later."""

MARGIN_S = 0.5
"""At least so much of a session is left then."""

SOONEST_S = 1.1
"""A broker takes one login a second from a connection."""

WAITS_S = 3.0
"""How long a broker may keep a request of Faust's consumers for records that do not come. Only then does it read later
requests on the same connection, and it ends the connection if the session is over by that time."""

SHORTEST_S = SOONEST_S + MARGIN_S
"""A shorter session, of a token near its end, could not be renewed in time. No request goes out in it, and the next
login follows."""

TRIES = 5
"""After so many sessions in a row that are too short they always are."""


ALIVE_AFTER_S, ALIVE_EVERY_S, ALIVE_TRIES = 60, 10, 3
"""Load balancers forget a connection that is silent for some minutes (350 s at AWS, 240 s at Azure) without a word."""


def _keep_alive(connected: Any) -> None:
    """Let the system ask the other side of a socket, or asyncio's view of one, whether it is there, when nothing passes
    for a minute. It ends the connection where there is no answer."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE", ALIVE_AFTER_S),  # the latter: macOS
        ("TCP_KEEPINTVL", ALIVE_EVERY_S),
        ("TCP_KEEPCNT", ALIVE_TRIES),
    ):
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def login_after(session_s: float, part: float, waits_s: float) -> float:
    """Seconds into a session after which to log in anew. It is this part of it, and early enough for a request that the
    broker keeps for `waits_s` and one behind it. Two logins are at least a second apart."""
    return min(session_s * part, max(session_s - waits_s - MARGIN_S, SOONEST_S))


class SessionConnection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka ships no types
    """aiokafka's connection for sessions that end. A login that is refused closes it, as the first one does."""

    logins = 0
    """How often it logged in so far."""

    waits_s = 0.0
    """How long a broker may keep what is asked, where more is asked behind it."""

    # Of the class as well: one whose making failed is closed by the garbage collector.
    _due: asyncio.TimerHandle | None = None
    _login: asyncio.Task[None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._session_s = 0.0
        self._drained = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    @property
    def holding(self) -> bool:
        """A login is due or under way: nothing else may be sent."""
        return not self._open.is_set()

    def begin_overdue_login(self) -> None:
        """Begin the login whose time has come. Call it before each request. After a process was frozen, its event loop
        may reach a request before the timer of the login."""
        if self._due is not None and self._loop.time() >= self._due.when():
            self._due.cancel()
            self._begin_login()

    async def _do_sasl_handshake(self) -> None:
        for _ in range(TRIES):
            self._session_s = 0.0
            await super()._do_sasl_handshake()
            self.logins += 1
            if not 0 < self._session_s < SHORTEST_S:
                break
            await asyncio.sleep(SHORTEST_S)
        else:
            raise KafkaConnectionError(
                f"sessions of {self._session_s:.1f} s are too short to be renewed: raise the brokers' "
                "connections.max.reauth.ms, or let access tokens live longer"
            )
        if self._session_s > 0 and self._writer is not None:
            part = random.uniform(EARLIEST, LATEST)  # noqa: S311  # spreads load, keeps no secret
            due = login_after(self._session_s, part, self.waits_s)
            self._due = self._loop.call_later(due, self._begin_login)

    def send(self, request: Any, expect_response: bool = True) -> Awaitable[Any]:
        if isinstance(request, SaslAuthenticateRequest):
            return self._noting_session(super().send(request))
        self.begin_overdue_login()
        if self.holding and not isinstance(request, SaslHandShakeRequest):
            return self._send_later(request, expect_response)
        sent: Awaitable[Any] = super().send(in_all_versions(request), expect_response)
        return sent

    async def _noting_session(self, sent: Awaitable[Any]) -> Any:
        answer = await sent
        # Answers before Kafka 2.2 have no session; of several in one login the last one counts.
        self._session_s = getattr(answer, "session_lifetime_ms", 0) / 1000
        return answer

    async def _send_later(self, request: Any, expect_response: bool) -> Any:
        await self._open.wait()
        return await super().send(in_all_versions(request), expect_response)

    def _begin_login(self) -> None:
        self._due = None
        if self._writer is None:
            return
        self._open.clear()
        self._drained.clear()
        self._note_drained()
        self._login = self._loop.create_task(self._log_in_again())

    async def _log_in_again(self) -> None:
        await self._drained.wait()
        try:
            await self._do_sasl_handshake()
        except Exception as exc:  # noqa: BLE001  # any error: the connection ends with it, and the caller gets it
            self.close(CloseReason.AUTH_FAILURE, exc)
        finally:
            self._release()

    def _release(self) -> None:
        """What was held back may go out."""
        self._open.set()

    async def connect(self) -> Any:
        opened = await super().connect()
        _keep_alive(self._writer.get_extra_info("socket"))
        return opened

    def _note_drained(self) -> None:
        if not self._requests:
            self._drained.set()

    def _handle_frame(self, resp: bytes) -> None:
        super()._handle_frame(resp)
        self._note_drained()

    def close(self, reason: CloseReason | None = None, exc: BaseException | None = None) -> Any:
        if self._due is not None:
            self._due.cancel()
        if self._login is not None and self._login is not _current_task():
            self._login.cancel()
        self._open.set()  # who waits finds the connection closed
        return super().close(reason, exc)


_refusing: KeyedBackoff[tuple[str, int]] = KeyedBackoff(first=0.05, limit=1.0)
"""By address, with the pauses of Kafka's own clients (`reconnect.backoff.ms` and `reconnect.backoff.max.ms` are 50 and
1000 there). aiokafka connects ten times a second to a broker that is away, with each of its loops: nothing in it backs
off."""


def renew_sessions() -> None:
    """From now on the connections of aiokafka's own clients, and so Faust's, are these. They have no other way to be
    given another kind (a contract test holds the name)."""
    aiokafka.client.create_conn = open_session


async def open_session(host: str, port: int, **settings: Any) -> SessionConnection:
    """Connect and log in, after a pause if the address has just refused. `settings` are aiokafka's, as for
    `create_conn`. Raises aiokafka's errors, OSError and TimeoutError."""
    connection = SessionConnection(host, port, **settings)
    connection.waits_s = WAITS_S
    await asyncio.sleep(_refusing.wait_s((host, port), time.monotonic()))
    try:
        await connection.connect()
    except Exception:
        _refusing.failed((host, port), time.monotonic())
        raise
    _refusing.succeeded((host, port))
    return connection


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs: the connection is closed by the garbage collector
        return None
