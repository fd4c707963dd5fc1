"""The pages over real sockets: who may see what, and what nobody gets out of them."""

import asyncio
import contextlib
import json
import shutil
import socket
import ssl
import time
from http import HTTPStatus
from pathlib import Path

import pytest

from lockstep_cli.processes.service_process import answers_ready
from lockstep_runtime.http import guard, server
from lockstep_runtime.http.access import AccessPolicy, PagesUnusable
from lockstep_runtime.http.answers import page
from lockstep_runtime.http.server import PageServer
from tests.support.pages import WITHIN, certificate, crowd, got, pages_access, sent, served

NOTHING_BUT_STATUS = [
    "/",
    "/statu",
    "/status/",
    "/live/../status",
    "/../../etc/passwd",
    "/%2e%2e/etc/passwd",
    "//status",
    "/config",
    # Faust's own, were its web server on.
    "/tables",
    "/router",
    "/stats",
    "/assignment/",
    "/production_index",
]


async def test_the_four_pages_and_no_other() -> None:
    async with served(AccessPolicy()) as address:
        assert await got(address, "/live") == (200, "live\n")
        assert await got(address, "/ready") == (503, "not read yet: A->B\n")
        assert json.loads((await got(address, "/status"))[1]) == {"service": "x"}
        assert (await got(address, "/metrics?x=y"))[0] == 200
        for path in NOTHING_BUT_STATUS:
            assert await got(address, path) == (404, "Not Found\n"), path


async def test_http_methods_other_than_get_and_head_are_refused() -> None:
    async with served(AccessPolicy()) as address:
        assert await got(address, "/status", method="HEAD") == (200, "")
        assert await got(address, "/nowhere", method="HEAD") == (404, "")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
            assert (await got(address, "/status", method=method))[0] == 405
        body = b"x" * 50_000
        posted = await sent(
            address, b"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n" + body
        )
        assert posted.startswith(b"HTTP/1.1 405 ")
        assert b"Server:" not in posted


async def test_a_token_is_asked_for_except_by_probes_which_say_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    async with served(AccessPolicy(token_file=file)) as address:
        for path in ("/status", "/metrics"):
            assert (await got(address, path))[0] == 401
            assert (await got(address, path, token="s3cre"))[0] == 401
            assert (await got(address, path, token="s3cret"))[0] == 200
        assert (await got(address, "/nowhere"))[0] == 404
        assert await got(address, "/live") == (200, "live\n")
        assert await got(address, "/ready") == (503, "not ready\n")
        assert await got(address, "/ready", token="s3cret") == (503, "not read yet: A->B\n")
        file.write_text("another\n")
        assert (await got(address, "/status", token="s3cret"))[0] == 401
        assert (await got(address, "/status", token="another"))[0] == 200
        file.unlink()
        assert (await got(address, "/status", token="another"))[0] == 401
    async with served(AccessPolicy(token="given")) as address:
        assert (await got(address, "/status", token="given"))[0] == 200
        assert (await got(address, "/status"))[0] == 401


@pytest.mark.parametrize("tls", [False, True])
async def test_http_request_that_is_too_large_or_too_slow_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setattr(guard, "HEAD_WITHIN_S", 0.5)
    access, trusted = pages_access(tmp_path, tls=tls)
    async with served(access) as address:
        large = b"GET /live HTTP/1.1\r\n" + b"A: " + b"x" * 20_000 + b"\r\n\r\n"
        assert (await sent(address, large, trusted)).startswith(b"HTTP/1.1 431 ")
        began = time.monotonic()
        assert (await sent(address, b"GET /live HTTP/1.1\r\nHost:", trusted)).startswith(b"HTTP/1.1 408 ")
        assert (await sent(address, b"", trusted)).startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - began < 5
        assert await got(address, "/live", tls=trusted) == (200, "live\n")


SLOW_CLIENTS = {
    "send nothing": b"",
    "send half a request": b"GET /live HTTP/1.1\r\nHost:",
    "keep the connection after the answer": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "are refused and stay": b"POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n",
    "begin a handshake": b"\x16\x03\x01\x02\x00\x01",
}


@pytest.mark.parametrize("says", SLOW_CLIENTS.values(), ids=SLOW_CLIENTS)
@pytest.mark.parametrize("tls", [False, True])
async def test_live_is_answered_at_once_under_a_crowd_of_slow_clients(tmp_path: Path, says: bytes, tls: bool) -> None:
    access, trusted = pages_access(tmp_path, tls=tls)
    async with served(access) as address, crowd(address, guard.CONNECTIONS + 20, says):
        for _ in range(20):
            async with asyncio.timeout(2.0):
                assert await got(address, "/live", tls=trusted) == (200, "live\n")


async def test_a_client_that_does_not_take_its_answer_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "CONNECTIONS", 3)
    monkeypatch.setattr(PageServer, "_answer_probe", lambda *_: page(HTTPStatus.OK, b"x" * (1 << 24)))
    async with served(AccessPolicy()) as address, crowd(address, 3, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        await asyncio.sleep(0.1)
        assert (await sent(address, b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")).count(b"x") > 1 << 24


@pytest.mark.parametrize(("tls", "says"), [(False, b""), (True, b"\x16\x03")])
async def test_the_oldest_connection_without_a_request_is_closed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool, says: bytes
) -> None:
    monkeypatch.setattr(guard, "CONNECTIONS", 3)
    access, trusted = pages_access(tmp_path, tls=tls)
    async with served(access) as address, crowd(address, 3, says) as opened:
        await asyncio.sleep(0.1)
        assert await got(address, "/live", tls=trusted) == (200, "live\n")
        async with asyncio.timeout(1.0):
            with contextlib.suppress(ConnectionError):
                assert await opened[0][0].read() == b""
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await opened[1][0].read()


async def _write_for_ever(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(5.0):
        while True:
            writer.write(b"more")
            await writer.drain()
            await asyncio.sleep(0.02)


async def test_a_refused_connection_is_closed_soon_though_its_client_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "HEAD_WITHIN_S", 0.3)
    monkeypatch.setattr(guard, "LEFT_OVER_WITHIN_S", 0.2)

    async def is_closed(says: bytes) -> None:
        async with served(AccessPolicy()) as address, crowd(address, 1, says) as opened:
            await asyncio.sleep(0.9)
            reader, writer = opened[0]
            assert (await reader.read()).startswith(b"HTTP/1.1 4")
            with pytest.raises(ConnectionError):
                await _write_for_ever(writer)

    refused = (b"", b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.gather(*map(is_closed, refused))


async def test_https_renews_its_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CHECK_INTERVAL_S", 0.05)
    made, key = certificate(tmp_path, "first")
    (next_made, next_key), warnings = certificate(tmp_path, "second"), list[str]()
    first, second = (ssl.create_default_context(cafile=str(file)) for file in (made, next_made))
    async with served(AccessPolicy(certificate=made, key=key), warnings.append) as address:
        assert address.startswith("https://127.0.0.1:")
        assert await got(address, "/live", tls=first) == (200, "live\n")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, IndexError)):
            await got(address.replace("https", "http"), "/live")  # clear text
        shutil.copy(next_made, made)  # half of a pair, as while a secret is exchanged
        async with asyncio.timeout(WITHIN):
            while not warnings:
                await asyncio.sleep(0.05)
        assert "cannot be used" in warnings[0]
        shutil.copy(next_key, key)
        async with asyncio.timeout(WITHIN):
            while "" not in warnings:
                await asyncio.sleep(0.05)
        assert len(warnings) == 2
        assert await got(address, "/live", tls=second) == (200, "live\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            await got(address, "/live", tls=first)


async def test_the_run_sees_whether_a_service_is_ready_whatever_its_door(tmp_path: Path) -> None:
    made, key = certificate(tmp_path, "one")
    for access in (
        AccessPolicy(),
        AccessPolicy(token="s3cret"),
        AccessPolicy(certificate=made, key=key, token="s3cret"),
    ):
        async with served(access, why_not=None) as address:
            assert await answers_ready(address)
        async with served(access) as address:
            assert not await answers_ready(address)
        assert not await answers_ready(address)


async def test_access_policy_that_cannot_work_is_refused_with_a_remedy(tmp_path: Path) -> None:
    made, _ = certificate(tmp_path, "one")
    _, other = certificate(tmp_path, "other")
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for access, words in [
        (AccessPolicy(certificate=made), "--tls-cert and --tls-key go together"),
        (AccessPolicy(certificate=made, key=other), "cannot be used"),
        (AccessPolicy(certificate=made, key=tmp_path / "none"), "cannot be used"),
        (AccessPolicy(token_file=empty), "cannot be read or is empty"),
        (AccessPolicy(token_file=tmp_path / "none"), "cannot be read or is empty"),
        (AccessPolicy(token_file=made, token="x"), "keep one"),
        (AccessPolicy(host="192.0.2.1"), "cannot listen on 192.0.2.1:0"),
    ]:
        with pytest.raises(PagesUnusable, match=words):
            async with served(access):
                pass
    async with served(AccessPolicy()) as address:
        with pytest.raises(PagesUnusable, match="is in use: choose another with --port"):
            async with served(AccessPolicy(port=int(address.rpartition(":")[2]))):
                pass


@pytest.mark.parametrize("host", ["*", ""])
async def test_pages_of_every_address_answer_by_ipv4_and_ipv6(host: str) -> None:
    async with served(AccessPolicy(host=host)) as address:
        port = address.rpartition(":")[2]
        assert address == f"http://0.0.0.0:{port}"
        assert await got(address, "/live") == await got(f"http://127.0.0.1:{port}", "/live") == (200, "live\n")
        with pytest.raises(PagesUnusable, match=rf"port {port} on \* is in use"):
            async with served(AccessPolicy(host=host, port=int(port))):
                pass
        if socket.has_dualstack_ipv6():
            assert await got(f"http://[::1]:{port}", "/live") == (200, "live\n")


async def test_pages_of_every_address_need_no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    async with served(AccessPolicy(host="*")) as address:
        assert await got(address, "/live") == (200, "live\n")


def test_access_policy_for_other_hosts_names_what_it_lacks() -> None:
    made, key = Path("c"), Path("k")
    assert (
        AccessPolicy().warnings()
        == AccessPolicy(host="::1").warnings()
        == AccessPolicy(host="localhost").warnings()
        == ()
    )
    assert len(AccessPolicy(host="0.0.0.0").warnings()) == len(AccessPolicy(host="*").warnings()) == 2
    assert "clear text" in AccessPolicy(host="0.0.0.0", token="x").warnings()[0]
    assert len(AccessPolicy(host="metrics.example.org", certificate=made, key=key).warnings()) == 1
    assert AccessPolicy(host="0.0.0.0", token="x", certificate=made, key=key).warnings() == ()
    assert "x1y2" not in repr(AccessPolicy(token="x1y2"))
