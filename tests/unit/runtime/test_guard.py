"""What a connection to the pages may send, and how long it may take: beside what `test_server.py` asks of crowds."""

import asyncio
import contextlib
import logging
import time
from http import HTTPStatus
from pathlib import Path

import pytest

from lockstep_runtime.http import guard
from lockstep_runtime.http.access import AccessPolicy, same_token
from lockstep_runtime.http.answers import page
from lockstep_runtime.http.guard import GuardedConnection
from lockstep_runtime.http.server import PageServer
from tests.support.pages import crowd, got, pages_access, sent, served

LIVE = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[GuardedConnection]:
    """Connections that were forgotten, in order."""
    connections: list[GuardedConnection] = []
    abort = GuardedConnection.abort

    def noted(connection: GuardedConnection) -> None:
        abort(connection)
        connections.append(connection)

    monkeypatch.setattr(GuardedConnection, "abort", noted)
    return connections


async def closes_within(seconds: float, reader: asyncio.StreamReader) -> bytes:
    """What came until the other side closed. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /live",
        b"CONNECT ",
        b"GET /live HTTP/2.0\r\nHost: localhost",
        b"GET  /live HTTP/1.1\r\nHost: localhost",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nno colon",
        b"GET /live HTTP/1.1\r\nHost : x",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nA: 1\r\n folded: 2",
        b"GET /live HTTP/1.1",
        b"get /live HTTP/1.1\r\nHost: localhost",
        b"PRI * HTTP/2.0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\n" + b"\r\n".join(b"A%d: 1" % number for number in range(300)),
    ],
)
async def test_malformed_http_request_is_refused_without_a_log_line(
    head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(AccessPolicy()) as address:
        answer = await sent(address, head + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n")
    assert answer.endswith(b"\r\nConnection: close\r\n\r\nBad Request\n")
    assert b"Server:" not in answer
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


async def test_a_head_of_many_lines_is_too_large_as_one_long_line_is() -> None:
    async with served(AccessPolicy()) as address:
        lines = b"".join(b"A%d: %s\r\n" % (number, b"x" * 1_000) for number in range(9))
        for end in (b"\r\n", b"A: "):  # whole, and without an end
            answer = await sent(address, LIVE[:-2] + lines + end)
            assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


@pytest.mark.parametrize("tls", [False, True])
async def test_a_head_may_come_byte_by_byte_and_behind_empty_lines(tmp_path: Path, tls: bool) -> None:
    access, trusted = pages_access(tmp_path, tls=tls)
    async with served(access) as address:
        port = int(address.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("localhost", port, ssl=trusted)
        for byte in b"\r\n\r\n" + LIVE:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert (await reader.read()).endswith(b"\r\n\r\nlive\n")
        writer.close()


async def test_a_client_may_end_its_half_of_the_connection_with_its_request() -> None:
    async with served(AccessPolicy()) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(LIVE)
        writer.write_eof()
        assert (await reader.read()).endswith(b"\r\n\r\nlive\n")
        writer.close()


@pytest.mark.parametrize("coding", [b"Content-Encoding: gzip\r\nContent-Length: 4", b"Transfer-Encoding: chunked"])
async def test_a_body_that_is_none_is_no_news(coding: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with served(AccessPolicy()) as address:
        async with crowd(address, 1, LIVE[:-2] + coding + b"\r\n\r\n") as opened:
            await asyncio.sleep(0.1)
            opened[0][1].write(b"zz\r\n")
            assert b"live" in await closes_within(3.0, opened[0][0])
        assert await got(address, "/live") == (200, "live\n")
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


async def test_a_client_that_is_gone_when_it_is_refused_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async with served(AccessPolicy()) as address:
        for _ in range(50):
            async with crowd(address, 10, b"GET /live HTTP/1.1\r\nnone\r\n\r\n"):
                pass  # each is reset at once
        assert await got(address, "/live") == (200, "live\n")
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


@pytest.mark.parametrize("says", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET /live"])
async def test_a_handshake_has_the_time_of_a_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bytes, ended: list[GuardedConnection]
) -> None:
    monkeypatch.setattr(guard, "HEAD_WITHIN_S", 0.3)
    access, _ = pages_access(tmp_path, tls=True)
    async with served(access) as address, crowd(address, 1, says) as opened:
        await closes_within(2.0, opened[0][0])
        async with asyncio.timeout(2.0):
            while not ended:
                await asyncio.sleep(0.01)


async def test_http_answer_that_is_not_read_times_out(
    monkeypatch: pytest.MonkeyPatch, ended: list[GuardedConnection]
) -> None:
    monkeypatch.setattr(guard, "ANSWERED_WITHIN_S", 0.3)
    monkeypatch.setattr(PageServer, "_answer_probe", lambda *_: page(HTTPStatus.OK, b"x" * (1 << 26)))
    async with served(AccessPolicy()) as address, crowd(address, 1, LIVE) as opened:
        began = time.monotonic()
        opened[0][1].transport.pause_reading()  # type: ignore[attr-defined]  # the transport of a socket is for both ways
        async with asyncio.timeout(5.0):
            while not ended:
                await asyncio.sleep(0.01)
        assert time.monotonic() - began > 0.2


async def test_every_connection_is_forgotten_with_its_end(tmp_path: Path, ended: list[GuardedConnection]) -> None:
    access, trusted = pages_access(tmp_path, tls=True)
    server = None
    async with served(access) as address:
        async with crowd(address, 5, b""), crowd(address, 5, b"\x16\x03\x01\x02\x00\x01"):
            for _ in range(5):
                assert await got(address, "/live", tls=trusted) == (200, "live\n")
            server = ended[0]._crowd
            assert 10 <= len(server) <= 15
        async with asyncio.timeout(5.0):
            while server:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("value", ["Basic czM=", "bearer", "Bearer", "s3cret", "Bearer  ", "Bearer s3cre"])
async def test_only_a_bearer_token_opens(value: str) -> None:
    async with served(AccessPolicy(token="s3cret")) as address:
        request = b"GET /status HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n"
        assert (await sent(address, request % value.encode())).startswith(b"HTTP/1.1 401 ")
        assert (await sent(address, request % b"bEARER  s3cret ")).startswith(b"HTTP/1.1 200 ")


def test_no_token_is_never_the_right_one() -> None:
    assert same_token("s3cret", "s3cret")
    assert not same_token("s3cre", "s3cret")
    assert not same_token("", "")
    assert not same_token("schlüssel", "schluessel")
