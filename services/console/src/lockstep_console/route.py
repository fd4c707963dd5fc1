"""Routes of the console: what they are asked, and how they answer. OpenAPI is generated from them.

A module of `api` has a tuple `ROUTES`. A handler takes a `ConsoleRequest`, and returns what `json_answer` or `problem`
returns. It may raise `RequestRefused` anywhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web

from lockstep_console.access import Session
from lockstep_console.json_text import json_bytes, json_text
from lockstep_runtime.http.answers import JSON, page
from lockstep_runtime.http.stream import connection_of
from lockstep_state.codecs.strict_json import parse_json

if TYPE_CHECKING:
    from lockstep_console.console import Console
    from lockstep_console.flow_watch import FlowWatch
    from lockstep_console.flow_watches import FlowWatches

T = TypeVar("T")

Answer = web.StreamResponse
Handler = Callable[["ConsoleRequest"], Awaitable[Answer]]

API = "/api/v1"

ANSWERED_WITHIN_S = 20.0
"""The seconds for which a request waits for the clusters, unless its route says otherwise."""

TAKEN_WITHIN_S = 10.0
"""The seconds within which a client has to take an answer."""

GZIPPED_FROM = 1_024
"""Bytes from which on a body is compressed, if the client takes that."""

NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query: its name, its meaning in a sentence, and the values that it may have."""

    name: str
    meaning: str
    kind: str = "string"
    """`string` | `integer` | `boolean`, as in JSON Schema."""
    default: str | int | bool | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    `path` is the whole one, with `{name}` for its parameters; `{flow}` is a flow. `body` is the JSON Schema of the
    request's body. `answers` has the JSON Schema of each answer by its status, besides problems.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    query: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=lambda: NOTHING)
    is_open: bool = False
    """Everybody may ask it, also without a token."""
    answered_within_s: float = ANSWERED_WITHIN_S
    """The seconds that the answer may take, because clusters or services are asked. A stream has its own limits."""
    streams: bool = False
    """The answer may go on without an end, so there is none to HEAD."""
    for_programs: bool = False
    """Requests that act need neither `X-Lockstep-Request` nor a content type if they have the token itself.

    A browser never sends that by itself, so another site's page cannot make it send such a request.
    """

    @property
    def acts(self) -> bool:
        """Return whether it changes something, so that reading is not enough."""
        return self.method not in ("GET", "HEAD")


class RequestRefused(Exception):
    """The answer to a request that is not carried out: a status, a code for programs, a sentence for people."""

    def __init__(self, status: int, code: str, sentence: str, **details: Any) -> None:
        super().__init__(sentence)
        self.status, self.code, self.details = status, code, details

    def as_answer(self) -> Answer:
        return problem(self.status, self.code, str(self), **self.details)


class ConsoleRequest:
    """A request to a route, from a session that may make it."""

    def __init__(self, console: "Console", request: web.Request, session: Session) -> None:
        self.console = console
        self.raw = request
        self.session = session

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """Return what the work returns. The connection stays open for it.

        Raises:
            RequestRefused: It takes longer, so it is cancelled.
        """
        connection_of(self.raw).allow_answer(seconds + TAKEN_WITHIN_S)
        try:
            async with asyncio.timeout(seconds) as limit:
                return await work
        except TimeoutError as exc:
            if not limit.expired():
                raise
            sentence = f"It is not known after {seconds:.0f} s: a cluster answers slowly, or not at all. Ask again."
            raise RequestRefused(HTTPStatus.GATEWAY_TIMEOUT, "slow-answer", sentence) from exc

    @property
    def may_still_read(self) -> bool:
        """Return whether the request would be admitted now, as the file of the token is now."""
        return self.console.access.session(self.raw.headers).may_read

    @property
    def watches(self) -> "FlowWatches":
        return self.console.watches

    @property
    def flow(self) -> "FlowWatch":
        """Return the watch over the flow of the path.

        Raises:
            RequestRefused: The console follows no such flow.
        """
        return self.find_flow(self.raw.match_info.get("flow", ""))

    def find_flow(self, name: str) -> "FlowWatch":
        """Return the watch over a flow by its name. Raises as `flow`."""
        watch = self.watches.watch(name)
        if watch is None:
            names = self.watches.names
            raise RequestRefused(
                HTTPStatus.NOT_FOUND,
                "unknown-flow",
                f"The console follows no flow {name!r}. It follows {', '.join(names)}.",
                flows=list(names),
            )
        return watch

    @property
    def path(self) -> Mapping[str, str]:
        """Return the parameters of the path, decoded."""
        return self.raw.match_info

    @property
    def query(self) -> Mapping[str, str]:
        return self.raw.query

    def text(self, name: str, default: str = "", *, choices: Collection[str] = ()) -> str:
        """Return a parameter of the query.

        Raises:
            RequestRefused: It is none of `choices`.
        """
        value = self.query.get(name, default)
        if choices and value not in choices:
            raise RequestRefused(
                HTTPStatus.BAD_REQUEST, "bad-query", f"{name} is one of {', '.join(choices)}, not {value!r}."
            )
        return value

    def number(self, name: str, default: int, *, least: int = 0, most: int) -> int:
        """Return a number of the query.

        Raises:
            RequestRefused: It is no number between `least` and `most`.
        """
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 20 and least <= int(text) <= most):
            raise RequestRefused(
                HTTPStatus.BAD_REQUEST, "bad-query", f"{name} is a number from {least} to {most}, not {text[:40]!r}."
            )
        return int(text)

    def names(self, name: str, choices: Collection[str]) -> tuple[str, ...]:
        """Return the parts of a parameter like `a,b`, each once. Raises as `text`."""
        parts = tuple(dict.fromkeys(filter(None, self.query.get(name, "").split(","))))
        if wrong := [part for part in parts if part not in choices]:
            raise RequestRefused(
                HTTPStatus.BAD_REQUEST,
                "bad-query",
                f"{name} has parts of {', '.join(choices)}, separated by commas. {wrong[0][:40]!r} is none.",
            )
        return parts

    async def json(self) -> dict[str, Any]:
        """Return the body, a JSON object.

        Raises:
            RequestRefused: It is none.
        """
        try:
            body = parse_json(await self.raw.read() or b"{}")
        except ValueError as exc:
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", "The body is no JSON.") from exc
        if not isinstance(body, dict):
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-body", "The body is no JSON object.")
        return body

    def json_answer(self, body: Any, status: int = HTTPStatus.OK) -> Answer:
        """Return an answer with a JSON body, compressed if it is large and the client takes that."""
        return self.compressed(json_answer(body, status))

    def compressed(self, answer: web.Response) -> web.Response:
        """Return the answer, compressed if it is large and the client takes that."""
        body = answer.body
        if isinstance(body, bytes) and len(body) >= GZIPPED_FROM:
            answer.enable_compression()
        return answer


def json_answer(body: Any, status: int = HTTPStatus.OK) -> web.Response:
    """Return an answer with a JSON body."""
    return text_answer(json_text(body), status)


def text_answer(text: str, status: int = HTTPStatus.OK) -> web.Response:
    """Return an answer whose body is JSON already."""
    return page(HTTPStatus(status), json_bytes(f"{text}\n"), JSON)


def problem(status: int, code: str, sentence: str, **details: Any) -> web.Response:
    """Return the answer to a request that is not carried out."""
    return json_answer({"error": {"code": code, "sentence": sentence, **details}}, status)
