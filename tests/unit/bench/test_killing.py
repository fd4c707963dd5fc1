"""What is killed in the bench: which systems, when, and that they come back."""

import random
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.faults.killing import killed_and_started_while_paced
from tests.faults.scene import Scene
from tests.faults.striking import PACED
from tests.support.eventually import wait_until
from tests.support.systems import SYSTEMS, System, SystemRun
from tools.bench.outages import killed

# A child of its own, as a JVM's would be; each says when it is there.
SAYS_AND_STAYS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; print('child', flush=True); time.sleep(600)"])
print("parent", flush=True)
time.sleep(600)
"""


def test_only_lockstep_and_the_tuned_mm2_are_killed() -> None:
    assert [system.name for system in killed(list(SYSTEMS.values()))] == ["lockstep", "mm2_tuned"]


def test_killed_run_leaves_no_process_and_restarts_with_the_same_log(tmp_path: Path) -> None:
    system = System("sleeper", lambda file: [sys.executable, "-c", SAYS_AND_STAYS], lambda codec: {})
    log = tmp_path / "log"

    def said(times: int) -> bool:
        return sorted(log.read_text().split()) == ["child"] * times + ["parent"] * times

    with SystemRun(system, tmp_path / "file", log) as run:
        wait_until(lambda: said(1))
        before = [psutil.Process(run.pid), *psutil.Process(run.pid).children()]
        run.kill_and_start()
        assert len(before) == 2
        assert not any(process.is_running() for process in before)
        wait_until(lambda: said(2))
        run.check()
        again = [psutil.Process(run.pid), *psutil.Process(run.pid).children()]
    assert not any(process.is_running() for process in again)


class Clock:
    """Time that passes only where somebody sleeps; `there` is a deployment of which kills are written down."""

    def __init__(self) -> None:
        self.now = 0.0
        self.kills: list[float] = []
        run = SimpleNamespace(pid=1, kill_and_start=self.killed)
        self.there: Any = SimpleNamespace(run=run, victim=self.victim)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def killed(self) -> None:
        self.kills.append(self.now)

    def victim(self, kind: str, pick: object) -> Any:
        return SimpleNamespace(pid=1, kill=self.killed)


def test_strikes_are_at_the_same_moments_for_all_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = []
    for strike in (PACED.strike, killed_and_started_while_paced):
        clock = Clock()
        monkeypatch.setattr(time, "sleep", clock.sleep)
        monkeypatch.setattr(time, "monotonic", lambda clock=clock: clock.now)
        assert strike(Scene(clock.there, "t", random.Random(5), lambda line: None)) == 3
        assert clock.now == 60.0
        kills.append(clock.kills)
    assert kills[0] == kills[1] == sorted(kills[0])
    assert len(set(kills[0])) == 3
