"""The process of a Python function. A slot starts it, speaks with it over one socket, and ends it.

It is run as `python -m lockstep_data_plane.transform.python_child FD PARENT`. What the function prints goes nowhere,
because it may have values of records. The process ends with the slot, also in the middle of an evaluation.
"""

import ctypes
import dataclasses
import os
import signal
import socket
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

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
from lockstep_data_plane.transform.python_function import FunctionRefused, FunctionVersion, TableFunction

_PR_SET_PDEATHSIG = 1

PYARROW_MISSING = (
    "pyarrow is not installed: install lockstep-kafka-data-plane[arrow] from the requirements file of a release, "
    "wherever Spark's executors run"
)


class FunctionConnection:
    """The connection to the slot, over which one function is evaluated."""

    def __init__(self, connected: socket.socket) -> None:
        self._connected = connected

    def serve(self) -> None:
        """Answer requests until the slot ends the connection."""
        opening = self._receive()
        if opening is None or opening[0]["kind"] != OPEN:
            return
        try:
            evaluator = _Evaluator(opening[0])
        except FunctionRefused as refused:
            self._refuse(refused)
            return
        self._send({"kind": OPENED, **evaluator.version_fields()})
        while (request := self._receive()) is not None:
            fields, content = request
            if fields["kind"] != EVALUATE:
                return
            try:
                answer = evaluator.evaluate(fields, content)
            except FunctionRefused as refused:
                self._refuse(refused)
            else:
                self._send({"kind": ANSWER, **answer.fields()}, answer.batch)

    def _refuse(self, refused: FunctionRefused) -> None:
        self._send({"kind": REFUSED, "code": refused.code, "message": refused.message})

    def _send(self, fields: Mapping[str, Any], content: bytes = b"") -> None:
        for part in pack_frame(fields, [content]):
            self._connected.sendall(part)

    def _receive(self) -> tuple[dict[str, Any], memoryview] | None:
        """Return the next frame; None: the slot has ended the connection."""
        front = self._receive_exactly(LENGTHS.size)
        if front is None:
            return None
        size, fields_size = read_lengths(front)
        frame = self._receive_exactly(size)
        return None if frame is None else read_frame(frame, fields_size)

    def _receive_exactly(self, size: int) -> bytes | None:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            count = self._connected.recv_into(view)
            if count == 0:
                return None
            view = view[count:]
        return bytes(buffer)


class _Evaluator:
    """A function with the options of its connection. Raises FunctionRefused if it cannot be used."""

    def __init__(self, opening: Mapping[str, Any]) -> None:
        try:
            import pyarrow

            from lockstep_data_plane.transform import python_evaluation, python_table
        except ImportError as exc:
            raise FunctionRefused("PYARROW_MISSING", PYARROW_MISSING) from exc
        self._function = TableFunction.load(opening["function"], MappingProxyType(dict(opening["secrets"])))
        self._evaluate = python_evaluation.evaluate
        self._limits = python_evaluation.EvaluationLimits(opening["batch_bytes"], opening["unpacked_bytes"])
        self._rules = python_table.RowRules(opening["passes_tombstones"], opening["leaves_tombstones"])
        self._version = FunctionVersion.of(self._function.name, self._function.module, pyarrow.__version__)

    def version_fields(self) -> Mapping[str, Any]:
        return dataclasses.asdict(self._version)

    def evaluate(self, request: Mapping[str, Any], batches: memoryview) -> Any:
        topic, partition = request["topic"], request["partition"]
        return self._evaluate(self._function, batches, request["start"], topic, partition, self._rules, self._limits)


def _end_with_parent(parent: int) -> None:
    """Let the system end this process with the slot. Without Linux it ends between two requests."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit(1)


def main() -> None:
    """Serve the slot that started this process."""
    descriptor, parent = map(int, sys.argv[1:])
    _end_with_parent(parent)
    with socket.socket(fileno=descriptor) as connected:
        FunctionConnection(connected).serve()


if __name__ == "__main__":
    main()
