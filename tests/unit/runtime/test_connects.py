"""Whether a connection can be opened where a cluster says that a broker is."""

import asyncio
import socket
from datetime import timedelta

from lockstep_runtime.kafka.admin import connects

SOON = timedelta(seconds=5)


async def test_connects_to_a_listening_address() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await connects("127.0.0.1", port, SOON) is None
    server.close()


async def test_connects_distinguishes_an_unknown_name_and_a_closed_port() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert await connects("127.0.0.1", unused.getsockname()[1], SOON) == "connection refused"
    why = await connects("nowhere.invalid", 9092, SOON)
    assert why is not None
    assert why.startswith("the name cannot be resolved: ")
