"""Pages on one port, served by aiohttp: any, and those of a service. `access.py` decides who may read them."""

import asyncio
import errno
import json
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from lockstep_runtime.http.access import (
    EVERY_ADDRESS,
    AccessPolicy,
    Certificate,
    PagesUnusable,
    PortInUse,
    bearer_token,
)
from lockstep_runtime.http.answers import JSON, METHODS, page, refusal
from lockstep_runtime.http.guard import BODY_BYTES, GuardedConnection
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.metrics import Metrics

BACKLOG = 1_024
"""Connections that the kernel keeps until the process accepts them: it may be busy for a moment."""

ACCEPTED_A_TURN = 8
"""Connections that are accepted before those that are open are read from.

asyncio accepts a whole backlog at once, and many connections would displace a probe before anything of it is read.
"""

ANY_IPV4 = "0.0.0.0"  # noqa: S104  # only where the host is `*`, which others are meant to reach

CHECK_INTERVAL_S = 5.0
"""Seconds between two checks of the certificate's files."""

ENDS_WITHIN_S = 1.0
"""Seconds after which an answer is given up when the server closes."""


NO_ROUTES: Mapping[tuple[str, str], Handler] = MappingProxyType({})
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class GuardedServer:
    """Serve pages by path, over aiohttp behind the guard. `PageServer` has those of a service."""

    def __init__(
        self,
        pages: Mapping[str, Handler],
        *,
        warn: Callable[[str], None] = lambda _: None,
        routes: Mapping[tuple[str, str], Handler] = NO_ROUTES,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Take the pages.

        Args:
            pages: What is answered to GET and HEAD, by path.
            warn: It gets once why a certificate cannot be taken up, and "" when one was.
            routes: More pages, by method and path. Their requests may have a body of `BODY_BYTES`.
            headers: Headers that every answer of a page has, unless the page sets them itself.
        """
        self._pages = pages
        self._warn = warn
        self._routes = routes
        self._headers = headers
        self._methods = frozenset((*METHODS, *(method for method, _ in routes)))
        self._access = AccessPolicy()
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._crowd: dict[GuardedConnection, None] = {}

    async def open(self, access: AccessPolicy) -> str:
        """Listen, and return the address as `http://host:port`, `https` with a certificate. Raises PagesUnusable."""
        access.check()
        self._access = access
        certificate = None
        if access.certificate is not None and access.key is not None:
            certificate = Certificate(access.certificate, access.key)
        bound = await self._listen(access, certificate.context if certificate else None)
        if certificate is not None:
            self._renewing = asyncio.create_task(self._renew_certificate(certificate))
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"http{'s' if certificate else ''}://{name}:{bound[1]}"

    async def close(self) -> None:
        """End listening and every connection."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self._crowd):
            connection.abort()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _listen(self, access: AccessPolicy, tls: ssl.SSLContext | None) -> tuple[Any, ...]:
        """Listen, and return the address. Raises PagesUnusable."""
        app = web.Application(middlewares=[self._refuse_others], client_max_size=BODY_BYTES)
        app.on_response_prepare.append(self._finish_headers)
        for path, handler in self._pages.items():
            app.router.add_get(path, handler)
        for (method, path), handler in self._routes.items():
            app.router.add_route(method, path, handler)
        self._runner = web.AppRunner(app, shutdown_timeout=ENDS_WITHIN_S)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        try:
            arguments: dict[str, Any] = (
                {"sock": _socket_for_every_address(access.port)}
                if access.everywhere
                else {"host": access.host, "port": access.port}
            )
            self._listener = await asyncio.get_running_loop().create_server(
                lambda: GuardedConnection(server, self._crowd, tls), backlog=ACCEPTED_A_TURN, **arguments
            )
            _keep_waiting(self._listener, BACKLOG)
        except OSError as exc:
            await self.close()
            host = EVERY_ADDRESS if access.everywhere else access.host
            if exc.errno == errno.EADDRINUSE:
                raise PortInUse(
                    f"port {access.port} on {host} is in use: choose another with --port, or --port 0 for a free one"
                ) from exc
            raise PagesUnusable(
                f"cannot listen on {host}:{access.port}: {exc.strerror}; see --host and --port"
            ) from exc
        address: tuple[Any, ...] = self._listener.sockets[0].getsockname()
        # The socket of every address may be of IPv6, by which a machine need not reach itself.
        return (ANY_IPV4, address[1]) if access.everywhere else address

    async def _renew_certificate(self, certificate: Certificate) -> None:
        logged = ""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            trouble = certificate.renew()
            if trouble is not None and (trouble != logged or not trouble):
                self._warn(trouble)
            logged = logged if trouble is None else trouble

    @web.middleware
    async def _refuse_others(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._access.serves(request.headers.get("Host", "")):
            return refusal(HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in self._methods:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return await handler(request)
        except web.HTTPMethodNotAllowed as exc:
            answer = refusal(HTTPStatus.METHOD_NOT_ALLOWED)
            answer.headers["Allow"] = ", ".join(sorted(exc.allowed_methods))
            return answer
        except web.HTTPException as exc:
            return refusal(HTTPStatus(exc.status))

    async def _finish_headers(self, _: web.Request, answer: web.StreamResponse) -> None:
        for name in ("Server", "Date"):
            answer.headers.pop(name, None)
        for name, value in self._headers.items():
            answer.headers.setdefault(name, value)

    def admits(self, request: web.Request) -> bool:
        """Return whether the request has the token, or none is required."""
        return self._access.admits(bearer_token(request.headers))


class PageServer(GuardedServer):
    """Serve the results of functions that are called for each request."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        live: Callable[[], str | None],
        ready: Callable[[], str | None],
        status: Callable[[], Mapping[str, Any]],
        warn: Callable[[str], None] = lambda _: None,
        routes: Mapping[tuple[str, str], Handler] = NO_ROUTES,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Take what the pages show.

        Args:
            metrics: The metrics of `/metrics`.
            live: Returns None, or why the process does not work (answered with status 503).
            ready: Returns None, or why the process is not ready (answered with status 503).
            status: Returns JSON values.
            warn: See `GuardedServer`, and likewise of the other two.
            routes: More pages.
            headers: More headers.
        """
        pages = {
            "/live": self._show_live,
            "/ready": self._show_ready,
            "/status": self._show_status,
            "/metrics": self._show_metrics,
        }
        super().__init__(pages, warn=warn, routes=routes, headers=headers)
        self._metrics = metrics
        self._live = live
        self._ready = ready
        self._status = status

    async def _show_live(self, request: web.Request) -> web.Response:
        return self._answer_probe(request, "live", self._live())

    async def _show_ready(self, request: web.Request) -> web.Response:
        return self._answer_probe(request, "ready", self._ready())

    async def _show_status(self, request: web.Request) -> web.Response:
        if not self.admits(request):
            return refusal(HTTPStatus.UNAUTHORIZED)
        text = json.dumps(self._status(), indent=2, ensure_ascii=False, default=str)
        return page(HTTPStatus.OK, f"{text}\n".encode(), JSON)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        if not self.admits(request):
            return refusal(HTTPStatus.UNAUTHORIZED)
        return page(HTTPStatus.OK, self._metrics.exposition(), CONTENT_TYPE_LATEST)

    def _answer_probe(self, request: web.Request, word: str, why_not: str | None) -> web.Response:
        if why_not is None:
            return page(HTTPStatus.OK, f"{word}\n".encode())
        text = why_not if self.admits(request) else f"not {word}"
        return page(HTTPStatus.SERVICE_UNAVAILABLE, f"{text}\n".encode())


def certificate_log(log: FlowLog, access: AccessPolicy) -> Callable[[str], None]:
    """Return the `warn` of a `GuardedServer` that writes to the log of a service."""

    def write(refusal: str) -> None:
        if refusal:
            log.warn("certificate not taken up", f"{refusal}; the one of before serves on")
        else:
            log.info("certificate taken up", str(access.certificate))

    return write


def _keep_waiting(listener: asyncio.Server, backlog: int) -> None:
    """Let the kernel keep more connections than asyncio accepts in a turn: asyncio uses one argument for both."""
    for bound in listener.sockets:
        with socket.socket(fileno=os.dup(bound.fileno())) as copy:
            copy.listen(backlog)


def _socket_for_every_address(port: int) -> socket.socket:
    """Return one socket for IPv4 and IPv6, because two would have different free ports; for IPv4 alone without IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
        except OSError as exc:
            if exc.errno != errno.EADDRNOTAVAIL:
                raise
    return socket.create_server((ANY_IPV4, port), backlog=BACKLOG)
