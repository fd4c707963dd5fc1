"""The login of a connection, and its renewal before the session ends (KIP-368).

A broker says with each login how long the session lasts. It ends the connection if a request comes after that, but it
always takes a login. So when most of the session is over, new requests are held back, and those in flight are awaited.
Then the same login is done once more on the same connection. Then the held requests go out, in their order. No request
is lost, doubled or overtaken, and a late login does no harm.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Protocol

from lockstep_config.clients.sasl import SaslLogin
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.sasl import SaslRefused, authenticate
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.opening_step import OpeningStep

EARLIEST, LATEST = 0.7, 0.85
"""Parts of a session between which the renewal begins, at random.

Connections that were opened together do not all log in together. Java's parts are 0.85 and 0.95. A request that is sent
before the renewal may reach a busy broker a good while later.
"""

MARGIN_S = 0.5
"""Seconds of a session that are left at the renewal, at least."""

SOONEST_S = 1.1
"""Shortest time between two logins in seconds. A broker takes one login a second from a connection."""

SHORTEST_S = SOONEST_S + MARGIN_S
"""Shortest session in seconds that can be renewed in time.

A shorter one belongs to a token near its end. No request goes out in it, and the next login follows.
"""

TRIES = 5
"""Number of too short sessions in a row after which the connection gives up."""

HANDSHAKE_VERSION = 1
"""The version of SaslHandshake with which tokens are sent in requests of their own (Kafka 1.0)."""


def login_after(session_s: float, part: float, waits_s: float) -> float:
    """Return the seconds into a session after which to log in again.

    That is this part of the session, and early enough for a request that the broker keeps for `waits_s` and one behind
    it. Two logins are at least a second apart.
    """
    return min(session_s * part, max(session_s - waits_s - MARGIN_S, SOONEST_S))


class Peer(Protocol):
    """The parts of a connection that a session needs."""

    step: OpeningStep
    offered: tuple[str, ...]

    @property
    def awaits_answer(self) -> bool:
        """True if a request that was sent has no answer yet."""

    def version(self, api: str, oldest: int = 0) -> int:
        """Return the newest version of an API that both sides know."""

    async def request_at_once(self, entity: Any) -> Any:
        """Send a request ahead of those that are held back, and return its answer.

        Raises:
            ConnectionError: The connection is closed, or ended before the answer.
            TimeoutError: The answer took too long.
        """

    def close(self, cause: BaseException | None = None) -> Any:
        """Close the connection, for this cause."""


class SaslSession:
    """The logins of one connection.

    A refused login closes the connection.

    Args:
        peer: The connection.
        login: The credentials.
        waits_s: Seconds that the broker may keep a request while other requests are behind it.
        on_open: Called when requests that were held back may go out.
    """

    def __init__(self, peer: Peer, login: SaslLogin, waits_s: float, on_open: Callable[[], None]) -> None:
        self._peer = peer
        self._login = login
        self._waits_s = waits_s
        self._on_open = on_open
        self._session_s = 0.0
        self._due: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self.logins = 0
        """Number of logins so far."""
        self.is_holding = False
        """True while a login is due or in progress: no other request may be sent."""

    async def log_in(self) -> None:
        """Log in, and repeat it if the session is too short to be renewed in time.

        It also raises the errors of sending.

        Raises:
            SaslRefused: The broker refuses the login, or its sessions are always too short.
            TokenUnavailable: There is no access token.
        """
        for _ in range(TRIES):
            await self._log_in_once()
            self.logins += 1
            if not 0 < self._session_s < SHORTEST_S:
                break
            await asyncio.sleep(SHORTEST_S)
        else:
            raise SaslRefused(
                f"sessions of {self._session_s:.1f} s are too short to be renewed: raise the brokers' "
                "connections.max.reauth.ms, or let access tokens live longer"
            )
        if self._session_s > 0:
            part = random.uniform(EARLIEST, LATEST)  # noqa: S311  # spreads load, keeps no secret
            due_s = login_after(self._session_s, part, self._waits_s)
            self._due = asyncio.get_running_loop().call_later(due_s, self.begin_login)

    async def _log_in_once(self) -> None:
        mechanism = self._login.mechanism
        self._peer.step = OpeningStep.MECHANISM
        request = load_message("sasl_handshake", HANDSHAKE_VERSION, "request").SaslHandshakeRequest(mechanism=mechanism)
        answer = await self._peer.request_at_once(request)
        self._peer.offered = tuple(answer.mechanisms)
        if answer.error_code or mechanism not in self._peer.offered:
            offered = ", ".join(self._peer.offered) or "none"
            raise SaslRefused(f"the broker's listener does not offer {mechanism}, but {offered}")
        self._session_s = 0.0
        await authenticate(self._login, self._send_token)

    async def _send_token(self, token: bytes) -> bytes:
        self._peer.step = OpeningStep.CREDENTIALS
        m = load_message("sasl_authenticate", self._peer.version("sasl_authenticate"), "request")
        answer = await self._peer.request_at_once(m.SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code == KafkaErrorCode.SASL_AUTHENTICATION_FAILED:
            raise SaslRefused(f"SaslAuthenticationFailed: {answer.error_message or 'the broker does not say why'}")
        if answer.error_code:
            raise SaslRefused(": ".join(filter(None, (error_name(answer.error_code), answer.error_message))))
        # Answers before Kafka 2.2 have no session lifetime. If one login has several answers, the last one counts.
        lifetime = getattr(answer, "session_lifetime", None)
        self._session_s = 0.0 if lifetime is None else lifetime.total_seconds()
        return bytes(answer.auth_bytes)

    def begin_overdue_login(self) -> None:
        """Begin the login if its time has come.

        Call it before each request. After a process was frozen, its event loop may reach a request before the timer
        of the login.
        """
        if self._due is not None and asyncio.get_running_loop().time() >= self._due.when():
            self._due.cancel()
            self.begin_login()

    def begin_login(self) -> None:
        """Hold requests back from now on, and log in when those in flight are answered."""
        self._due = None
        self._drained.clear()
        self.is_holding = True
        self._renewal = asyncio.get_running_loop().create_task(self._log_in_again())

    def note_drained(self) -> None:
        """Note that all requests that were sent before the login have their answers."""
        self._drained.set()

    async def _log_in_again(self) -> None:
        try:
            if self._peer.awaits_answer:
                await self._drained.wait()
            await self.log_in()
        except Exception as exc:  # noqa: BLE001  # any error closes the connection, and fails its requests
            self._peer.close(exc)
        else:
            self.is_holding = False
            self._on_open()

    def end(self) -> None:
        """Stop the renewal, because the connection is closed."""
        if self._due is not None:
            self._due.cancel()
        if self._renewal is not None and not self._renewal.done() and self._renewal is not _current_task():
            self._renewal.cancel()
        self.is_holding = False


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs: the connection is closed by the garbage collector
        return None
