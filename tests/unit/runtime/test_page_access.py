"""Which requests the pages refuse, what they log of it, and that a crowd keeps no probe waiting."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import pytest

from lockstep_runtime.http import guard
from lockstep_runtime.http.access import AccessPolicy, PagesUnusable
from lockstep_runtime.http.server import PageServer
from lockstep_runtime.telemetry.metrics import Metrics
from tests.support.pages import got, sent, served


@pytest.mark.parametrize("path", ["/status", "/metrics", "/ready", "/live"])
async def test_authorization_that_is_no_text_is_refused_as_any_other(path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ".encode() + b"\xff\r\n\r\n"
    async with served(AccessPolicy(token="given")) as address:
        status = (await sent(address, request)).split()[1]
        assert status == {"/live": b"200", "/ready": b"503"}.get(path, b"401")
    async with served(AccessPolicy()) as address:
        assert (await sent(address, request)).split()[1] == (b"503" if path == "/ready" else b"200")


async def test_token_of_a_variable_may_be_no_text() -> None:
    request = b"GET /status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n"
    async with served(AccessPolicy(token=os.fsdecode(b"\xff"))) as address:
        assert (await sent(address, request % b"\xff")).split()[1] == b"200"
        assert (await sent(address, request % b"\xfe")).split()[1] == b"401"
        assert (await got(address, "/status"))[0] == 401


@pytest.mark.parametrize("token", ["one\ntwo", "one\r\ntwo", "a\x00b", "a\x7fb"])
def test_token_that_no_request_can_send_is_refused_at_start(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(token.encode())
    for access in (AccessPolicy(token_file=file), AccessPolicy(token=token)):
        with pytest.raises(PagesUnusable, match="it is one line"):
            access.check()


async def test_page_that_fails_is_logged_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no page")

    monkeypatch.setattr(guard, "_FAILURES", guard._PageFailures())
    monkeypatch.setattr(PageServer, "_answer_probe", fail)
    async with served(AccessPolicy()) as address:
        for _ in range(5):
            assert await got(address, "/live") == (500, "Internal Server Error\n")
        assert [record.message for record in caplog.records if record.message == "page failed"] == ["page failed"]
        monkeypatch.setattr(guard._FAILURES, "_next_at", 0.0)
        assert (await got(address, "/live"))[0] == 500
    last = [record for record in caplog.records if record.message == "page failed"][-1]
    assert getattr(last, "text", "") == "RuntimeError: no page, and 4 more before it"
    assert last.exc_info is not None
    assert str(last.exc_info[1]) == "no page"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", b"200"),
        ("localhost:8080", b"200"),
        ("LOCALHOST", b"200"),
        ("127.0.0.1:9404", b"200"),
        ("127.1.2.3", b"200"),
        ("[::1]:9404", b"200"),
        ("[::1]", b"200"),
        ("lockstep.localhost:1", b"200"),
        ("evil.example.org", b"421"),
        ("evil.example.org:9404", b"421"),
        ("localhost.evil.example.org", b"421"),
        ("127.0.0.1.evil.example.org", b"421"),
        ("10.0.0.1", b"421"),
    ],
)
async def test_page_on_loopback_refuses_foreign_host_names(host: str, status: bytes) -> None:
    request = f"GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    async with served(AccessPolicy()) as address:
        assert (await sent(address, request)).split()[1] == status
        assert (await sent(address, b"GET /status HTTP/1.0\r\n\r\n")).split()[1] == b"200"
    async with served(AccessPolicy(host="*")) as address:
        assert (await sent(address, request)).split()[1] == b"200", "others are meant to reach it by any name"


@pytest.mark.parametrize("kind", ["pipe", "large", "folder"])
async def test_token_file_that_is_no_small_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "token"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_text("x" * 9_000)
    with pytest.raises(PagesUnusable, match="no regular file of at most 8192 bytes"):
        await PageServer(Metrics(), live=str, ready=str, status=dict).open(AccessPolicy(token_file=file))


PROBER = """
import sys, urllib.request
answered = 0
for _ in range(20):
    try:
        with urllib.request.urlopen(sys.argv[1] + "/live", timeout=10) as answer:
            answered += answer.status == 200
    except OSError as exc:
        print("missed", exc, file=sys.stderr)
print(answered)
"""


@pytest.mark.parametrize("number", [70, 300, pytest.param(1_000, marks=pytest.mark.long)])
async def test_live_is_answered_while_a_crowd_comes_again_at_once(number: int) -> None:
    """The prober is a process of its own, as a kubelet is: it shares no event loop with the crowd."""
    async with served(AccessPolicy()) as address:
        host, _, port = address.partition("://")[2].rpartition(":")

        async def come_again() -> None:
            while True:
                with contextlib.suppress(OSError):
                    reader, writer = await asyncio.open_connection(host, int(port))
                    try:
                        await reader.read()
                    finally:
                        writer.transport.abort()

        clients = [asyncio.create_task(come_again()) for _ in range(number)]
        try:
            prober = await asyncio.create_subprocess_exec(
                sys.executable, "-c", PROBER, address, stdout=asyncio.subprocess.PIPE
            )
            printed, _ = await asyncio.wait_for(prober.communicate(), 120)
        finally:
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
            await got(address, "/live")  # connections are accepted in their order: none is left behind
    assert printed.split() == [b"20"]
