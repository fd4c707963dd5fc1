"""The data plane's trial of transforms, as a process of its own: only the data plane has Spark."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.installation import require_services
from lockstep_ops.services import DATA_PLANE, module_name
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.util.java import missing_java
from lockstep_state.codecs.transform_trial import (
    TrialProgress,
    TrialRequest,
    TrialResult,
    decode_answer,
    encode_requests,
)

MODULE = f"{module_name(DATA_PLANE)}.trial"
LONGEST_LINE = 1 << 30
LAST_WORDS = 20
"""The lines of a failed trial that the message repeats at most."""


class TrialFailed(Exception):
    """The error of a trial that could not be run. The message is a sentence."""


async def run_trial(path: object, requests: Sequence[TrialRequest], progress: WorkProgress) -> tuple[TrialResult, ...]:
    """Return the result of each request, in their order. Without requests nothing is started.

    Args:
        path: The configuration, for messages.
        requests: What is compiled and evaluated. Its secrets go through a pipe.
        progress: Is set to each step.

    Raises:
        CannotUse: This Python has no data plane, or there is no Java for a statement.
        TrialFailed: Spark did not start, or the process ended before it had answered.
    """
    if not requests:
        return ()
    require_services(path, [DATA_PLANE])
    has_statement = not all(request.function for request in requests)
    if has_statement and (missing := missing_java(os.environ)) is not None:
        raise CannotUse(missing)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        MODULE,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    last_words = asyncio.create_task(_last_lines(process.stderr))
    try:
        with suppress(ConnectionError):  # it has ended: its last words say why
            process.stdin.write(encode_requests(requests))
            await process.stdin.drain()
            process.stdin.close()
        results = await _read_answers(process.stdout, progress)
        if results is not None:
            return results
        words = "; ".join(filter(None, await last_words)) or "it said nothing"
        raise TrialFailed(f"the trial of transforms ended before it had answered: {words}")
    finally:
        last_words.cancel()
        with suppress(ProcessLookupError):
            process.kill()  # the JVM ends with it: its standard input is closed then
        await process.wait()


async def _read_answers(answers: asyncio.StreamReader, progress: WorkProgress) -> tuple[TrialResult, ...] | None:
    """Return the results; None: the process ended without them. Raises TrialFailed with its error."""
    while line := await answers.readline():
        answer = decode_answer(line)
        if isinstance(answer, TrialProgress):
            progress.text, progress.done, progress.total = answer.text, answer.done, answer.total
        elif isinstance(answer, str):
            raise TrialFailed(answer)
        else:
            return answer
    return None


async def _last_lines(errors: asyncio.StreamReader) -> list[str]:
    lines: list[str] = []
    while line := await errors.readline():
        lines = [*lines, line.decode(errors="replace").strip()][-LAST_WORDS:]
    return lines
