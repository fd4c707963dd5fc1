"""The slot's end of a connection, against a server in Python."""

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lockstep_data_plane.core.record_transform import RecordFailure
from lockstep_data_plane.transform.compiled_transform import CompiledTransform, TransformVersion
from lockstep_data_plane.transform.evaluation_answer import (
    AnswerEnd,
    EvaluationOptions,
    TransformConnectionLost,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.evaluator import TransformEvaluator

VERSION = TransformVersion("digest", "4.3.0", 17, "jar")
TRANSFORM = CompiledTransform("SELECT", b"stages", frozenset(), frozenset(), ("salt",), VERSION)
QUICK = EvaluationOptions(seconds=-0.8)
"""With the grace of a second: a fifth of one."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def text(value: str) -> bytes:
    return frame(value.encode())


def greeting(spark: str = "4.3.0", magic: int = 0x4C535452, protocol: int = 1) -> bytes:
    return frame(struct.pack(">iH", magic, protocol) + text("jar") + text(spark) + struct.pack(">i", 17))


def answer(
    covers: int, stretches: list[tuple[int, int]], failures: bytes = struct.pack(">i", 0), batch: bytes = b""
) -> bytes:
    count = sum(length for _, length in stretches)
    front = struct.pack(">BBqiiqI", 5, 0, covers, 9, count, 1234, len(stretches))
    return frame(front + b"".join(struct.pack(">qi", *one) for one in stretches) + failures + batch)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


class Server:
    """Opens each connection, and then does as `serve` does."""

    def __init__(self, path: Path) -> None:
        self.address = os.getpid(), path
        self.opened = b""
        self.greeting = greeting()
        self.reply = frame(b"\2")
        self.serve: Serve | None = None

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(self.greeting)
            self.opened = await read_frame(reader)
            writer.write(self.reply)
            if self.serve is not None:
                await self.serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    made = Server(tmp_path / "socket")
    listening = await asyncio.start_unix_server(made, made.address[1])
    yield made
    listening.close()


async def connect(server: Server, options: EvaluationOptions | None = None, within: float = 20) -> TransformEvaluator:
    return await TransformEvaluator.connect(
        server.address, TRANSFORM, options=options, secrets={"salt": b"pepper", "other": b"x"}, within=within
    )


async def test_a_connection_is_opened_with_the_secrets_that_are_named(server: Server) -> None:
    server.serve = _echo
    evaluator = await connect(server)
    await evaluator.close()
    secrets = struct.pack(">i", 1) + text("salt") + text("pepper")
    assert (
        server.opened
        == b"\1" + struct.pack(">qiii??", 10_000, 1_000_000, 1 << 27, 1, True, False) + secrets + b"stages"
    )


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        request = await read_frame(reader)
        _, start, _, length = struct.unpack_from(">Bqii", request)
        assert request[17 : 17 + length] == b"orders"
        writer.write(answer(start + 5, [(start, 2), (start + 4, 1)], batch=request[17 + length :]))


async def test_answers_belong_to_requests_in_their_order(server: Server) -> None:
    server.serve = _echo
    evaluator = await connect(server)
    answers = await asyncio.gather(*(evaluator.evaluate([b"a%d" % n, b"b"], n, 3, "orders") for n in range(20)))
    for n, one in enumerate(answers):
        assert (one.batch, one.covers, one.end, one.records_read) == (b"a%db" % n, n + 5, AnswerEnd.WHOLE, 9)
        assert list(one.offsets) == [n, n + 1, n + 4]
        assert one.oldest_timestamp == 1234
    await evaluator.close()


async def test_failures_are_read(server: Server) -> None:
    async def fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(answer(7, [], struct.pack(">iq", 1, 7) + text("JSON_MALFORMED") + text("value")))
        await reader.read()

    server.serve = fail
    evaluator = await connect(server)
    one = await evaluator.evaluate([b"x"], 0, 0, "t")
    assert one.failures == (RecordFailure(7, "JSON_MALFORMED", "value"),)
    assert one.outgoing() is None
    await evaluator.close()


async def test_a_refused_request_leaves_the_connection(server: Server) -> None:
    async def refuse_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(frame(b"\3" + text("BATCH_CORRUPT") + text("the checksum is wrong")))
        await _echo(reader, writer)

    server.serve = refuse_first
    evaluator = await connect(server)
    with pytest.raises(TransformRefused, match="BATCH_CORRUPT: the checksum is wrong") as refused:
        await evaluator.evaluate([b"x"], 0, 0, "orders")
    assert refused.value.code == "BATCH_CORRUPT"
    assert (await evaluator.evaluate([b"y"], 1, 0, "orders")).batch == b"y"
    await evaluator.close()


async def test_a_transform_that_cannot_be_evaluated_is_refused(server: Server) -> None:
    server.reply = frame(b"\3" + text("SECRET_MISSING") + text("salt"))
    with pytest.raises(TransformRefused, match="SECRET_MISSING"):
        await connect(server)


@pytest.mark.parametrize("hello", [greeting(spark="4.4.0"), greeting(protocol=2), greeting(magic=1)])
async def test_another_version_is_refused(server: Server, hello: bytes) -> None:
    server.greeting = hello
    with pytest.raises(TransformVersionDiffers):
        await connect(server)
    assert not server.opened


async def test_a_request_without_an_answer_ends_the_connection(server: Server) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server.serve = hang
    evaluator = await connect(server, QUICK)
    with pytest.raises(TransformTimedOut):
        await evaluator.evaluate([b"x"], 0, 0, "t")
    with pytest.raises(TransformTimedOut):
        await evaluator.evaluate([b"x"], 0, 0, "t")
    await evaluator.close()


async def test_a_jvm_that_does_not_greet_is_given_up(server: Server) -> None:
    server.greeting = b""
    with pytest.raises(TransformTimedOut):
        await connect(server, within=0.2)


async def test_a_connection_that_ends_fails_all_who_wait(server: Server) -> None:
    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)

    server.serve = end
    evaluator = await connect(server)
    asked = [asyncio.create_task(evaluator.evaluate([b"x"], n, 0, "t")) for n in range(3)]
    for one in asked:
        with pytest.raises(TransformConnectionLost):
            await one
    with pytest.raises(TransformConnectionLost):
        await evaluator.evaluate([b"x"], 0, 0, "t")
    await evaluator.close()


@pytest.mark.parametrize(
    "bad", [frame(b"\5"), frame(b"\7"), struct.pack(">i", -1), answer(1, [])[:-9], frame(b"\3abc")]
)
async def test_what_is_no_answer_ends_the_connection(server: Server, bad: bytes) -> None:
    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(bad)

    server.serve = lie
    evaluator = await connect(server)
    with pytest.raises(TransformConnectionLost):
        await evaluator.evaluate([b"x"], 0, 0, "t")
    await evaluator.close()


async def test_a_cancelled_request_ends_the_connection(server: Server) -> None:
    received = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        received.set()
        await reader.read()

    server.serve = hang
    evaluator = await connect(server)
    request = asyncio.create_task(evaluator.evaluate([b"x"], 0, 0, "t"))
    await received.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    with pytest.raises(TransformConnectionLost):
        await evaluator.evaluate([b"x"], 0, 0, "t")
    await evaluator.close()


async def test_no_server_is_a_lost_connection(tmp_path: Path) -> None:
    with pytest.raises(TransformConnectionLost):
        await TransformEvaluator.connect((1, tmp_path / "nothing"), TRANSFORM)


async def test_another_process_at_the_socket_is_no_jvm(server: Server) -> None:
    pid, path = server.address
    with pytest.raises(TransformConnectionLost, match="listens in place"):
        await TransformEvaluator.connect((pid + 1, path), TRANSFORM)
