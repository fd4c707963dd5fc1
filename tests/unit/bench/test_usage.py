"""CPU of a process tree: whatever ends, and whoever waits for it, nothing is lost and nothing counts twice."""

import os
import subprocess
import sys

import psutil
import pytest

from tools.bench.usage import Cpu, Ledger, Process, TreeAccount, sample


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
