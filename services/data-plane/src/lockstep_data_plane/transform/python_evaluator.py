"""The slot's side of a Python function: a process of its own evaluates it, and the slot asks over a socket.

Requests are answered one after the other. The time of each counts from the moment when the process is at it. A process
that takes too long, or whose request was cancelled, is killed, and another one takes its place at the next request.
"""

import asyncio
import dataclasses
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from lockstep_data_plane.core.record_transform import RecordFailure
from lockstep_data_plane.record_batch.layout import GappedOffsets
from lockstep_data_plane.transform.evaluation_answer import (
    READ_AHEAD,
    AnswerEnd,
    EvaluationOptions,
    Filtered,
    Tombstones,
    TransformAnswer,
    TransformConnectionLost,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.python_frames import (
    ANSWER,
    EVALUATE,
    LENGTHS,
    OPEN,
    OPENED,
    REFUSED,
    pack_frame,
    read_frame,
    read_lengths,
)
from lockstep_data_plane.transform.python_function import FunctionVersion

CHILD = "lockstep_data_plane.transform.python_child"

PINNED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
"""The environment in which every process of a function runs, since sets, times and sorting depend on it."""

FUNCTION_SECONDS = 30.0
"""The time after which a process without an answer is killed."""
START_SECONDS = 60.0
ENDS_WITHIN_S = 2.0
"""The time for which a process whose connection has ended may take to end itself."""
RESTART_S, RESTART_AT_MOST_S = 0.2, 10.0
"""The first and the longest pause before a process that has ended is started again."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function as the settings of a flow name it."""

    name: str
    """`package.module:function`."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """The second argument of the function, if it has one."""


class PythonEvaluator:
    """The process of one function, which is started when it is needed, and anew after it has ended."""

    def __init__(self, function: PythonFunction, options: EvaluationOptions | None = None, version: str = "") -> None:
        """Start nothing yet.

        Args:
            function: The function.
            options: How the answers are wanted. At most one record fails in each.
            version: The digest of the version that is expected; "": that of the files that are there.
        """
        self._function = function
        self._options = options or EvaluationOptions(seconds=FUNCTION_SECONDS)
        self._expected = version
        self._turn = asyncio.Lock()
        self._process: _FunctionProcess | None = None
        self._pause = 0.0
        self._version: FunctionVersion | None = None
        self.evaluating_s = 0.0
        """Seconds for which the process has evaluated requests, with their way there and back."""

    async def start(self) -> None:
        """Start the process, unless it runs. It has loaded the function then.

        Raises:
            TransformConnectionLost: The process was not ready in time, or ended before.
            TransformVersionDiffers: The function has another version here.
            TransformRefused: The function cannot be used, or pyarrow is missing.
        """
        async with self._turn:
            await self._running()

    @property
    def version(self) -> FunctionVersion:
        """Return the version that each process of this evaluator has. It has started one before."""
        assert self._version is not None, "it has started no process yet"
        return self._version

    @property
    def pid(self) -> int | None:
        """Return the pid of the process; None: the next request starts one."""
        return None if self._process is None else self._process.pid

    async def evaluate(
        self, batches: Sequence[bytes | memoryview], start: int, partition: int, topic: str
    ) -> TransformAnswer:
        """Return what the function leaves of the records from offset `start` on.

        Several calls may wait at the same time, and take turns in their order.

        Args:
            batches: Bytes of whole batches of magic 2, in order, as they were fetched.
            start: The first offset that is wanted.
            partition: The source partition.
            topic: The source topic.

        Raises:
            TransformTimedOut: There was no answer in time. The process was killed.
            TransformConnectionLost: The process has ended.
            TransformVersionDiffers: The function's files were changed, and a new process has another version.
            TransformRefused: The function returned what it must not, or a batch is damaged.
        """
        async with self._turn:
            process = await self._running()
            loop = asyncio.get_running_loop()
            began = loop.time()
            fields = {"kind": EVALUATE, "start": start, "partition": partition, "topic": topic}
            try:
                made, content = await process.ask(fields, batches, self._options.seconds)
                answer = _as_answer(made, content)
            except TransformRefused:
                raise
            except TimeoutError as exc:
                await self._end()
                raise TransformTimedOut(
                    f"no answer of {self._function.name} for {topic}-{partition} from {start} within "
                    f"{self._options.seconds:g} s"
                ) from exc
            except (OSError, EOFError, ValueError, KeyError) as exc:
                code = await self._end(ends_itself=True)
                raise TransformConnectionLost(f"the process of {self._function.name} ended ({code})") from exc
            except BaseException:
                await self._end()  # its answer would be taken for that of the next request
                raise
            finally:
                self.evaluating_s += loop.time() - began
            self._pause = 0.0
            return answer

    async def close(self) -> None:
        """End the process."""
        await self._end()

    async def _running(self) -> "_FunctionProcess":
        """Return the process, which is started if there is none, after a pause if one has ended before."""
        if self._process is not None and self._process.is_running:
            return self._process
        await self._end()
        await asyncio.sleep(self._pause)
        self._pause = min(max(RESTART_S, 2 * self._pause), RESTART_AT_MOST_S)
        self._process = await _FunctionProcess.start(self._function.name)
        try:
            opened, _ = await self._process.ask(self._opening(), (), START_SECONDS)
            self._check_version(
                FunctionVersion(**{field.name: opened[field.name] for field in dataclasses.fields(FunctionVersion)})
            )
        except TimeoutError as exc:
            await self._end()
            raise TransformConnectionLost(
                f"{self._function.name} was not loaded within {START_SECONDS:g} s"
            ) from exc  # a machine that stands still, and no evaluation that never ends
        except (OSError, EOFError, ValueError, KeyError) as exc:
            code = await self._end(ends_itself=True)
            raise TransformConnectionLost(
                f"the process of {self._function.name} ended ({code}) before the function was loaded"
            ) from exc
        except BaseException:
            await self._end()
            raise
        return self._process

    def _opening(self) -> Mapping[str, Any]:
        return {
            "kind": OPEN,
            "function": self._function.name,
            "secrets": dict(self._function.secrets),
            "batch_bytes": self._options.batch_bytes,
            "unpacked_bytes": self._options.unpacked_bytes,
            "passes_tombstones": self._options.tombstones is Tombstones.PASS,
            "leaves_tombstones": self._options.filtered is Filtered.TOMBSTONE,
        }

    def _check_version(self, version: FunctionVersion) -> None:
        expected = self._expected or version.digest
        if version.digest != expected:
            raise TransformVersionDiffers(f"{self._function.name} has the version {version}, and not {expected[:12]}")
        self._expected, self._version = expected, version

    async def _end(self, *, ends_itself: bool = False) -> str:
        """End the process, if there is one, and return how it ended."""
        process, self._process = self._process, None
        return "" if process is None else await process.end(ENDS_WITHIN_S if ends_itself else 0.0)


class _FunctionProcess:
    """A process of `python_child.py`, and the slot's end of its socket."""

    def __init__(self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, name: str) -> Self:
        """Start a process. Raises TransformConnectionLost if the system starts none."""
        own, childs = socket.socketpair()
        try:
            with childs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", CHILD, str(childs.fileno()), str(os.getpid())),
                    pass_fds=(childs.fileno(),),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    env={**os.environ, **PINNED, "PYTHONPATH": _import_path()},
                    start_new_session=True,  # an interrupt of the terminal ends the slot, and the slot ends this
                )
            reader, writer = await asyncio.open_connection(sock=own, limit=READ_AHEAD)
        except OSError as exc:
            own.close()
            raise TransformConnectionLost(f"no process was started for {name} ({exc.strerror})") from exc
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None and not self._writer.is_closing()

    async def ask(
        self, fields: Mapping[str, Any], content: Sequence[bytes | memoryview], seconds: float
    ) -> tuple[dict[str, Any], memoryview]:
        """Return the answer to a request.

        Raises:
            TransformRefused: The process refuses it.
            TimeoutError: There was none in time.
            OSError, EOFError, ValueError: The process has ended, or has sent what is no answer.
        """
        async with asyncio.timeout(seconds):
            self._writer.writelines(pack_frame(fields, content))
            await self._writer.drain()
            size, fields_size = read_lengths(await self._reader.readexactly(LENGTHS.size))
            answer, rest = read_frame(await self._reader.readexactly(size), fields_size)
        if answer["kind"] == REFUSED:
            raise TransformRefused(answer["code"], answer["message"])
        if answer["kind"] not in (ANSWER, OPENED):
            raise ValueError(f"an answer of the kind {answer['kind']}")
        return answer, rest

    async def end(self, waits_s: float) -> str:
        """Kill the process, if it does not end by itself within some seconds, and return how it ended."""
        self._writer.close()
        if waits_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), waits_s)
        with suppress(ProcessLookupError):
            self._process.kill()
        exit_status = await self._process.wait()
        with suppress(OSError):
            await self._writer.wait_closed()
        return f"signal {-exit_status}" if exit_status < 0 else f"exit code {exit_status}"


def _import_path() -> str:
    """Return what this process imports from, so that the other one imports the same."""
    return os.pathsep.join(dict.fromkeys(folder or os.getcwd() for folder in sys.path))


def _as_answer(fields: Mapping[str, Any], content: memoryview) -> TransformAnswer:
    return TransformAnswer(
        bytes(content),
        GappedOffsets.of(fields["stretches"]),
        fields["covers"],
        _end_of(fields),
        tuple(RecordFailure(*failure) for failure in fields["failures"]),
        fields["records_read"],
        fields["oldest"],
    )


def _end_of(fields: Mapping[str, Any]) -> AnswerEnd:
    if fields["is_whole"]:
        return AnswerEnd.WHOLE
    return AnswerEnd.FAILURES if fields["failures"] else AnswerEnd.BYTES
