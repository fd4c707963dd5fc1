"""A subset of Kafka Connect's REST interface, for tools that know MirrorMaker 2: what connectors do, pause and restart.

Answers have Connect's bodies, errors too: `{"error_code": 404, "message": "..."}`. What would change a connector
otherwise is refused, for the file of the flows says what they do.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from aiohttp import web

from lockstep_console import connect_view
from lockstep_console.actions.command_outcome import FAILED, REFUSAL
from lockstep_console.actions.command_runner import CommandRunner
from lockstep_console.api.commands import acting_user
from lockstep_console.connect_view import ConnectorState, FlowConnector, WorkState
from lockstep_console.console import VERSION
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.route import Answer, ConsoleRequest, Handler, Parameter, RequestRefused, Route, json_answer
from lockstep_ops.exit_codes import CannotUse
from lockstep_rules.versions import DEFAULT_VERSION
from lockstep_runtime.http.answers import JSON, page
from lockstep_state.commands.command_vocabulary import PAUSE, RESTART, RESUME, STOP, Connector, Scope, ScopeKind
from lockstep_state.rows.state_rows import ClusterCapabilities, Row

ANSWERED_WITHIN_S = 10.0
"""The seconds for which the answer of the services to a command is waited for."""

ACTED_WITHIN_S = 2 * ANSWERED_WITHIN_S
"""The seconds that the answer to a request that acts may take."""

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
    """Answer a request for a path that Connect does not have, or that is not among those here, or by another method."""
    methods = allowed_methods(request.path)
    if not methods:
        return as_answer(_refusal(HTTPStatus.NOT_FOUND, f"there is no {request.path}"))
    answer = as_answer(_refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} takes {', '.join(methods)}"))
    answer.headers["Allow"] = ", ".join(methods)
    return answer


def allowed_methods(path: str) -> list[str]:
    """Return the methods that a path of Connect is asked by here; [] if there is no such path."""
    return sorted({method for method, pattern in requests() if _pattern(pattern).fullmatch(path.rstrip("/"))})


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", path))


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
    number, task = await _task(request, connector, f"No status found for task {connector.name}-{request.path['task']}")
    return request.json_answer(connect_view.task_status(number, task))


async def _task(request: ConsoleRequest, connector: FlowConnector, unknown: str) -> tuple[int, WorkState]:
    """Return the number and the state of the task of the path. `unknown` is Connect's message if there is none."""
    text = request.path["task"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    task = (await _state(request, connector)).tasks.get(number)
    if task is None:
        raise _refusal(HTTPStatus.NOT_FOUND, unknown)
    return number, task


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
        await _ask(request, connector, verb, [Scope.for_connector(connector.connector)])
        # Without an answer yet the command is kept, and carried out by the replica that comes.
        return page(HTTPStatus.ACCEPTED, b"", JSON)

    return handle


async def _restart_connector(request: ConsoleRequest) -> Answer:
    """Restart a connector, or what of it has failed.

    As in Connect the body is empty without parameters. Otherwise it is the status. The slots begin anew with their
    connector, so `includeTasks` alone adds nothing.
    """
    connector = _connector(request, "Unknown connector: {name}")
    tasks_too, failed_only = _flag(request, "includeTasks"), _flag(request, "onlyFailed")
    scopes = [Scope.for_connector(connector.connector)]
    if failed_only:
        scopes = list(failed_scopes(connector, await _state(request, connector), tasks_too=tasks_too))
    await _ask(request, connector, RESTART, scopes)
    if not (tasks_too or failed_only):
        return page(HTTPStatus.NO_CONTENT, b"", JSON)
    body = connect_view.connector_status(connector, await _state(request, connector))
    return request.json_answer(body, HTTPStatus.ACCEPTED)


async def _restart_task(request: ConsoleRequest) -> Answer:
    """Restart a task: a slot, or the connector that has no other task."""
    connector = _connector(request, "Unknown connector: {name}")
    number, _ = await _task(request, connector, f"Unknown task: {connector.name}-{request.path['task']}")
    await _ask(request, connector, RESTART, [_task_scope(connector, number)])
    return page(HTTPStatus.NO_CONTENT, b"", JSON)


def failed_scopes(connector: FlowConnector, state: ConnectorState, *, tasks_too: bool) -> Iterator[Scope]:
    """Yield what of a connector has failed. Pure. A connector that begins anew has its tasks begin anew."""
    if state.connector.state == connect_view.FAILED:
        yield Scope.for_connector(connector.connector)
    elif tasks_too:
        failed = [number for number, task in state.tasks.items() if task.state == connect_view.FAILED]
        yield from (_task_scope(connector, number) for number in failed)


def _task_scope(connector: FlowConnector, number: int) -> Scope:
    if connector.connector is Connector.SOURCE:
        return Scope(ScopeKind.SLOT, number=number)
    return Scope.for_connector(connector.connector)


def _flag(request: ConsoleRequest, name: str) -> bool:
    return request.query.get(name, "").lower() == "true"


async def _ask(request: ConsoleRequest, connector: FlowConnector, verb: str, scopes: Iterable[Scope]) -> None:
    """Ask services for something, and wait for their answers.

    Raises:
        RequestRefused: A service refuses it, or the target does not answer.
    """
    runner, watch, user = request.console.part(CommandRunner), _watch(request, connector), acting_user(request.session)
    try:
        outcomes = [runner.ask(watch, verb, scope, user) for scope in scopes]
    except CannotUse as exc:
        raise _refusal(HTTPStatus.BAD_REQUEST, str(exc)) from exc
    await asyncio.gather(*(runner.wait_ended(outcome, ANSWERED_WITHIN_S) for outcome in outcomes))
    for outcome in outcomes:
        if trouble := next((reply.trouble for reply in outcome.replies if reply.trouble), ""):
            raise _refusal(HTTPStatus.SERVICE_UNAVAILABLE, trouble)
        if outcome.phase in (REFUSAL, FAILED):
            raise _refusal(HTTPStatus.BAD_REQUEST, outcome.sentence)


# -- the rest of Connect's interface -----------------------------------------------------------------------------------


BY_FILE = "flows come from the file of Lockstep: change the file, and restart its services"
BY_COMMAND = "this console does not change offsets: lockstep offsets does, while the connector is stopped"
REFUSED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("POST", "/connectors"): BY_FILE,
        ("DELETE", CONNECTOR): BY_FILE,
        ("PUT", f"{CONNECTOR}/config"): BY_FILE,
        ("PATCH", f"{CONNECTOR}/config"): BY_FILE,
        ("PATCH", f"{CONNECTOR}/offsets"): BY_COMMAND,
        ("DELETE", f"{CONNECTOR}/offsets"): BY_COMMAND,
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


def _get(path: str, handler: Handler, summary: str, *query: Parameter) -> Route:
    return Route("GET", path, handler, f"Kafka Connect: {summary}", query=query, for_programs=True)


def _act(method: str, path: str, handler: Handler, summary: str, *query: Parameter) -> Route:
    summary = f"Kafka Connect: {summary}"
    return Route(method, path, handler, summary, query=query, answered_within_s=ACTED_WITHIN_S, for_programs=True)


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
    *(
        _act("PUT", f"{CONNECTOR}/{verb}", _want(verb), f"{verb} a connector of a flow")
        for verb in (PAUSE, RESUME, STOP)
    ),
    _act(
        "POST",
        f"{CONNECTOR}/restart",
        _restart_connector,
        "restart a connector of a flow with its tasks",
        Parameter("includeTasks", "with onlyFailed: restart tasks that have failed, too", "boolean"),
        Parameter("onlyFailed", "restart only what has failed", "boolean"),
    ),
    _act("POST", f"{CONNECTOR}/tasks/{{task}}/restart", _restart_task, "restart a task: a slot, or its connector"),
)
