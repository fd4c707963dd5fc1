"""/live /ready /status /metrics of one process, on one port, for who may see them (`access.py`)."""

from __future__ import annotations

import asyncio
import errno
import json
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from lockstep_runtime.http.access import Certificate, Door, DoorUnusable
from lockstep_runtime.http.parser import HEAD_BYTES, METHODS, BadRequest, Request, parse, rendered
from lockstep_runtime.telemetry.metrics import CONTENT_TYPE_LATEST, Metrics

__all__ = ["Pages"]

HEAD_WITHIN_S = 5.0
"""A request's head has to be here by then, and a TLS handshake to be over: who sends a byte now and then holds nothing
for long."""

ANSWERED_WITHIN_S = 10.0
"""An answer has to be taken by then."""

CONNECTIONS = 64
"""At once. Beyond that, the oldest connection without a whole request is closed to make room (else the oldest one): a
probe sends its request with its connection, so slow clients never keep it waiting."""

LEFT_OVER_BYTES = 65_536
LEFT_OVER_WITHIN_S = 1.0
"""Of a body that nobody asked for, so much is read and thrown away, for so long, that the answer is not lost with the
connection."""

BACKLOG = 1_024
"""Connections that the kernel keeps until the process accepts them: it may be busy for a moment."""

LOOK_EVERY_S = 5.0
"""How often the certificate's files are looked at."""

JSON = "application/json; charset=utf-8"


class Pages:
    """Serves what the given functions return at the time of asking.

    `live` and `ready` return None when all is well, else why not (answered with status 503). `status` returns JSON
    values. `warn` hears of a certificate that cannot be taken up, once for each reason, and "" when one was.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        live: Callable[[], str | None],
        ready: Callable[[], str | None],
        status: Callable[[], Mapping[str, Any]],
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._metrics = metrics
        self._live = live
        self._ready = ready
        self._status = status
        self._warn = warn
        self._door = Door()
        self._server: asyncio.Server | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._asking: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """Connections without a whole request yet, oldest first."""
        self._answering: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """Connections whose request is being answered, oldest first."""
        self._tls: ssl.SSLContext | None = None

    async def open(self, door: Door) -> str:
        """Listen and return the address as `http://host:port`, `https` with a certificate. Raises DoorUnusable."""
        door.check()
        self._door = door
        certificate = None
        if door.certificate is not None and door.key is not None:
            certificate = Certificate(door.certificate, door.key)
            self._tls = certificate.context
        try:
            self._server = await asyncio.start_server(
                self._connected, door.host, door.port, limit=HEAD_BYTES, backlog=BACKLOG
            )
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise DoorUnusable(
                    f"port {door.port} on {door.host} is in use: choose another with --port, or --port 0 for a free one"
                ) from exc
            raise DoorUnusable(
                f"cannot listen on {door.host}:{door.port}: {exc.strerror}; see --host and --port"
            ) from exc
        if certificate is not None:
            self._renewing = asyncio.create_task(self._renew(certificate))
        bound = self._server.sockets[0].getsockname()
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"http{'s' if self._tls else ''}://{name}:{bound[1]}"

    async def close(self) -> None:
        """End listening and every connection."""
        tasks = [*self._asking, *self._answering, *([self._renewing] if self._renewing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _renew(self, certificate: Certificate) -> None:
        said = ""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            why = certificate.renew()
            if why is not None and (why != said or not why):
                self._warn(why)
            said = said if why is None else why

    # -- one connection ------------------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._asking) + len(self._answering) >= CONNECTIONS:
            self._close_oldest()
        self._asking[task] = writer
        try:
            # Who goes away in the middle of it, or takes too long, is nobody's trouble but theirs.
            answer = await self._ask(reader, writer)
            self._answering[task] = self._asking.pop(task)
            await _send(answer, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._asking.pop(task, None)
            self._answering.pop(task, None)
            writer.close()

    def _close_oldest(self) -> None:
        """Make room for one connection, at once."""
        crowd = self._asking or self._answering
        oldest = next(iter(crowd))
        crowd.pop(oldest).transport.abort()
        oldest.cancel()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """The answer to what comes, or the refusal of what is no request. Raises what reading raises."""
        try:
            async with asyncio.timeout(HEAD_WITHIN_S):
                if self._tls is not None:
                    await writer.start_tls(self._tls)
                head = await reader.readuntil(b"\r\n\r\n")
            return self._answer(parse(head[:-4]))
        except asyncio.LimitOverrunError:
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except TimeoutError:
            return _refusal(HTTPStatus.REQUEST_TIMEOUT)
        except BadRequest as bad:
            return _refusal(bad.status)

    def _answer(self, request: Request) -> bytes:
        admitted = self._door.admits(request.token)
        head_only = request.method == "HEAD"
        if request.path in ("/live", "/ready"):
            word = request.path.removeprefix("/")
            why_not = self._live() if word == "live" else self._ready()
            status = HTTPStatus.OK if why_not is None else HTTPStatus.SERVICE_UNAVAILABLE
            text = word if why_not is None else why_not if admitted else f"not {word}"
            return rendered(status, f"{text}\n".encode(), head_only=head_only)
        if request.path not in ("/status", "/metrics"):
            return _refusal(HTTPStatus.NOT_FOUND, head_only=head_only)
        if not admitted:
            return _refusal(HTTPStatus.UNAUTHORIZED, head_only=head_only)
        if request.path == "/metrics":
            return rendered(HTTPStatus.OK, self._metrics.exposition(), CONTENT_TYPE_LATEST, head_only=head_only)
        text = json.dumps(self._status(), indent=2, ensure_ascii=False, default=str)
        return rendered(HTTPStatus.OK, f"{text}\n".encode(), JSON, head_only=head_only)


_MORE = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": ", ".join(METHODS)},
}


def _refusal(status: HTTPStatus, *, head_only: bool = False) -> bytes:
    return rendered(status, f"{status.phrase}\n".encode(), head_only=head_only, headers=_MORE.get(status))


async def _send(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Return once the whole answer is with the client's machine. Raises TimeoutError where nobody takes it."""
    writer.transport.set_write_buffer_limits(high=0)
    async with asyncio.timeout(ANSWERED_WITHIN_S):
        writer.write(answer)
        await writer.drain()
    if writer.can_write_eof():  # TLS says so by itself
        writer.write_eof()
        async with asyncio.timeout(LEFT_OVER_WITHIN_S):
            await _read_away(reader)


async def _read_away(reader: asyncio.StreamReader) -> None:
    """Until the other side closes, or has sent more than anybody would by mistake."""
    left = LEFT_OVER_BYTES
    while left > 0 and (chunk := await reader.read(4_096)):
        left -= len(chunk)
