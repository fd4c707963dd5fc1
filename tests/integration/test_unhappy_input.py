"""Input that cannot be used, and clusters that are gone: one sentence, a code, and nothing is changed. Every command
runs as a process of its own; all of them at the same time, for each takes half a second."""

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_cli.__main__ import main
from tests.support.ports import free_port
from tests.unit.cli.test_helps import commands

TOGETHER = 4
WITHIN_S = 120.0

SWITCHES = ("switchover", "failover", "failback")
VERIFICATION = ("verify run", "verify report", "verify show")
FLOWS = ("status", "watch", "probe", "doctor", "plan", "takeover", "handback", *SWITCHES, *VERIFICATION)
VERBS = ("pause", "resume", "stop", "restart", "refresh")
OFFSETS = ("offsets list", "offsets alter", "offsets reset")
TRANSFORMS = ("transform check", "transform try")
OTHERS = ("run", "config check", "config show", "config convert")
MORE: Mapping[str, tuple[str, ...]] = {
    "offsets alter": ("--topic", "orders", "--partition", "0", "--offset", "3"),
    "takeover": ("--yes",),
    "handback": ("--yes",),
    "plan": ("--out", "plan.json"),
    "switchover": ("--dry-run",),
    "failover": ("--yes",),
    "failback": ("--status",),
    "verify show": ("orders-3", "120"),
    "transform try": ("--topic", "orders"),
}
"""What a command needs beside FILE."""

WITHOUT_FILE = {"completion", "explain", "legacy", "rack", "version"}


@dataclass(frozen=True, slots=True)
class UnhappyCase:
    """A command line, and what comes of it: the code, and the words of its one sentence."""

    command: str
    arguments: tuple[str, ...]
    code: int
    words: str

    @property
    def name(self) -> str:
        return f"{self.command}: {self.words}"


def _gone(command: str, code: int = 3) -> UnhappyCase:
    arguments = ("gone.properties", *MORE.get(command, ()), "--timeout", "1")
    return UnhappyCase(command, arguments, code, "cannot be reached")


CASES = (
    *(
        UnhappyCase(one, ("none.properties", *MORE.get(one, ())), 2, "none.properties: there is no such file")
        for one in (*FLOWS, *VERBS, *OFFSETS, *TRANSFORMS, *OTHERS)
    ),
    *(
        UnhappyCase(one, ("gone.properties", *MORE.get(one, ()), "--flow", flow), 2, words)
        for one in (*FLOWS, *VERBS, *OFFSETS, *TRANSFORMS)
        for flow, words in (("A->X", "runs no flow A->X; the flows it runs: A->B, B->A"), ("AB", "'AB' is not a flow"))
        if words.startswith("runs") or one == "status"
    ),
    UnhappyCase("config show", ("gone.properties", "A->X"), 2, "runs no flow A->X"),
    UnhappyCase("console", ("none.properties",), 2, "none.properties: there is no such file"),
    UnhappyCase("console", ("gone.properties", "--flow", "A->X", "--port", "0"), 2, "runs no flow A->X"),
    UnhappyCase("console", ("gone.properties", "--token-file", "none"), 2, "--token-file"),
    *(UnhappyCase(one, ("gone.properties", "topics:orders"), 2, "topics:orders") for one in VERBS),
    *(_gone(one) for one in (*VERBS, *OFFSETS, "status", "watch", "plan", "takeover", "handback")),
    *(_gone(one) for one in ("switchover", "failover", *VERIFICATION)),
    UnhappyCase("failback", ("gone.properties", "--yes"), 2, "has no flow B->A that copies back"),
    UnhappyCase("switchover", ("gone.properties",), 2, "nothing was done: say --yes"),
    UnhappyCase("switchover", ("gone.properties", "--continue", "--abort"), 2, "exclude each other"),
    UnhappyCase("switchover", ("gone.properties", "--yes", "--cutoff", "soon"), 2, "--cutoff soon"),
    UnhappyCase("failover", ("gone.properties", "--yes", "--cutoff", "now"), 2, "--cutoff needs the source"),
    UnhappyCase("verify run", ("gone.properties", "--follow"), 2, "set it for A->B"),
    UnhappyCase("verify show", ("gone.properties", "orders", "3"), 2, "'orders' names no partition"),
    UnhappyCase("handback", ("gone.properties", "--yes", "--stop", "--timeout", "1"), 3, "cannot be reached"),
    UnhappyCase("run", ("gone.properties", "--plan", "none.json"), 2, "none.json cannot be read: No such file"),
    UnhappyCase("plan", ("gone.properties", "--against", "none.yaml", "--timeout", "1"), 3, "cannot be reached"),
    UnhappyCase("offsets alter", ("gone.properties", "none.json"), 2, "none.json"),
    UnhappyCase("transform try", ("gone.properties", "--topic", "orders"), 2, "no transform selects orders"),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it left."""

    code: int
    printed: str
    left: frozenset[str]


def write_file(folder: Path, port: int) -> Path:
    """Both clusters are at a port on which nobody listens."""
    servers = [f"{one}.bootstrap.servers = 127.0.0.1:{port}" for one in "AB"]
    file = folder / "gone.properties"
    file.write_text("\n".join(["clusters = A, B", *servers, "A->B.enabled = true", ""]), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    port = free_port()

    def run(case: UnhappyCase) -> Ended:
        folder = tmp_path_factory.mktemp("unhappy")
        lines = (
            "clusters = A, B",
            "A->B.enabled = true",
            *(f"{one}.bootstrap.servers = 127.0.0.1:{port}" for one in "AB"),
        )
        (folder / "gone.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "lockstep_cli", *case.command.split(), *case.arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, frozenset(one.name for one in folder.iterdir()))

    with ThreadPoolExecutor(TOGETHER) as pool:
        return dict(zip([case.name for case in CASES], pool.map(run, CASES), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_unhappy_input_ends_with_a_sentence_and_changes_nothing(case: UnhappyCase, ended: dict[str, Ended]) -> None:
    ended_run = ended[case.name]
    assert ended_run.code == case.code, ended_run.printed
    assert "Traceback" not in ended_run.printed
    assert case.words in ended_run.printed
    assert ended_run.left == {"gone.properties"}
    lines = [line for line in ended_run.printed.splitlines() if line and not line.startswith(("Usage: ", "Try '"))]
    allowed = 2 if case.command == "config check" else 1  # a line for each mistake, and a sum
    assert len(lines) <= allowed, ended_run.printed


def test_every_command_has_its_unhappy_cases() -> None:
    every = {path for path, _ in commands(main)}
    assert every == {case.command for case in CASES} | WITHOUT_FILE


@pytest.mark.parametrize(
    ("command", "arguments", "code"),
    [("doctor", ("--category", "connection", "--category", "flow"), 1), ("probe", (), 3)],
)
def test_check_of_clusters_that_are_gone_names_the_port(
    tmp_path: Path, command: str, arguments: tuple[str, ...], code: int
) -> None:
    file = tmp_path / "gone.properties"
    port = free_port()
    servers = "\n".join(f"{one}.bootstrap.servers = 127.0.0.1:{port}" for one in "AB")
    file.write_text(f"clusters = A, B\n{servers}\nA->B.enabled = true\n")
    done = subprocess.run(
        [sys.executable, "-m", "lockstep_cli", command, str(file), "--timeout", "1", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
    )
    assert (done.returncode, done.stderr) == (code, "")
    for alias in "AB":
        assert f"✗ LD301 {alias}: port of each address: 127.0.0.1:{port}: 127.0.0.1: connection refused" in done.stdout
