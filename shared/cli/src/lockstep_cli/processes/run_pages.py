"""The pages of `lockstep run`: one address for those of all its services."""

import asyncio
import json
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from lockstep_cli.processes.merged_metrics import merge_metrics
from lockstep_cli.processes.run_metrics import page_of_run
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.answers import JSON, TEXT, page, refusal
from lockstep_runtime.http.server import GuardedServer

PAGES = ("live", "ready", "status", "metrics")

ANSWER_WITHIN_S = 4.0
"""The seconds within which a service has to answer, so that the client of the run gets its own answer in time."""


@dataclass(frozen=True, slots=True)
class ServicePage:
    """The answer of a service. It is status 503 and a sentence if it did not answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = TEXT


class RunPages:
    """A server of `/SERVICE/PAGE` of each service, and of `/`, `/live`, `/ready`, `/status` and `/metrics` of all.

    Each request goes on to the services with its token, so each of them decides itself who may read it.
    """

    def __init__(self, services: Sequence[str], *, warn: Callable[[str], None] = lambda _: None) -> None:
        self._services = tuple(services)
        self._addresses: dict[str, str] = {}
        self._server = GuardedServer(
            {
                "/": self._list_pages,
                "/live": self._show_live,
                "/ready": self._show_ready,
                "/status": self._show_status,
                "/metrics": self._show_metrics,
                "/{service}/{page}": self._show_page_of_service,
            },
            warn=warn,
        )
        self._session: ClientSession | None = None

    async def open(self, access: AccessPolicy) -> str:
        """Listen and return the address, as `http://host:port`.

        Raises:
            PagesUnusable: The pages cannot be opened.
            PortInUse: The port is taken.
        """
        address = await self._server.open(access)
        # Our own services on this machine, whose certificate names the outside.
        tls = ssl._create_unverified_context() if access.certificate else True  # noqa: S323
        connector = TCPConnector(ssl=tls, force_close=True)
        self._session = ClientSession(connector=connector, timeout=ClientTimeout(total=ANSWER_WITHIN_S))
        return address

    async def close(self) -> None:
        """Stop listening, and end every connection."""
        await self._server.close()
        if self._session is not None:
            await self._session.close()

    def place(self, service: str, address: str) -> None:
        """Take the address of a service's pages, which the service has just logged."""
        self._addresses[service] = address

    def forget(self, services: Sequence[str]) -> None:
        """Forget the addresses of these services. They have ended, and another program may get their ports."""
        for service in services:
            self._addresses.pop(service, None)

    async def _list_pages(self, request: web.Request) -> web.Response:
        if not self._server.admits(request):
            return refusal(HTTPStatus.UNAUTHORIZED)
        paths = [f"/{name}" for name in PAGES]
        paths += [f"/{service}/{name}" for service in self._services for name in PAGES]
        return page(HTTPStatus.OK, "".join(f"{path}\n" for path in paths).encode())

    async def _show_live(self, request: web.Request) -> web.Response:
        return await self._answer_probe(request, "live")

    async def _show_ready(self, request: web.Request) -> web.Response:
        return await self._answer_probe(request, "ready")

    async def _answer_probe(self, request: web.Request, word: str) -> web.Response:
        answers = await self._ask_all(request, word)
        failing = {service: answer for service, answer in answers.items() if answer.status != HTTPStatus.OK}
        if not failing:
            return page(HTTPStatus.OK, f"{word}\n".encode())
        lines = (f"{service}: {_sentence(answer)}\n" for service, answer in failing.items())
        text = "".join(lines) if self._server.admits(request) else f"not {word}\n"
        return page(HTTPStatus.SERVICE_UNAVAILABLE, text.encode())

    async def _show_status(self, request: web.Request) -> web.Response:
        if not self._server.admits(request):
            return refusal(HTTPStatus.UNAUTHORIZED)
        answers = await self._ask_all(request, "status")
        values = {
            service: json.loads(answer.body) if answer.status == HTTPStatus.OK else {"error": _sentence(answer)}
            for service, answer in answers.items()
        }
        return page(HTTPStatus.OK, f"{json.dumps(values, indent=2, ensure_ascii=False)}\n".encode(), JSON)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        if not self._server.admits(request):
            return refusal(HTTPStatus.UNAUTHORIZED)
        answers = await self._ask_all(request, "metrics")
        pages = {service: answer.body.decode() for service, answer in answers.items() if answer.status == HTTPStatus.OK}
        run_page = page_of_run({service: service in pages for service in answers})
        return page(HTTPStatus.OK, merge_metrics({"run": run_page, **pages}).encode(), CONTENT_TYPE_LATEST)

    async def _show_page_of_service(self, request: web.Request) -> web.Response:
        service, name = request.match_info["service"], request.match_info["page"]
        if service not in self._services or name not in PAGES:
            return refusal(HTTPStatus.NOT_FOUND)
        answer = await self._ask(request, service, name)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            return refusal(HTTPStatus.UNAUTHORIZED)
        return page(answer.status, answer.body, answer.content_type)

    async def _ask_all(self, request: web.Request, name: str) -> dict[str, ServicePage]:
        answers = await asyncio.gather(*(self._ask(request, service, name) for service in self._services))
        return dict(zip(self._services, answers, strict=True))

    async def _ask(self, request: web.Request, service: str, name: str) -> ServicePage:
        if (address := self._addresses.get(service)) is None or self._session is None:
            return _unanswered(f"{service} has no pages yet: it starts, or waits to be started again")
        token = {key: request.headers[key] for key in ("Authorization",) if key in request.headers}
        try:
            async with self._session.get(f"{address}/{name}", headers=token, allow_redirects=False) as answer:
                body = await answer.read()
                return ServicePage(HTTPStatus(answer.status), body, answer.headers.get("Content-Type", TEXT))
        except (ClientError, OSError, TimeoutError) as exc:
            return _unanswered(f"{service} does not answer at {address}: {type(exc).__name__}")


def _sentence(answer: ServicePage) -> str:
    return answer.body.decode(errors="replace").strip()


def _unanswered(sentence: str) -> ServicePage:
    return ServicePage(HTTPStatus.SERVICE_UNAVAILABLE, f"{sentence}\n".encode())
