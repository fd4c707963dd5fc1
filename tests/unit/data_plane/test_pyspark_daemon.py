"""Workers whose JVM was killed end without a word: PySpark's own function serves them here, over a real socket."""

import socket
import subprocess
import sys

import pytest

from lockstep_data_plane.spark.pyspark_daemon import ends_with_jvm

SERVED = """
import os, socket
from pyspark import daemon
from lockstep_data_plane.spark.pyspark_daemon import ends_with_jvm
os.environ["PYTHON_WORKER_FACTORY_SECRET"] = "abcde"
for sent in (b"", bytes(2), bytes([0, 0, 0, 5]) + b"abc"):
    jvm, connection = socket.socketpair()
    jvm.sendall(sent)
    jvm.close()
    print(ends_with_jvm(daemon.worker)(connection, False))
"""


def test_a_worker_whose_jvm_is_gone_ends_without_a_traceback() -> None:
    """Idle, within a number, within a word. In a process of its own, for PySpark leaves files open."""
    ended = subprocess.run([sys.executable, "-c", SERVED, "pyspark.worker"], capture_output=True, text=True, check=True)
    assert (ended.stdout.split(), ended.stderr) == (["1", "1", "1"], "")


def test_pyspark_worker_raises_errors_other_than_the_loss_of_its_jvm() -> None:
    def serve(_: socket.socket, __: bool) -> int:  # PySpark's own signature
        raise LookupError("a mistake")

    with socket.socket() as connection, pytest.raises(LookupError):
        ends_with_jvm(serve)(connection, True)  # PySpark's own signature


def test_an_exit_code_is_passed_on() -> None:
    with socket.socket() as connection:
        assert ends_with_jvm(lambda *_: 7)(connection, True) == 7  # PySpark's own signature
