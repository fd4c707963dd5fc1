"""CPU of a process tree: whatever ends, and whoever waits for it, nothing is lost and nothing counts twice."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.tree_usage import CompilerAccount, Cpu, Ledger, Process, TreeAccount, sample


def process(parent: int, own: float, reaped: float = 0.0, rss: int = 0) -> Process:
    return Process(parent=parent, own=own, reaped=reaped, rss=rss)


def test_living_processes_add_up() -> None:
    assert Ledger().add({(1, 0.0): process(0, 1.0), (2, 0.0): process(1, 2.0)}) == 3.0


def test_an_ended_process_that_its_parent_waited_for_counts_once() -> None:
    ledger = Ledger()
    ledger.add({(1, 0.0): process(0, 1.0), (2, 0.0): process(1, 2.0)})
    # What it used after the last look is in its parent's account too.
    assert ledger.add({(1, 0.0): process(0, 1.0, reaped=2.5)}) == 3.5


def test_ledger_counts_an_unreaped_ended_process_as_last_seen() -> None:
    ledger = Ledger()
    ledger.add({(1, 0.0): process(0, 1.0), (2, 0.0): process(1, 2.0)})
    assert ledger.add({(1, 0.0): process(0, 1.5)}) == 3.5


def test_ledger_counts_a_branch_that_ended_between_two_samples_once() -> None:
    ledger = Ledger()
    ledger.add({(1, 0.0): process(0, 1.0), (2, 0.0): process(1, 2.0), (3, 0.0): process(2, 4.0)})
    assert ledger.add({(1, 0.0): process(0, 1.0, reaped=6.0)}) == 7.0


def test_a_process_id_that_is_used_again_is_another_process() -> None:
    ledger = Ledger()
    ledger.add({(1, 0.0): process(0, 1.0), (2, 0.0): process(1, 2.0)})
    assert ledger.add({(1, 0.0): process(0, 1.0, reaped=2.0), (2, 9.0): process(1, 0.5)}) == 3.5


def test_the_total_stays_when_the_tree_has_ended() -> None:
    ledger = Ledger()
    ledger.add({(1, 0.0): process(0, 1.0)})
    assert ledger.add({}) == 1.0


def test_the_peak_is_the_largest_sum() -> None:
    ledger = Ledger()
    ledger.add({(1, 0.0): process(0, 0, rss=10), (2, 0.0): process(1, 0, rss=30)})
    ledger.add({(1, 0.0): process(0, 0, rss=20)})
    assert ledger.peak_rss == 40


def test_system_seconds_are_a_part_of_all_seconds() -> None:
    account = TreeAccount()
    child = Process(parent=1, own=2.0, reaped=0.0, rss=5, own_system=0.5)
    began = account.add({(1, 0.0): process(0, 1.0), (2, 0.0): child})
    assert began == Cpu(3.0, 0.5)
    parent = Process(parent=0, own=1.5, reaped=2.0, rss=5, own_system=0.25, reaped_system=0.5)
    assert account.add({(1, 0.0): parent}).since(began) == Cpu(0.5, 0.25)
    assert account.peak_rss == 5


BURN = "import time\nwhile time.process_time() < 0.5: pass\n"


@pytest.mark.skipif(sys.platform != "linux", reason="waited-for children are accounted for there")
def test_a_real_child_that_ends_is_found_in_the_account_of_the_tree() -> None:
    begin = (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', sys.argv[1]])\nprint('x', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-S", "-c", begin + "sys.stdin.read()", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as root:
        assert root.stdout is not None
        assert root.stdin is not None
        root.stdout.readline()  # by now the child has ended, without ever having been seen
        used = Ledger().add(sample(psutil.Process(root.pid)))
        root.stdin.close()
    assert used >= 0.4  # the system counts in hundredths


def test_a_tree_that_is_gone_has_no_processes() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as root:
        gone = psutil.Process(root.pid)
    assert sample(gone) == {}
    assert os.getpid() in {pid for pid, _ in sample(psutil.Process())}


def write_thread(proc: Path, pid: int, thread: int, name: str, seconds: float) -> Path:
    """A thread as Linux shows it: its name cut to 15 characters, what it used in nanoseconds."""
    folder = proc / str(pid) / "task" / str(thread)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comm").write_text(name[:15] + "\n")
    (folder / "schedstat").write_text(f"{round(seconds * 1e9)} 12 34\n")
    return folder


def test_compilers_are_the_c1_and_c2_threads_of_the_given_processes(tmp_path: Path) -> None:
    write_thread(tmp_path, 1, 10, "C2 CompilerThread0", 1.5)
    write_thread(tmp_path, 1, 11, "C1 CompilerThread0", 0.5)
    write_thread(tmp_path, 1, 12, "G1 Main Marker", 8.0)
    write_thread(tmp_path, 2, 20, "C2 CompilerThread1", 0.25)
    write_thread(tmp_path, 3, 30, "C2 CompilerThread0", 16.0)
    assert CompilerAccount([1, 2], tmp_path).read() == 2.25


def test_what_an_ended_compiler_thread_used_stays_in_the_sum(tmp_path: Path) -> None:
    account = CompilerAccount([1], tmp_path)
    ended = write_thread(tmp_path, 1, 10, "C2 CompilerThread1", 1.5)
    write_thread(tmp_path, 1, 11, "C2 CompilerThread0", 0.5)
    assert account.read() == 2.0
    for file in ended.iterdir():
        file.unlink()
    ended.rmdir()
    write_thread(tmp_path, 1, 11, "C2 CompilerThread0", 0.75)
    assert account.read() == 2.25
