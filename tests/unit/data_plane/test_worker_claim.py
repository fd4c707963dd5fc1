"""A worker that holds a claim is found and killed by it, also while it is frozen (`worker_claim.py`)."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockstep_data_plane.spark.jvm_tempdir import new_folder
from lockstep_data_plane.spark.worker_claim import claim_file, end_worker

HOLDS = """\
import sys, time
from pathlib import Path
from lockstep_data_plane.spark.worker_claim import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

Hold = Callable[[Path], "subprocess.Popen[str]"]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Return what starts a process that holds a claim until its standard input ends."""
    holding: list[subprocess.Popen[str]] = []

    def start(file: Path) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", HOLDS, str(file)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holding.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in holding:
        process.kill()
        process.communicate()


def test_frozen_holder_of_a_claim_is_killed(tmp_path: Path, hold: Hold) -> None:
    file = claim_file(tmp_path, "A->B slot 0 run-1")
    process = hold(file)
    os.kill(process.pid, signal.SIGSTOP)
    assert end_worker(file) == process.pid
    assert process.wait(10) == -signal.SIGKILL
    assert not file.exists()


def test_worker_that_has_ended_leaves_no_claim(tmp_path: Path, hold: Hold) -> None:
    file = claim_file(tmp_path, "A->B slot 0 run-1")
    process = hold(file)
    process.communicate()
    assert not file.exists()
    assert end_worker(file) == 0


def test_claim_of_a_killed_worker_names_nobody(tmp_path: Path, hold: Hold) -> None:
    """Its process id may be another process by now."""
    file = claim_file(tmp_path, "A->B slot 0 run-1")
    process = hold(file)
    process.kill()
    process.wait(10)
    assert end_worker(file) == 0
    assert not file.exists()


def test_claims_of_two_jobs_differ(tmp_path: Path) -> None:
    assert claim_file(tmp_path, "A->B slot 0 run-1") != claim_file(tmp_path, "A->B slot 1 run-1")


def test_frozen_worker_of_a_jvm_that_is_no_more_ends_at_the_next_start(tmp_path: Path, hold: Hold) -> None:
    former, lock = new_folder(tmp_path)
    process = hold(claim_file(former, "A->B slot 0 run-1"))
    os.kill(process.pid, signal.SIGSTOP)
    _, second = new_folder(tmp_path)
    assert process.poll() is None, "its JVM lives"
    os.close(lock)
    _, third = new_folder(tmp_path)
    assert process.wait(10) == -signal.SIGKILL
    assert not former.exists()
    for descriptor in (second, third):
        os.close(descriptor)
