"""Answers that go on, and requests with a body, behind the guard."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from lockstep_runtime.http import guard
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.answers import page
from lockstep_runtime.http.guard import BODY_BYTES, STREAMS
from lockstep_runtime.http.server import GuardedServer
from lockstep_runtime.http.stream import AnswerStream, connection_of
from tests.support.eventually import eventually
from tests.support.pages import crowd, got, sent

ASK = b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"


@asynccontextmanager
async def serving(
    routes: Mapping[tuple[str, str], Handler], headers: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    async def fine(_: web.Request) -> web.Response:
        return page(HTTPStatus.OK, b"fine\n")

    server = GuardedServer({"/live": fine}, routes=routes, headers=headers or {})
    address = await server.open(AccessPolicy())
    try:
        yield address
    finally:
        await server.close()


class Streams:
    """A page that sends parts until its client goes, and what became of each."""

    def __init__(self, part: bytes = b"x") -> None:
        self.part = part
        self.ended: list[str] = []
        self.opened = 0

    async def show(self, request: web.Request) -> web.StreamResponse:
        stream = await AnswerStream.open(request)
        if stream is None:
            return page(HTTPStatus.SERVICE_UNAVAILABLE, b"too many\n")
        self.opened += 1
        try:
            while not stream.has_ended:
                await stream.send(self.part)
                await asyncio.sleep(0.01)
        except ConnectionError:
            self.ended.append("dropped")
        else:
            self.ended.append("gone")
        return stream.answer


async def test_at_most_half_of_the_connections_are_streams_and_probes_pass() -> None:
    streams = Streams()
    async with serving({("GET", "/stream"): streams.show}) as address, crowd(address, STREAMS + 8, ASK) as clients:
        heads = [await reader.readline() for reader, _ in clients]
        assert [head.split()[1] for head in heads].count(b"200") == STREAMS
        assert [head.split()[1] for head in heads].count(b"503") == 8
        for _ in range(5):
            assert await got(address, "/live") == (200, "fine\n")
        async with crowd(address, guard.CONNECTIONS, b""):  # they displace each other, and no stream
            assert await got(address, "/live") == (200, "fine\n")
        assert not streams.ended
    await eventually(lambda: len(streams.ended) == STREAMS, within=10, what="all have ended")


async def test_client_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "ANSWERED_WITHIN_S", 0.3)
    streams = Streams(b"x" * (1 << 20))
    async with serving({("GET", "/stream"): streams.show}) as address:
        host, _, port = address.partition("://")[2].rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1 << 10)
        writer.write(ASK)
        await eventually(lambda: streams.ended == ["dropped"], within=10, what="it is dropped")
        writer.close()


async def test_client_that_reads_slowly_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "ANSWERED_WITHIN_S", 0.5)
    streams = Streams(b"x")
    async with serving({("GET", "/stream"): streams.show}) as address, crowd(address, 1, ASK) as ((reader, _),):
        for _ in range(20):
            await reader.read(64)
            await asyncio.sleep(0.1)
        assert streams.ended == []


async def test_answer_that_is_allowed_more_time_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "ANSWERED_WITHIN_S", 0.2)

    def slow(allowed: bool) -> Callable[[web.Request], object]:
        async def show(request: web.Request) -> web.StreamResponse:
            if allowed:
                connection_of(request).allow_answer(5.0)
            await asyncio.sleep(0.6)
            return page(HTTPStatus.OK, b"done\n")

        return show

    routes = {("GET", "/long"): slow(True), ("GET", "/late"): slow(False)}
    async with serving(routes) as address:  # type: ignore[arg-type]  # aiohttp's alias is narrower than what it takes
        assert await got(address, "/long") == (200, "done\n")
        assert await sent(address, b"GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""


async def test_body_is_read_up_to_its_bound_and_methods_are_those_of_the_path() -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return page(HTTPStatus.OK, b"%d" % len(await request.read()))

    def post(size: int, path: str = "/act", method: str = "POST") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        return head.encode() + b"x" * size

    async with serving({("POST", "/act"): echo}, {"Content-Security-Policy": "default-src 'self'"}) as address:
        answer = await sent(address, post(BODY_BYTES))
        assert answer.endswith(b"\r\n\r\n%d" % BODY_BYTES)
        assert b"Content-Security-Policy: default-src 'self'\r\n" in answer
        assert (await sent(address, post(BODY_BYTES + 1))).split()[1] == b"413"
        refused = await sent(address, post(1, "/live"))
        assert refused.split()[1] == b"405"
        assert b"Allow: GET,HEAD" in refused.replace(b", ", b",")
        assert b"Allow: POST\r\n" in await sent(address, b"GET /act HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await sent(address, post(1, "/act", "DELETE"))).split()[1] == b"405"
