"""All routes of the console, and the checks that each request passes before its route is asked."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler

from lockstep_console.access import Session, foreign_site, forgery_refusal
from lockstep_console.api import (
    changes,
    clusters,
    codes,
    commands,
    connect,
    evidence,
    flows,
    groups,
    lag,
    plan,
    records,
    session,
    switches,
    verifications,
)
from lockstep_console.console import VERSION, Console
from lockstep_console.openapi import with_document
from lockstep_console.route import API, Answer, ConsoleRequest, RequestRefused, Route, problem
from lockstep_console.static_files import StaticFiles
from lockstep_runtime.http.guard import log_page_failure

ROUTES: tuple[Route, ...] = with_document(
    (
        *session.ROUTES,
        *flows.ROUTES,
        *changes.ROUTES,
        *lag.ROUTES,
        *groups.ROUTES,
        *records.ROUTES,
        *evidence.ROUTES,
        *plan.ROUTES,
        *clusters.ROUTES,
        *codes.ROUTES,
        *commands.ROUTES,
        *switches.ROUTES,
        *verifications.ROUTES,
        *connect.ROUTES,
    ),
    VERSION,
)
"""Every route, for the server and for the OpenAPI document."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer. No page of another site may show the console, and the console asks no other host."""


def handlers(console: Console, files: StaticFiles) -> dict[tuple[str, str], Handler]:
    """Return what answers requests, by method and path."""
    by_method: dict[tuple[str, str], Handler] = {
        (route.method, route.path): partial(_answer_route, console, route) for route in ROUTES
    }
    by_method |= {
        ("HEAD", route.path): by_method["GET", route.path]
        for route in ROUTES
        if route.method == "GET" and not route.streams
    }
    for method in ("GET", "HEAD"):
        by_method[method, "/{file:.+}"] = files.show
        by_method[method, "/"] = partial(_show_first, console, files)
    by_method |= {asked: partial(connect.refuse, reason) for asked, reason in connect.REFUSED.items()}
    # Connect takes a slash at the end too, and some of its clients write it.
    by_method |= {(method, f"{path}/"): by_method[method, path] for method, path in connect.requests()}
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        by_method[method, "/api/{rest:.*}"] = _refuse_unknown
        for path in connect.PATHS:
            by_method[method, f"{path}/{{rest:.*}}"] = connect.refuse_unknown
    # The longest beginning first: aiohttp takes the first path that fits.
    return dict(sorted(by_method.items(), key=lambda item: _generality(item[0][1])))


def _generality(path: str) -> tuple[int, int]:
    """Return the place of a path in the order of the router: those that fit everything come last."""
    return (2 if path == "/{file:.+}" else 1 if "{rest:" in path else 0, path.count("{"))


async def _answer_route(console: Console, route: Route, request: web.Request) -> Answer:
    """Answer a request, if it may be made."""
    session = console.access.session(request.headers)
    try:
        return await _carry_out(console, route, session, request)
    except RequestRefused as exc:
        return connect.as_answer(exc) if route.for_programs else exc.as_answer()


async def _carry_out(console: Console, route: Route, session: Session, request: web.Request) -> Answer:
    """Return the answer of a route to a request, if the session may make it.

    Raises:
        RequestRefused: It is not carried out, or the console makes a mistake with it.
    """
    try:
        if (refused := refusal_of(route, session, request.headers)) is not None:
            raise refused
        asked = ConsoleRequest(console, request, session)
        work = route.handler(asked)
        return await (work if route.streams else asked.within(route.answered_within_s, work))
    except web.HTTPRequestEntityTooLarge as exc:
        raise RequestRefused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", "The body is too large.") from exc
    except (RequestRefused, web.HTTPException, ConnectionError):
        raise
    except Exception as exc:
        if route.streams:
            raise  # a part of the answer may have been sent
        log_page_failure(exc)
        sentence = f"The console could not answer ({type(exc).__name__}: {exc}), and its log says more."
        raise RequestRefused(HTTPStatus.INTERNAL_SERVER_ERROR, "failed", sentence) from exc


def refusal_of(route: Route, session: Session, headers: Mapping[str, str]) -> RequestRefused | None:
    """Return why a session may not make a request, or None if it may. Pure."""
    if route.acts and (session.may_act or not route.for_programs):
        is_foreign: Callable[[Mapping[str, str]], str] = forgery_refusal
        if route.for_programs and session.has_token:
            is_foreign = foreign_site
        if sentence := is_foreign(headers):
            return RequestRefused(HTTPStatus.FORBIDDEN, "foreign-request", sentence)
    if route.is_open:
        return None
    if not session.may_read:
        return RequestRefused(HTTPStatus.UNAUTHORIZED, "not-admitted", session.why_read_only)
    if route.acts and not session.may_act:
        return RequestRefused(HTTPStatus.FORBIDDEN, "read-only", session.why_read_only)
    return None


async def _show_first(console: Console, files: StaticFiles, request: web.Request) -> Answer:
    """Answer `GET /`: a browser gets the first page, and a program what Connect says of itself there."""
    if connect.asks_for_page(request.headers):
        return await files.show(request)
    return await _answer_route(console, connect.SERVER, request)


async def _refuse_unknown(request: web.Request) -> Answer:
    return problem(HTTPStatus.NOT_FOUND, "unknown-path", f"The API has no {request.path}. {API}/openapi.json has all.")
