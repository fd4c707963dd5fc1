"""How a slot finds the JVM above it."""

import os
import socket
from pathlib import Path

import pytest

from lockstep_data_plane.transform.jvm_socket import (
    NoTransformServer,
    ancestors,
    find_server,
    listening_sockets,
    peer_pid,
)

HEADER = "Num       RefCount Protocol Flags    Type St Inode Path\n"


def line(path: str, flags: str = "00010000") -> str:
    return f"0000000000000000: 00000002 00000000 {flags} 0001 01 12345 {path}\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Processes 40 > 30 > 20 > 1, and 50 beside them."""
    for pid, parent in ((40, 30), (30, 20), (20, 1), (50, 1), (1, 0)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Name:\tjava\nPid:\t{pid}\nPPid:\t{parent}\nUid:\t0\n")
    (tmp_path / "net").mkdir()
    return tmp_path


def test_the_processes_above_come_from_the_nearest_on(proc: Path) -> None:
    assert list(ancestors(40, proc)) == [30, 20, 1]


def test_the_nearest_jvm_above_is_taken_wherever_its_folder_is(proc: Path) -> None:
    sockets = ["/tmp/lockstep-transform-50/socket", "/var/a b/lockstep-transform-20/socket", "", "@/tmp/abstract"]
    (proc / "net" / "unix").write_text(HEADER + "".join(map(line, sockets)))
    assert find_server(proc, lambda: 40) == (20, Path("/var/a b/lockstep-transform-20/socket"))


def test_only_a_socket_that_listens_counts(proc: Path) -> None:
    content = line("/tmp/lockstep-transform-20/socket", flags="00000000") + line("/tmp/lockstep-transform-x/socket")
    content += line("/tmp/lockstep-transform-30/other") + line("/tmp/transform-30/socket")
    (proc / "net" / "unix").write_text(HEADER + content)
    assert list(listening_sockets(proc)) == []
    with pytest.raises(NoTransformServer, match=r"spark\.plugins"):
        find_server(proc, lambda: 40)


def test_the_other_end_says_who_it_is(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as connected:
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        connected.connect(str(tmp_path / "socket"))
        assert peer_pid(connected) == os.getpid()
