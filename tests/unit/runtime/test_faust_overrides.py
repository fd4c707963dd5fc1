"""aiokafka's client over our connections."""

import asyncio
import struct
from typing import Any

import pytest
from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.group import HeartbeatRequest

from lockstep_kafka.wire.connection import Connection
from lockstep_runtime.membership.faust_overrides import AiokafkaConnection, LockstepClient

HEARTBEAT = 12


class Peer:
    """The other end of a connection: keeps what is sent, and answers heartbeats."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.closed: list[CloseReason] = []
        self.connection = Connection("broker", 9092, client_id="c")
        self.connection._writer = self
        self.connection._versions = {HEARTBEAT: (0, 4)}
        self.client = object.__new__(LockstepClient)
        self.ours = AiokafkaConnection(
            self.connection, 5.0, lambda _, reason: self.closed.append(reason), self.client._note_code
        )

    def write(self, frame: bytes) -> None:
        self.frames.append(bytes(frame))

    def close(self) -> None:
        """As a transport's."""

    async def beat(self, code: int) -> Any:
        answer = self.ours.send(HeartbeatRequest("group", 1, "member"))
        number = self.connection._requests[0][0]
        self.connection._answered(memoryview(struct.pack(">iih", number, 0, code)))
        return await answer


@pytest.mark.parametrize(("code", "unnamed"), [(0, 0), (27, 0), (-1, -1), (81, 81), (82, 82), (9999, 9999)])
async def test_error_code_that_aiokafka_does_not_know_is_noted(code: int, unnamed: int) -> None:
    peer = Peer()
    assert (await peer.beat(code)).error_code == code
    assert peer.client.unnamed_code == unnamed
    await peer.beat(0)
    assert peer.client.unnamed_code == 0
    peer.connection.close()


async def test_connection_that_the_broker_ends_is_reported_once() -> None:
    peer = Peer()
    waiting = asyncio.ensure_future(peer.ours.send(HeartbeatRequest("group", 1, "member")))
    await asyncio.sleep(0)
    peer.connection._lost(None)
    with pytest.raises(KafkaConnectionError, match="the broker closed the connection"):
        await waiting
    with pytest.raises(KafkaConnectionError, match="the connection is closed"):
        peer.ours.send(HeartbeatRequest("group", 1, "member"))
    assert peer.closed == [CloseReason.CONNECTION_BROKEN]
    assert not peer.ours.connected()


async def test_connection_without_an_answer_in_time_is_reported_when_it_is_closed() -> None:
    peer = Peer()
    peer.ours._timeout_s = 0.01
    with pytest.raises(TimeoutError):
        await peer.ours.send(HeartbeatRequest("group", 1, "member"))
    peer.ours.close(reason=CloseReason.CONNECTION_TIMEOUT)
    assert peer.closed == [CloseReason.CONNECTION_TIMEOUT]
