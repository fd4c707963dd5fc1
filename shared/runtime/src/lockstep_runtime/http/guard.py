"""The guard of the pages: the number of connections, and their time limits. aiohttp gets whole request heads only.

aiohttp has no limit for connections, no time limit for a request's head, and does not count an unfinished handshake. It
answers what it cannot parse with its own name. So its request handler is overridden, and its version is bound.
"""

import asyncio
import contextlib
import logging
import re
import select
import socket
import ssl
import time
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web

from lockstep_runtime.http.answers import refusal_bytes

HEAD_BYTES = 8_192
"""Most bytes of a request's line and headers; more is answered with 431."""

REQUEST_LINE = re.compile(rb"\S+ \S+ HTTP/1\.[01]\r\n")
"""Request lines that aiohttp gets. It answers HTTP/0.9 and 2.0 as such, and fails on `CONNECT` without a target."""

HEAD_WITHIN_S = 5.0
"""Most seconds for the TLS handshake and the request's head; then the request is answered with 408."""

ANSWERED_WITHIN_S = 10.0
"""Most seconds for the answer, until the client has taken it."""

LEFT_OVER_WITHIN_S = 1.0
"""Seconds for which an unasked body is read and thrown away, so that the answer is not lost with the connection."""

CONNECTIONS = 64
"""Most connections at once.

Beyond that, the oldest connection without a whole head gives way (else the oldest one). A probe sends its request
with its connection, so slow clients never keep it waiting.
"""

STREAMS = CONNECTIONS // 2
"""Most answers at once that go on without an end. The other connections are left for probes and pages."""

BODY_BYTES = 65_536
"""Most bytes of a request's body; more is answered with 413."""

FAILURES_EVERY_S = 60.0
"""Seconds between two lines about pages that failed: a client that repeats its request could fill the log otherwise."""

log = logging.getLogger(__name__)

OPTIONS: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,
    "keepalive_timeout": 0,
    "logger": log,
    "max_field_size": HEAD_BYTES,
    "max_line_size": HEAD_BYTES,
}
"""Options of aiohttp's connections. aiohttp's own logger is silent in a service."""


class GuardedConnection(web.RequestHandler):
    """aiohttp's connection behind the limits above, which hold from its first byte on, TLS handshake included."""

    def __init__(self, server: web.Server, crowd: "dict[GuardedConnection, None]", tls: ssl.SSLContext | None) -> None:
        """Take all connections of the server, oldest first, as `crowd`."""
        super().__init__(server, loop=asyncio.get_running_loop(), lingering_time=LEFT_OVER_WITHIN_S, **OPTIONS)
        self._crowd, self._tls, self._head, self._asking = crowd, tls, b"", True
        self._streams = False
        self.ended = asyncio.Event()
        """Set once the connection is lost."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast(asyncio.Transport, transport)
        self._deadline = self._loop.call_later(HEAD_WITHIN_S, self._end_late)
        if len(self._crowd) >= CONNECTIONS:
            self._choose_displaced().abort()
        self._crowd[self] = None
        if self._tls is None:
            super().connection_made(transport)
        else:
            self._handshake = self._loop.create_task(self._start_tls(self._tls))

    def _choose_displaced(self) -> "GuardedConnection":
        """Return the connection that gives way.

        It is the oldest one without a whole head of which nothing waits to be read. If there is none, it is the
        oldest one without a whole head, else the oldest one that is no stream: of streams there are at most half.
        """
        asking = [connection for connection in self._crowd if connection._asking]
        waiting = _with_bytes([connection._wire for connection in asking])
        silent = (connection for connection in asking if connection._wire not in waiting)
        answered = (connection for connection in self._crowd if not connection._streams)
        return next(silent, next(iter(asking), next(answered, next(iter(self._crowd)))))

    async def _start_tls(self, tls: ssl.SSLContext) -> None:
        encrypted = None
        with contextlib.suppress(OSError):  # a client that goes away, or that speaks no TLS
            if not self._wire.is_closing():
                encrypted = await self._loop.start_tls(
                    self._wire, self, tls, server_side=True, ssl_shutdown_timeout=LEFT_OVER_WITHIN_S
                )
        if encrypted is None or encrypted.is_closing():
            self.abort()
        else:
            super().connection_made(encrypted)
            self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        if not self._asking:
            return super().data_received(data)
        self._head = (self._head + data).lstrip(b"\r\n")
        head, end, _ = self._head.partition(b"\r\n\r\n")
        if self.transport is None:
            pass  # bytes that came with the end of the handshake
        elif len(head) > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif end and not REQUEST_LINE.match(self._head):
            self._refuse(HTTPStatus.BAD_REQUEST)
        elif end:
            self._answer_within(ANSWERED_WITHIN_S)
            super().data_received(self._head)
        return None

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio asks for a bool, aiohttp always says None
        """Keep the connection open for its answer: a client may end its half with its request. TLS has no halves."""
        return self._tls is None and not self._asking and self.transport is not None

    def allow_answer(self, seconds: float) -> None:
        """Give the answer so many seconds from now on, because the page asks clusters for long."""
        self._answer_within(seconds)

    def begin_stream(self) -> bool:
        """Let the answer go on without an end, and return True; False if there are too many such answers.

        Afterwards only `taken` sets a deadline.
        """
        if self.transport is None or sum(connection._streams for connection in self._crowd) >= STREAMS:
            return False
        self._streams = True
        self._deadline.cancel()
        self.transport.set_write_buffer_limits(high=0)
        connected = self._wire.get_extra_info("socket")
        if connected is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            # What is sent to a machine that has gone is in the kernel, where we do not see it.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(ANSWERED_WITHIN_S * 1000))
        return True

    async def wait_written(self) -> None:
        """Wait until the kernel has taken all that was written.

        A client that takes nothing for `ANSWERED_WITHIN_S` is dropped.

        Raises:
            ConnectionResetError: The connection is lost.
        """
        self._answer_within(ANSWERED_WITHIN_S)
        await self._drain_helper()
        if self.transport is None:
            raise ConnectionResetError("the client has gone, or took nothing")
        self._deadline.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.ended.set()
        self.abort()
        super().connection_lost(exc)

    def abort(self) -> None:
        """End the connection at once."""
        self._deadline.cancel()
        self._crowd.pop(self, None)
        self._wire.abort()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what aiohttp cannot parse, or what a page raised, with our own refusal."""
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log_page_failure(exc)
        self._refuse(HTTPStatus(status))
        return web.Response(status=status)  # never sent: aiohttp has no transport any more

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log what aiohttp logs, but no malformed body."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)

    def _refuse(self, status: HTTPStatus) -> None:
        if self.transport is not None:
            transport, self.transport = self.transport, None
            self.close()
            self._answer_within(LEFT_OVER_WITHIN_S)
            transport.write(refusal_bytes(status))
            with contextlib.suppress(OSError):  # the client has gone
                transport.write_eof() if transport.can_write_eof() else transport.close()

    def _answer_within(self, seconds: float) -> None:
        self._asking = False
        self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, self._end_late)

    def _end_late(self) -> None:
        if self._asking and self.transport is not None:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.abort()


def _with_bytes(wires: list[asyncio.Transport]) -> set[asyncio.Transport]:
    """Return those whose clients have sent something that is not read yet."""
    by_number = {
        number: wire
        for wire in wires
        if (connected := wire.get_extra_info("socket")) is not None and (number := connected.fileno()) >= 0
    }
    poll = select.poll()
    for number in by_number:
        poll.register(number, select.POLLIN)
    return {by_number[number] for number, _ in poll.poll(0)}


class _PageFailures:
    """Write one line a minute about pages that failed, with the number of failures."""

    def __init__(self) -> None:
        self._next_at = float("-inf")
        self._unreported = 0

    def add_failure(self, exc: BaseException | None) -> None:
        """Count a failure. The first one of a minute is logged, with its traceback and the number before it."""
        now = time.monotonic()
        if now < self._next_at:
            self._unreported += 1
            return
        more = f", and {self._unreported} more before it" if self._unreported else ""
        self._next_at, self._unreported = now + FAILURES_EVERY_S, 0
        log.error("page failed", exc_info=exc, extra={"text": f"{type(exc).__name__}: {exc}{more}"})


_FAILURES = _PageFailures()


def log_page_failure(exc: BaseException | None) -> None:
    """Log a page that failed, at most once a minute."""
    _FAILURES.add_failure(exc)
