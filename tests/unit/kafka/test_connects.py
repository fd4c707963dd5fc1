"""Why no connection can be opened somewhere."""

import asyncio
import time
from datetime import timedelta

import pytest

from lockstep_kafka.admin.admin import REFUSED_AGAIN_S, Admin, find_connect_error
from lockstep_kafka.common.errors import ClusterUnreachable
from tests.support.ports import free_port

WITHIN = timedelta(seconds=5)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("127.0.0.1", "connection refused"),
        ("name.invalid", "the name cannot be resolved: "),
        ("x" * 64 + ".example", "the name cannot be resolved: "),
    ],
)
async def test_address_that_leads_nowhere_has_its_reason(host: str, words: str) -> None:
    assert (await find_connect_error(host, 1, WITHIN) or "").startswith(words)


async def test_address_that_accepts_connections_has_no_reason() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        assert await find_connect_error("127.0.0.1", server.sockets[0].getsockname()[1], WITHIN) is None


async def test_require_open_without_a_listener_raises_at_once() -> None:
    cluster = Admin("A", {"bootstrap.servers": "127.0.0.1:1,name.invalid:9092"})
    with pytest.raises(ClusterUnreachable, match="connection refused; the name cannot be resolved"):
        await cluster.require_open(WITHIN)


async def test_require_open_with_one_open_address_returns() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await Admin("A", {"bootstrap.servers": f"127.0.0.1:1,127.0.0.1:{port}"}).require_open(WITHIN)


async def test_require_open_waits_for_a_server_that_restarts() -> None:
    port = free_port()
    cluster = Admin("A", {"bootstrap.servers": f"127.0.0.1:{port}"})
    waiting = asyncio.create_task(cluster.require_open(WITHIN, for_s=30.0))
    await asyncio.sleep(REFUSED_AGAIN_S * 1.5)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
    async with server:
        await asyncio.wait_for(waiting, 5.0)


async def test_client_that_is_refused_ends_all_requests_together() -> None:
    cluster = Admin("A", {"bootstrap.servers": "127.0.0.1:1"}, refused_s=0.5)
    began = time.monotonic()
    requests = (cluster.probe(), cluster.cluster_id(), cluster.topic_names(), cluster.broker_count())
    refused = await asyncio.gather(*requests, return_exceptions=True)
    assert [str(error).endswith("cannot be reached: connection refused") for error in refused] == [True] * 4, refused
    assert 0.5 <= time.monotonic() - began < 3.0
