"""The process of a trial: `python -m lockstep_data_plane.trial`, which `lockstep transform` starts.

It reads one line of requests and writes lines of answers (`lockstep_state.codecs.transform_trial`).
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import BinaryIO

from lockstep_data_plane.spark.session import SparkNotStarted
from lockstep_data_plane.transform.compiler import TransformsUnavailable
from lockstep_data_plane.transform.jvm_socket import NoTransformServer
from lockstep_data_plane.trial.trial_session import TrialSession
from lockstep_state.codecs.transform_trial import (
    TrialProgress,
    TrialRequest,
    decode_requests,
    encode_error,
    encode_progress,
    encode_results,
)
from lockstep_state.errors import LockstepError


def main() -> None:
    """Run one trial. The exit code is 1 if it could not be run; the last line says why."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the JVM prints is no answer
    sys.exit(run(decode_requests(sys.stdin.buffer.readline()), answers))


def run(requests: Sequence[TrialRequest], answers: BinaryIO) -> int:
    """Run the requests, write what comes of them, and return the exit code."""

    def write(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    def report(progress: TrialProgress) -> None:
        write(encode_progress(progress))

    try:
        results = asyncio.run(TrialSession(report).run(requests))
    except (SparkNotStarted, TransformsUnavailable, NoTransformServer, LockstepError) as exc:
        write(encode_error(str(exc)))
        return 1
    write(encode_results(results))
    return 0


if __name__ == "__main__":
    main()
