"""The Unix socket of the JVM that a slot descends from.

The JVM's temporary folder is its own affair, so the socket is looked for among those that the system knows, by the
JVM's pid in its path. Who answers is then asked for its pid: another user may have a socket of any name.
"""

import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lockstep_state.errors import RetriableError

FOLDER = "lockstep-transform-"
"""The beginning of the name of the socket's folder, before the pid (`TransformServer.java`)."""

PROC = Path("/proc")
_PEER = struct.Struct("3i")
_LISTENS = 0x10000
"""The flag of a listening socket (`__SO_ACCEPTCON`)."""


class NoTransformServer(RetriableError):
    """The error of a process without a JVM above it that evaluates transforms."""


def ancestors(pid: int, proc: Path = PROC) -> Iterator[int]:
    """Yield the pids of the parent, its parent, and so on, of a process."""
    while pid > 1:
        status = (proc / str(pid) / "status").read_text()
        pid = int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])
        if pid > 0:
            yield pid


def listening_sockets(proc: Path = PROC) -> Iterator[tuple[int, Path]]:
    """Yield the pid in the path, and the path, of each socket that looks like one for transforms."""
    for line in (proc / "net" / "unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) < 8 or not int(fields[3], 16) & _LISTENS:
            continue
        path = Path(fields[7])
        pid = path.parent.name.removeprefix(FOLDER)
        if path.name == "socket" and path.parent.name.startswith(FOLDER) and pid.isdigit():
            yield int(pid), path


def find_server(proc: Path = PROC, own_pid: Callable[[], int] = os.getpid) -> tuple[int, Path]:
    """Return the pid and the socket of the nearest JVM above this process. Raises NoTransformServer."""
    sockets = dict(listening_sockets(proc))
    for pid in ancestors(own_pid(), proc):
        if pid in sockets:
            return pid, sockets[pid]
    raise NoTransformServer(
        "no JVM above this process evaluates transforms: `spark.plugins` has to name the transforms' plugin"
    )


def find_own_server(context: Any) -> tuple[int, Path]:
    """Return the pid and the socket of the JVM of a Spark context that this process has. Raises NoTransformServer."""
    pid = int(context._jvm.java.lang.ProcessHandle.current().pid())
    path = dict(listening_sockets()).get(pid)
    if path is None:
        raise NoTransformServer(f"the JVM {pid} evaluates no transforms, though it has the transforms' plugin")
    return pid, path


def peer_pid(connected: socket.socket) -> int:
    """Return the pid of the process that listens at the other end of a Unix socket."""
    pid, _, _ = _PEER.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(pid)
