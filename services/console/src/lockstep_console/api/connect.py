"""A subset of Kafka Connect's REST interface, for tools that know MirrorMaker 2: what connectors do, pause and resume.

Answers have Connect's bodies, errors too: `{"error_code": 404, "message": "..."}`. What would change a connector
otherwise is refused, for the file of the flows says what they do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from aiohttp import web

from lockstep_console import connect_view
from lockstep_console.actions.command_outcome import FAILED, REFUSAL, RUNNING, CommandOutcome
from lockstep_console.actions.command_runner import LOOKS_AGAIN_S, CommandRunner
from lockstep_console.api.commands import acting_user
from lockstep_console.connect_view import ConnectorState, FlowConnector
from lockstep_console.console import VERSION
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import Answer, ConsoleRequest, Handler, Parameter, RequestRefused, Route, json_answer
from lockstep_ops.exit_codes import CannotUse
from lockstep_rules.versions import DEFAULT_VERSION
from lockstep_runtime.http.answers import JSON, page
from lockstep_state.commands.command_vocabulary import PAUSE, RESUME, STOP, Scope
from lockstep_state.rows.state_rows import ClusterCapabilities, Row

ANSWERED_WITHIN_S = 10.0
"""The seconds for which the answer of the services to a command is waited for."""

PATHS = ("/connectors", "/connector-plugins")
"""The beginnings of Connect's paths."""

CONNECTOR = "/connectors/{name}"

EXPANSIONS = ("status", "info")


def as_answer(refusal: RequestRefused) -> Answer:
    """Return the answer to a request that is not carried out, as Connect gives it."""
    return json_answer({"error_code": int(refusal.status), "message": str(refusal)}, refusal.status)


def _refusal(status: HTTPStatus, message: str) -> RequestRefused:
    return RequestRefused(status, "connect", message)


async def refuse_unknown(request: web.Request) -> Answer:
    """Answer a request for a path that Connect does not have, or that is not among those here."""
    return as_answer(_refusal(HTTPStatus.NOT_FOUND, f"there is no {request.path}"))


def asks_for_page(headers: Mapping[str, str]) -> bool:
    """Return whether `GET /` is a browser's, which takes a page. Programs get Connect's answer there."""
    return "text/html" in headers.get("Accept", "").lower()


# -- reading -----------------------------------------------------------------------------------------------------------


async def _show_server(request: ConsoleRequest) -> Answer:
    watches = request.watches.all
    ids = [each for watch in watches for each in connect_view.target_ids(watch.settings, _target_row(watch))]
    return request.json_answer(connect_view.server_info((watch.settings for watch in watches), VERSION, ids))


def _target_row(watch: FlowWatch) -> tuple[Row, ...]:
    row = watch.rows.find(f"{ClusterCapabilities.kind}/{watch.settings.flow.target}")
    return () if row is None else (row,)


async def _list_connectors(request: ConsoleRequest) -> Answer:
    connectors = _connectors(request)
    expansions = [each for each in request.raw.query.getall("expand", []) if each in EXPANSIONS]
    if "expand" not in request.query:
        return request.json_answer(list(connectors))
    states = await asyncio.gather(*(_state(request, connector) for connector in connectors.values()))
    expanded = zip(connectors.values(), states, strict=True)
    return request.json_answer({each.name: _expand(each, state, expansions) for each, state in expanded})


def _expand(connector: FlowConnector, state: ConnectorState, expansions: list[str]) -> dict[str, Any]:
    bodies: dict[str, Callable[[], dict[str, Any]]] = {
        "status": lambda: connect_view.connector_status(connector, state),
        "info": lambda: connect_view.connector_info(connector, state.tasks),
    }
    return {name: bodies[name]() for name in expansions}


async def _show_connector(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "Connector {name} not found")
    state = await _state(request, connector)
    return request.json_answer(connect_view.connector_info(connector, state.tasks))


async def _show_config(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "Connector {name} not found")
    return request.json_answer(connect_view.connector_config(connector))


async def _show_status(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "No status found for connector {name}")
    return request.json_answer(connect_view.connector_status(connector, await _state(request, connector)))


async def _list_tasks(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "Connector {name} not found")
    state = await _state(request, connector)
    return request.json_answer(connect_view.task_list(connector, state.tasks))


async def _show_task_status(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "No status found for connector {name}")
    text = request.path["task"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    task = (await _state(request, connector)).tasks.get(number)
    if task is None:
        raise _refusal(HTTPStatus.NOT_FOUND, f"No status found for task {connector.name}-{text}")
    return request.json_answer(connect_view.task_status(number, task))


async def _list_topics(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "Connector {name} not found")
    dated = await _watch(request, connector).report()
    return request.json_answer(connect_view.connector_topics(connector, dated.report))


async def _list_offsets(request: ConsoleRequest) -> Answer:
    connector = _connector(request, "Connector {name} not found")
    watch = _watch(request, connector)
    dated = await watch.report()
    if dated.report is None:  # rows of before may be there, but nothing says how old they are
        raise _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, dated.trouble)
    return request.json_answer(connect_view.connector_offsets(connector, watch.rows.rows.values()))


async def _list_plugins(request: ConsoleRequest) -> Answer:
    return request.json_answer(connect_view.plugins(f"{DEFAULT_VERSION}.0"))


def _connectors(request: ConsoleRequest) -> dict[str, FlowConnector]:
    return connect_view.flow_connectors(watch.settings for watch in request.watches.all)


def _connector(request: ConsoleRequest, unknown: str) -> FlowConnector:
    """Return the connector of the path. `unknown` is Connect's message if there is none."""
    name = request.path["name"]
    connector = _connectors(request).get(name)
    if connector is None:
        raise _refusal(HTTPStatus.NOT_FOUND, unknown.format(name=name))
    return connector


def _watch(request: ConsoleRequest, connector: FlowConnector) -> FlowWatch:
    return request.find_flow(str(connector.settings.flow))


async def _state(request: ConsoleRequest, connector: FlowConnector) -> ConnectorState:
    dated = await _watch(request, connector).report()
    return connect_view.connector_state(connector.connector, dated.report, dated.trouble)


# -- acting ------------------------------------------------------------------------------------------------------------


def _want(verb: str) -> Handler:
    """Return the handler that asks for the state of a connector by a verb. As in Connect, its body is empty."""

    async def handle(request: ConsoleRequest) -> Answer:
        connector = _connector(request, "Unknown connector {name}")
        scope, user = Scope.for_connector(connector.connector), acting_user(request.session)
        try:
            outcome = request.console.part(CommandRunner).ask(_watch(request, connector), verb, scope, user)
        except CannotUse as exc:
            raise _refusal(HTTPStatus.BAD_REQUEST, str(exc)) from exc
        await _wait_ended(outcome)
        if trouble := next((reply.trouble for reply in outcome.replies if reply.trouble), ""):
            raise _refusal(HTTPStatus.SERVICE_UNAVAILABLE, trouble)
        if outcome.phase in (REFUSAL, FAILED):
            raise _refusal(HTTPStatus.BAD_REQUEST, outcome.sentence)
        # Without an answer yet the command is kept, and carried out by the replica that comes.
        return page(HTTPStatus.ACCEPTED, b"", JSON)

    return handle


async def _wait_ended(outcome: CommandOutcome) -> None:
    """Return when a command has been answered, or after `ANSWERED_WITHIN_S`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            while outcome.phase == RUNNING:
                await asyncio.sleep(LOOKS_AGAIN_S)


# -- the rest of Connect's interface -----------------------------------------------------------------------------------


BY_FILE = "flows come from the file of Lockstep: change the file, and restart its services"
BY_COMMAND = "this console does not change offsets: lockstep offsets does, while the connector is stopped"
BY_RESTART = "this interface does not restart connectors: lockstep restart does"
REFUSED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("POST", "/connectors"): BY_FILE,
        ("DELETE", CONNECTOR): BY_FILE,
        ("PUT", f"{CONNECTOR}/config"): BY_FILE,
        ("PATCH", f"{CONNECTOR}/config"): BY_FILE,
        ("PATCH", f"{CONNECTOR}/offsets"): BY_COMMAND,
        ("DELETE", f"{CONNECTOR}/offsets"): BY_COMMAND,
        ("POST", f"{CONNECTOR}/restart"): BY_RESTART,
        ("POST", f"{CONNECTOR}/tasks/{{task}}/restart"): BY_RESTART,
        ("PUT", f"{CONNECTOR}/topics/reset"): "the topics of a connector are those that it copies now",
        ("PUT", "/connector-plugins/{plugin}/config/validate"): BY_FILE,
    }
)
"""Requests of Connect that are not carried out, by method and path, each with the reason."""


async def refuse(reason: str, request: web.Request) -> Answer:
    """Answer a request of Connect that is not carried out, whoever asks."""
    return as_answer(_refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} {request.path}: {reason}"))


def requests() -> Iterator[tuple[str, str]]:
    """Yield method and path of each request that is answered in another way than that there is no such path."""
    yield from ((route.method, route.path) for route in ROUTES)
    yield from REFUSED


def _get(path: str, handler: Callable[[ConsoleRequest], Awaitable[Answer]], summary: str, *query: Parameter) -> Route:
    return Route("GET", path, handler, f"Kafka Connect: {summary}", query=query, for_programs=True)


def _put(verb: str) -> Route:
    return Route(
        "PUT", f"{CONNECTOR}/{verb}", _want(verb), f"Kafka Connect: {verb} a connector of a flow", for_programs=True
    )


SERVER = _get("/", _show_server, "the version, and the target's cluster id")
"""The route of `GET /` for programs; a browser gets the console there."""

ROUTES = (
    _get(
        "/connectors",
        _list_connectors,
        "the connectors of all flows",
        Parameter("expand", "what is shown of each connector; it may be there twice", choices=EXPANSIONS),
    ),
    _get(CONNECTOR, _show_connector, "a connector with its configuration and its tasks"),
    _get(f"{CONNECTOR}/config", _show_config, "the configuration of a connector, without secrets"),
    _get(f"{CONNECTOR}/status", _show_status, "the state of a connector and of its tasks"),
    _get(f"{CONNECTOR}/tasks", _list_tasks, "the tasks of a connector"),
    _get(f"{CONNECTOR}/tasks/{{task}}/status", _show_task_status, "the state of a task"),
    _get(f"{CONNECTOR}/topics", _list_topics, "the topics on the target that a connector writes to"),
    _get(f"{CONNECTOR}/offsets", _list_offsets, "the last source offsets that a connector has copied"),
    _get("/connector-plugins", _list_plugins, "the classes of MirrorMaker 2's connectors"),
    *(_put(verb) for verb in (PAUSE, RESUME, STOP)),
)
