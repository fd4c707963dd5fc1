"""Services are kept alive and ended as promised: real processes, small ones that stand where a service would."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.runs import Run

SERVICES = {
    "polite": """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print("polite is up", flush=True)
        while True: time.sleep(60)
    """,
    "stubborn": """
        import signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("stubborn is up", flush=True)
        while True: time.sleep(60)
    """,
    "crashing": "print('crashing is up', flush=True); raise SystemExit(7)",
    "misconfigured": "print('misconfigured is up', flush=True); raise SystemExit(2)",
    "rotating": """
        import pathlib, sys
        starts = pathlib.Path(__file__).with_suffix(".starts")
        with starts.open("a") as file: file.write("x")
        if len(starts.read_text()) > 1: print("half a secret", flush=True); raise SystemExit(2)
        print("pages at http://127.0.0.1:9", flush=True)
        raise SystemExit(1)
    """,
    "leaving": """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print("leaving is up", flush=True)
        raise SystemExit(1)
    """,
}

DRIVER = """
import asyncio, sys
from datetime import timedelta
from lockstep_cli.processes import supervisor

def log_event(level, message): print(f"{level}: {message}", flush=True)
def read_line(service, line):
    print(line, flush=True)
    address = line.partition("pages at ")[2]
    return supervisor.ServicePages(service, address) if address else None

supervisor.GRACE = timedelta(seconds=float(sys.argv[1]))
commands = {name: [name] for name in sys.argv[2:]}
async def main(): return await supervisor.Supervisor(commands, commands, log_event=log_event, read_line=read_line).run()
sys.exit(asyncio.run(main()))
"""


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    for name, code in SERVICES.items():
        lines = code.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        (tmp_path / f"{name}.py").write_text("\n".join(line[indent:] for line in lines))
    runs: list[Run] = []

    def start(*names: str, grace: float = 9) -> Run:
        command = [sys.executable, "-c", DRIVER, str(grace), *names]
        runs.append(Run(command, tmp_path / "output", {**os.environ, "PYTHONPATH": str(tmp_path)}))
        return runs[-1]

    yield start
    for run in runs:
        run.kill()


def test_sigterm_ends_everything_with_exit_code_0(supervised: Callable[..., Run]) -> None:
    run = supervised("polite")
    run.until_said("polite is up")
    run.family()
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(5) == 0, run.text()
    assert "info: ended" in run.text()
    assert run.left() == []


def test_crashed_service_restarts_with_backoff_and_is_named(supervised: Callable[..., Run]) -> None:
    run = supervised("crashing", "polite")
    run.until_said("crashing ended with exit code 7, starting again at once (1st time)")
    run.until_said("crashing ended with exit code 7, starting again in 1 s (2nd time)")
    assert run.text().count("crashing is up") == 2
    run.until_said("polite is up")  # beside two starts of the other one it may take longer
    assert run.text().count("polite is up") == 1
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(5) == 0, run.text()


def test_a_service_killed_from_outside_is_started_again(supervised: Callable[..., Run]) -> None:
    run = supervised("polite")
    run.until_said("polite is up")
    (child,) = run.family()
    child.kill()
    run.until_said("polite was killed by SIGKILL, starting again at once (1st time)")
    run.until(lambda: run.text().count("polite is up") == 2)


def test_processes_left_by_a_crashed_service_are_killed(supervised: Callable[..., Run]) -> None:
    run = supervised("leaving")
    run.until_said("leaving left 1 processes behind, killed")
    run.until_said("leaving ended with exit code 1, starting again at once")


def test_a_service_that_cannot_use_its_configuration_ends_the_run_with_2(supervised: Callable[..., Run]) -> None:
    run = supervised("polite", "misconfigured")
    assert run.process.wait(10) == 2, run.text()
    assert "misconfigured ended with exit code 2: its configuration cannot be used" in run.text()


def test_service_with_a_configuration_broken_later_is_restarted(supervised: Callable[..., Run]) -> None:
    """It crashes, and a secret is half written when it comes back."""
    run = supervised("polite", "rotating")
    run.until_said("rotating ended with exit code 2: its configuration cannot be used now, starting again in 1 s")
    assert run.text().count("half a secret") == 1
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(5) == 0, run.text()


def test_a_service_that_does_not_end_is_killed_and_named(supervised: Callable[..., Run]) -> None:
    run = supervised("stubborn", "polite", grace=1)
    run.until_said("stubborn is up")
    run.until(lambda: len(run.family()) == 3)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(6) == 1, run.text()
    assert "error: stubborn did not end within 1 s of being asked to, killed" in run.text()
    assert run.left() == []


def test_a_second_ctrl_c_ends_everything_at_once(supervised: Callable[..., Run]) -> None:
    run = supervised("stubborn", "polite")
    run.until_said("stubborn is up")
    run.until(lambda: len(run.family()) == 3)
    run.process.send_signal(signal.SIGINT)
    run.until_said("ending: the services drain")
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(3) == 130, run.text()
    assert run.left() == []


def test_services_end_when_the_run_is_killed(supervised: Callable[..., Run]) -> None:
    run = supervised("polite")
    run.until_said("polite is up")
    run.family()
    run.process.kill()
    run.until(lambda: not run.left())
