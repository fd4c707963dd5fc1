"""A stream ends for who may not read any more."""

import asyncio
from pathlib import Path

import pytest

from lockstep_console.api import changes
from lockstep_console.flow_watches import FlowWatches
from lockstep_runtime.http.access import AccessPolicy
from tests.support.idle_console import idle_console, served


async def test_stream_ends_soon_after_its_token_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "ADMITTED_AGAIN_S", 0.1)
    token = tmp_path / "token"
    token.write_text("old")
    console = idle_console(FlowWatches([]), AccessPolicy(token_file=token))
    async with served(console) as address:
        host, _, port = address.partition("://")[2].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/v1/changes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer old\r\n\r\n")
        await reader.readuntil(b"event: hello")
        await asyncio.sleep(0.5)  # it was looked at several times by then, and nothing happens to it
        assert console.changes.count == 1
        token.write_text("new")
        async with asyncio.timeout(5.0):
            await reader.read()
        assert console.changes.count == 0
        writer.close()
