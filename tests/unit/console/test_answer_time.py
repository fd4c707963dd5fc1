"""How long an answer may take: longer than that of any page where clusters are asked, for those who may ask."""

import asyncio
import urllib.error
import urllib.request
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep_console.access import ConsoleAccess
from lockstep_console.pages import ROUTES, _answer_route
from lockstep_console.route import Answer, ConsoleRequest, Route, json_answer
from lockstep_runtime.http import guard
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.server import GuardedServer

SHORT_S, SLOW_S = 0.3, 0.9


async def _answer_late(request: ConsoleRequest) -> Answer:
    await asyncio.sleep(SLOW_S)
    return json_answer({"late": True})


def ask(address: str) -> int:
    """Return the status of the answer; 0: there was none."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own address
            return int(answer.status)
    except (urllib.error.URLError, ConnectionError):
        return 0


@pytest.mark.parametrize(("within_s", "status"), [(0.0, 0), (5.0, 200)])
async def test_slow_answer_is_given_only_where_the_route_says_so(
    within_s: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "ANSWERED_WITHIN_S", SHORT_S)
    console: Any = SimpleNamespace(access=ConsoleAccess(AccessPolicy()), watches=None)
    route = Route("GET", "/slow", _answer_late, "Answer late", answered_within_s=within_s)
    server = GuardedServer({}, routes={("GET", "/slow"): partial(_answer_route, console, route)})
    address = await server.open(AccessPolicy(port=0))
    try:
        assert await asyncio.to_thread(ask, f"{address}/slow") == status
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/flows/{flow}/switches"),
        ("GET", "/api/v1/flows/{flow}/plan"),
        ("GET", "/api/v1/flows/{flow}/records"),
        ("PUT", "/connectors/{name}/pause"),
        ("POST", "/connectors/{name}/restart"),
    ],
)
def test_route_that_asks_clusters_has_time_for_it(method: str, path: str) -> None:
    (route,) = (each for each in ROUTES if (each.method, each.path) == (method, path))
    assert route.answered_within_s > guard.ANSWERED_WITHIN_S
