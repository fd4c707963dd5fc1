"""The slot's side of transforms: record batches go to the executor's JVM, and one dense batch comes back.

One connection has one transform. Its requests are answered in order, so all of a partition go over one connection.
Each frame has its length in front (`TransformConnection.java`).
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from lockstep_data_plane.core.record_transform import RecordFailure
from lockstep_data_plane.record_batch.layout import GappedOffsets
from lockstep_data_plane.transform.compiled_transform import CompiledTransform
from lockstep_data_plane.transform.evaluation_answer import (
    READ_AHEAD,
    AnswerEnd,
    EvaluationOptions,
    Filtered,
    Tombstones,
    TransformAnswer,
    TransformConnectionLost,
    TransformError,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.jvm_socket import peer_pid

PROTOCOL = 1
_MAGIC = 0x4C535452
_OPEN, _OPENED, _REFUSED, _EVALUATE, _ANSWER = range(1, 6)

_LENGTH = struct.Struct(">i")
_GREETING = struct.Struct(">iH")
_OPTIONS = struct.Struct(">qiii??")
_REQUEST = struct.Struct(">iBqi")
_ANSWER_FRONT = struct.Struct(">BqiiqI")
_STRETCH = struct.Struct(">qi")
_OFFSET = struct.Struct(">q")

LARGEST_ANSWER = 1 << 30
GRACE_S = 1.0
"""Seconds that an answer may take beyond the time limit of its request, for records in the JVM end only in between."""
_HEAD_SIZE = 13
"""The bytes of a request before the topic: kind, start and partition."""


class TransformEvaluator:
    """A connection to a JVM that evaluates one transform. Made by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: EvaluationOptions) -> None:
        self._reader = reader
        self._writer = writer
        self._within = options.seconds + GRACE_S
        self._waiting: deque[tuple[asyncio.Future[TransformAnswer], str]] = deque()
        """The requests without an answer, each with words for it."""
        self._turn_began = 0.0
        """The time of the loop's clock since when the JVM is at the first of them."""
        self._timer: asyncio.TimerHandle | None = None
        self.evaluating_s = 0.0
        """Seconds for which the JVM has evaluated requests of this connection, with their way there and back."""
        self._reading: asyncio.Task[None] | None = None
        self._lost: TransformError | None = None

    @classmethod
    async def connect(
        cls,
        server: tuple[int, Path],
        transform: CompiledTransform,
        *,
        options: EvaluationOptions | None = None,
        secrets: Mapping[str, bytes] | None = None,
        within: float = 30.0,
    ) -> Self:
        """Return a connection that is ready. The JVM generates the code of the stages meanwhile.

        Args:
            server: The JVM's pid and its socket (`find_server`).
            transform: What is evaluated.
            options: How the answers are wanted.
            secrets: The secrets that the transform names. They are in no error, and stay in the JVM's memory.
            within: Seconds for all of it.

        Raises:
            TransformConnectionLost: The JVM has ended.
            TransformTimedOut: It did not answer in time.
            TransformVersionDiffers: It has another version of Spark, Java or the jar.
            TransformRefused: It cannot evaluate the transform.
        """
        options = options or EvaluationOptions()
        pid, path = server
        try:
            async with asyncio.timeout(within):
                reader, writer = await asyncio.open_unix_connection(path, limit=READ_AHEAD)
                evaluator = cls(reader, writer, options)
                try:
                    await evaluator._open(pid, transform, options, secrets or {})
                except BaseException:
                    writer.close()
                    raise
        except TimeoutError as exc:
            raise TransformTimedOut(f"the JVM {pid} did not answer within {within:g} s") from exc
        except (OSError, asyncio.IncompleteReadError, struct.error, ValueError) as exc:
            raise TransformConnectionLost(f"the JVM {pid} has ended, or evaluates no transforms") from exc
        evaluator._reading = asyncio.create_task(evaluator._read_answers())
        return evaluator

    async def _open(
        self, pid: int, transform: CompiledTransform, options: EvaluationOptions, secrets: Mapping[str, bytes]
    ) -> None:
        connected = self._writer.get_extra_info("socket")
        if (peer := peer_pid(connected)) != pid:
            raise TransformConnectionLost(f"the process {peer} listens in place of the JVM {pid}")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, READ_AHEAD)
        self._check_greeting(await self._read_frame(), transform)
        parts = [bytes([_OPEN]), _packed_options(options), _LENGTH.pack(len(transform.secrets))]
        for name in transform.secrets:
            parts += [_sized(name.encode()), _sized(secrets.get(name, b""))]
        frame = b"".join([*parts, transform.stages])
        self._writer.writelines((_LENGTH.pack(len(frame)), frame))
        answer = await self._read_frame()
        if answer[0] != _OPENED:
            raise _refusal(answer)

    def _check_greeting(self, frame: bytes, transform: CompiledTransform) -> None:
        magic, protocol = _GREETING.unpack_from(frame)
        if magic != _MAGIC or protocol != PROTOCOL:
            raise TransformVersionDiffers(f"the JVM speaks version {protocol} of the protocol, not {PROTOCOL}")
        jar, position = _text(frame, _GREETING.size)
        spark, position = _text(frame, position)
        (java,) = _LENGTH.unpack_from(frame, position)
        version = transform.version
        if (jar, spark, java) != (version.jar, version.spark, version.java):
            raise TransformVersionDiffers(
                f"the JVM has Spark {spark}, Java {java} and the jar {jar[:12]}, the transform was compiled with "
                f"Spark {version.spark}, Java {version.java} and the jar {version.jar[:12]}"
            )

    async def evaluate(
        self, batches: Sequence[bytes | memoryview], start: int, partition: int, topic: str
    ) -> TransformAnswer:
        """Return what the transform leaves of the records from offset `start` on.

        Several calls may wait at the same time; the JVM answers them in their order.

        Args:
            batches: Bytes of whole batches of magic 2, in order, as they were fetched.
            start: The first offset that is wanted.
            partition: The source partition, which a statement may read.
            topic: The source topic, likewise.

        Raises:
            TransformTimedOut: There was no answer in time. The connection is lost with it.
            TransformConnectionLost: The JVM or the connection has ended.
            TransformRefused: A batch is damaged, or the JVM is out of memory.
        """
        if self._lost is not None:
            raise type(self._lost)(*self._lost.args)
        name = topic.encode()
        topic_part = _sized(name)
        size = _HEAD_SIZE + len(topic_part) + sum(map(len, batches))
        front = _REQUEST.pack(size, _EVALUATE, start, partition) + topic_part
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[TransformAnswer] = loop.create_future()
        if not self._waiting:
            self._turn_began = loop.time()
        self._waiting.append((answer, f"{topic}-{partition} from {start}"))
        self._timer = self._timer or loop.call_at(self._turn_began + self._within, self._end_stuck)
        try:
            self._writer.writelines((front, *batches))
            await self._writer.drain()
            return await answer
        except OSError as exc:
            self._lose(TransformConnectionLost("the connection to the JVM has ended"))
            raise (answer.exception() or TransformConnectionLost("the connection to the JVM has ended")) from exc
        except asyncio.CancelledError:
            # The answer still comes, and would be taken for that of the next request.
            self._lose(TransformConnectionLost("a request was cancelled"))
            raise

    @property
    def is_lost(self) -> bool:
        """Return whether nothing is evaluated over this connection any more."""
        return self._lost is not None

    def _end_stuck(self) -> None:
        """Give the connection up if the JVM is at one request for too long. The time of each counts from its turn."""
        loop, self._timer = asyncio.get_running_loop(), None
        if not self._waiting:
            return
        if loop.time() < self._turn_began + self._within:
            self._timer = loop.call_at(self._turn_began + self._within, self._end_stuck)
            return
        _, request = self._waiting[0]
        self._lose(TransformTimedOut(f"no answer of {request} within {self._within:g} s"))

    async def close(self) -> None:
        """End the connection, and the JVM's thread with it."""
        self._lose(TransformConnectionLost("the connection was closed"))
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        with suppress(OSError):
            await self._writer.wait_closed()

    def _lose(self, error: TransformError) -> None:
        """End the connection. The first request that waits gets the error; for the others the connection has ended."""
        if self._lost is None:
            self._lost = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._writer.transport.abort()  # a JVM that stands still takes no more, and would never be closed
        while self._waiting:
            answer, _ = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # a caller that was cancelled reads it no more
            error = TransformConnectionLost("the connection to the JVM has ended")

    async def _read_answers(self) -> None:
        try:
            while True:
                frame = await self._read_frame()
                outcome = _answer(frame) if frame[0] == _ANSWER else _refusal(frame)
                answer, _ = self._waiting.popleft()
                now = asyncio.get_running_loop().time()
                self.evaluating_s += now - self._turn_began
                self._turn_began = now
                if answer.done():
                    continue
                if isinstance(outcome, TransformAnswer):
                    answer.set_result(outcome)
                else:
                    answer.set_exception(outcome)
        except (OSError, asyncio.IncompleteReadError):
            self._lose(TransformConnectionLost("the connection to the JVM has ended"))
        except (IndexError, struct.error, ValueError):
            self._lose(TransformConnectionLost("the JVM has sent what is no answer"))

    async def _read_frame(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        if not 0 < length <= LARGEST_ANSWER:
            raise ValueError(f"a frame of {length} bytes")
        return await self._reader.readexactly(length)


def _packed_options(options: EvaluationOptions) -> bytes:
    return _OPTIONS.pack(
        int(options.seconds * 1000),
        options.batch_bytes,
        options.unpacked_bytes,
        options.failures,
        options.tombstones is Tombstones.PASS,
        options.filtered is Filtered.TOMBSTONE,
    )


def _sized(part: bytes) -> bytes:
    return _LENGTH.pack(len(part)) + part


def _text(frame: bytes, position: int) -> tuple[str, int]:
    """Return a text in a frame, and the index behind it."""
    (length,) = _LENGTH.unpack_from(frame, position)
    end = position + _LENGTH.size + length
    return frame[position + _LENGTH.size : end].decode(), end


def _refusal(frame: bytes) -> TransformRefused:
    if frame[0] != _REFUSED:
        raise ValueError(f"a frame of kind {frame[0]}")
    code, position = _text(frame, 1)
    message, _ = _text(frame, position)
    return TransformRefused(code, message)


def _answer(frame: bytes) -> TransformAnswer:
    end, covers, records_read, count, oldest, stretch_count = _ANSWER_FRONT.unpack_from(frame, 1)
    position = 1 + _ANSWER_FRONT.size
    offsets = GappedOffsets.of(_STRETCH.iter_unpack(frame[position : position + stretch_count * _STRETCH.size]))
    if len(offsets) != count:
        raise ValueError(f"{count} records have {len(offsets)} offsets")
    position += stretch_count * _STRETCH.size
    (failure_count,) = _LENGTH.unpack_from(frame, position)
    position += _LENGTH.size
    failures = []
    for _ in range(failure_count):
        (offset,) = _OFFSET.unpack_from(frame, position)
        condition, position = _text(frame, position + _OFFSET.size)
        fragment, position = _text(frame, position)
        failures.append(RecordFailure(offset, condition, fragment))
    return TransformAnswer(frame[position:], offsets, covers, AnswerEnd(end), tuple(failures), records_read, oldest)
