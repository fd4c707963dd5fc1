"""Who may read and act, and which requests may be another site's."""

import pytest
from multidict import CIMultiDict

from lockstep_console.access import ConsoleAccess, forgery_refusal
from lockstep_console.pages import ROUTES, refusal_of
from lockstep_console.route import Route
from lockstep_runtime.http.access import AccessPolicy

GUARDED = AccessPolicy(token="right")
RIGHT, WRONG = {"Authorization": "Bearer right"}, {"Authorization": "bearer wrong"}
ACTING = {"Content-Type": "application/json; charset=utf-8", "X-Lockstep-Request": "1", "Host": "console:9405"}


@pytest.mark.parametrize(
    ("access", "headers", "user", "may_read", "may_act"),
    [
        (ConsoleAccess(AccessPolicy()), {}, "anonymous", True, False),
        (ConsoleAccess(AccessPolicy()), RIGHT, "anonymous", True, False),
        (ConsoleAccess(GUARDED), {}, "anonymous", False, False),
        (ConsoleAccess(GUARDED), WRONG, "anonymous", False, False),
        (ConsoleAccess(GUARDED), RIGHT, "token", True, True),
        (ConsoleAccess(GUARDED, anonymous_read=True), {}, "anonymous", True, False),
        (ConsoleAccess(GUARDED, anonymous_read=True), RIGHT, "token", True, True),
        (ConsoleAccess(AccessPolicy(), "X-User"), {"X-User": "ana"}, "ana", True, True),
        (ConsoleAccess(AccessPolicy(), "X-User"), {}, "anonymous", False, False),
        (ConsoleAccess(AccessPolicy(), "X-User"), {"X-User": "  "}, "anonymous", False, False),
        (ConsoleAccess(AccessPolicy(), "X-User"), {"X-User": "a\tb"}, "anonymous", False, False),
        (ConsoleAccess(AccessPolicy(), "X-User"), {"X-User": "a" * 201}, "anonymous", False, False),
        (ConsoleAccess(AccessPolicy(), "X-User"), {"X-Other": "ana"}, "anonymous", False, False),
        (ConsoleAccess(GUARDED, "X-User"), {"X-User": "ana", **WRONG}, "ana", True, True),
    ],
)
def test_session_is_as_the_options_say(
    access: ConsoleAccess, headers: dict[str, str], user: str, may_read: bool, may_act: bool
) -> None:
    session = access.session(headers)
    assert (session.user, session.may_read, session.may_act) == (user, may_read, may_act)
    assert bool(session.why_read_only) is not may_act


@pytest.mark.parametrize(
    ("names", "user"),
    [
        (["ana"], "ana"),
        (["mallory", "ana"], ""),
        (["ana", "ana"], ""),
        (["", "ana"], ""),
        (["a\u202eb"], ""),
        (["al\udcffce"], ""),
        (["Zoë <script>"], "Zoë <script>"),
    ],
)
def test_header_of_the_proxy_names_one_user_or_nobody(names: list[str], user: str) -> None:
    headers: CIMultiDict[str] = CIMultiDict([("x-user", name) for name in names])
    session = ConsoleAccess(AccessPolicy(), "X-User").session(headers)
    assert (session.user, session.may_act) == ((user, True) if user else ("anonymous", False))
    assert ("names no user" in session.why_read_only) is not bool(user)


@pytest.mark.parametrize(
    "headers",
    [
        ACTING,
        {**ACTING, "Origin": "https://console:9405", "Sec-Fetch-Site": "same-origin"},
        {**ACTING, "Sec-Fetch-Site": "none"},
    ],
)
def test_request_of_the_console_itself_is_no_forgery(headers: dict[str, str]) -> None:
    assert forgery_refusal(headers) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"X-Lockstep-Request": "0"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_request_that_may_be_of_another_site_is_refused(change: dict[str, str]) -> None:
    assert forgery_refusal({**ACTING, **change})


def test_program_with_the_token_needs_no_headers_of_the_page() -> None:
    route = Route("PUT", "/connectors/{name}/pause", ROUTES[0].handler, "Pause", for_programs=True)
    by_token = ConsoleAccess(GUARDED).session(RIGHT)
    by_proxy = ConsoleAccess(GUARDED, "X-User").session({"X-User": "ana"})
    assert refusal_of(route, by_token, {}) is None
    refused = refusal_of(route, by_proxy, {})
    assert refused is not None
    assert refused.code == "foreign-request"


def test_routes_have_one_handler_each_and_acting_ones_have_a_body() -> None:
    places = [(route.method, route.path) for route in ROUTES]
    assert len(places) == len(set(places))
    assert all(route.summary for route in ROUTES)
    assert {route.path for route in ROUTES if route.is_open} == {"/api/v1/session"}


def test_anonymous_reader_of_a_guarded_console_is_read_only() -> None:
    session = ConsoleAccess(GUARDED, anonymous_read=True).session({})
    route = Route("POST", "/api/v1/x", ROUTES[0].handler, "Act")
    refused = refusal_of(route, session, ACTING)
    assert refused is not None
    assert (refused.status, refused.code) == (403, "read-only")
