"""A question that the clusters do not answer in time is answered all the same, and a slow one is waited for."""

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from lockstep_console import pages
from lockstep_console.flow_watches import FlowWatches
from lockstep_console.route import ConsoleRequest, Route, json_answer
from lockstep_runtime.http import guard
from tests.support.idle_console import idle_console, served
from tests.support.pages import got
from tools.console.vendor import STATIC

ARRIVES_WITHIN_S = 3.0
"""Seconds within which a busy console notices that the time is over, and the answer is at the page."""


async def _slow(request: ConsoleRequest) -> web.StreamResponse:
    await asyncio.sleep(0.6)
    return json_answer({"known": True})


async def _mistaken(request: ConsoleRequest) -> web.StreamResponse:
    raise OverflowError("date value out of range")


@pytest.fixture
async def address(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    routes = tuple(
        Route("GET", f"/api/v1/{name}", _slow, "Slow", answered_within_s=within_s, for_programs=name == "connect")
        for name, within_s in (("patient", 5.0), ("late", 0.2), ("connect", 0.2), ("hasty", 0.0))
    )
    routes = (*routes, Route("GET", "/api/v1/mistaken", _mistaken, "Mistaken"))
    monkeypatch.setattr(pages, "ROUTES", (*pages.ROUTES, *routes))
    monkeypatch.setattr(guard, "ANSWERED_WITHIN_S", 0.3)
    async with served(idle_console(FlowWatches([]))) as opened:
        yield opened


async def test_slow_question_is_waited_for_as_long_as_its_route_says(address: str) -> None:
    assert await got(address, "/api/v1/patient") == (200, '{"known":true}\n')


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
    (route,) = (each for each in pages.ROUTES if (each.method, each.path) == (method, path))
    assert route.answered_within_s > guard.ANSWERED_WITHIN_S


def test_page_waits_longer_than_the_console_takes_for_any_answer() -> None:
    (waits_ms,) = re.findall(r"ANSWERED_WITHIN_MS = ([0-9_]+);", (STATIC / "lib" / "api.js").read_text())
    longest_s = max(route.answered_within_s for route in pages.ROUTES if not route.streams)
    assert longest_s + ARRIVES_WITHIN_S <= int(waits_ms) / 1000 < 2 * longest_s


async def test_question_that_takes_too_long_is_answered_with_a_sentence(address: str) -> None:
    for name in ("late", "hasty"):
        status, text = await got(address, f"/api/v1/{name}")
        assert (status, json.loads(text)["error"]["code"]) == (504, "slow-answer"), name
    status, text = await got(address, "/api/v1/connect")
    assert (status, json.loads(text)["error_code"]) == (504, 504)


async def test_mistake_of_the_console_is_a_sentence_and_is_logged(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard, "_FAILURES", guard._PageFailures())
    for _ in range(2):
        status, text = await got(address, "/api/v1/mistaken")
        assert (status, json.loads(text)["error"]["code"]) == (500, "failed")
        assert "OverflowError: date value out of range" in text
    assert [record.message for record in caplog.records] == ["page failed"], "once a minute"


async def test_head_has_the_head_of_the_answer_alone(address: str) -> None:
    assert await got(address, "/api/v1/patient", method="HEAD") == (200, "")
    assert (await got(address, "/api/v1/nothing", method="HEAD"))[0] == 404
