"""A Lockstep service as a real process: started with `python -m`, heard through its JSON log, asked through its
pages."""

import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lockstep_state.names import Flow
from tests.support.eventually import PATIENCE_S, NeverHappened, wait_until
from tests.support.processes import LoggedProcess, end

STARTED_WITHIN = 60.0  # seconds; usual is 3, but several test runs may share the cores


class ServiceProcess(LoggedProcess):
    """One service for `flows` of a file; a context manager. What it logs is kept over restarts, one JSON object a
    line."""

    def __init__(
        self,
        module: str,
        config: Path,
        *flows: str,
        instance: str = "test",
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.module = module
        chosen = [part for flow in flows for part in ("--flow", flow)]
        command = [sys.executable, "-m", module, "--config", str(config), *chosen]
        command += ["--instance", instance, "--log-format", "json", *arguments]
        log = config.parent / f"{module}-{instance}-{time.monotonic_ns()}.log"
        # What it and its JVM leave when they are killed goes with the test's own folder.
        super().__init__(command, log, {**os.environ, "TMPDIR": str(config.parent), **(environment or {})})
        self._heard_before = 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def start(self) -> Self:
        """Start the process, or start it again after it ended."""
        self._heard_before = len(self.lines())
        return super().start()

    def stop(self, within: float = PATIENCE_S) -> int:
        """Send SIGTERM. Return the exit status, which is -9 if it took longer than `within`."""
        return end(self._process, within=within)

    @property
    def running(self) -> bool:
        return self.ended is None

    @property
    def ended(self) -> int | None:
        """Return its exit status; None while it runs."""
        return self._process.poll()

    def wait(self, within: float = STARTED_WITHIN) -> int:
        """Return its exit status once it has ended by itself."""
        return self._process.wait(within)

    # -- its log -------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return all it has written."""
        return self.log.read_text() if self.log.exists() else ""

    def lines(self) -> list[dict[str, Any]]:
        """Return all it has logged, oldest first; what is no JSON object has only the key `raw`."""
        return [_line(text) for text in self.text().splitlines()]

    def said(self, message: str, **keys: Any) -> list[dict[str, Any]]:
        """Return lines with this message and these keys since the last start."""
        wanted = {"message": message, **keys}
        return [line for line in self.lines()[self._heard_before :] if wanted.items() <= line.items()]

    def has_said_each_cause_once(self) -> bool:
        """Return whether an outage has a line, and one for each of its causes."""
        causes = [line["reason"] for line in self.said("cluster unreachable")]
        return 0 < len(causes) == len(set(causes))

    def hear(self, message: str, *, within: float = STARTED_WITHIN, **keys: Any) -> dict[str, Any]:
        """Return the first line with this message since the last start, as soon as there is one."""

        def heard() -> list[dict[str, Any]]:
            lines = self.said(message, **keys)
            if not lines and not self.running:
                raise RuntimeError(f"ended before it said {message!r}:\n{self.text()}")
            return lines

        return wait_until(heard, within=within, what=f"{message!r} {keys or ''}")[0]

    def said_last(self, lines: int) -> str:
        """Return how its flows stand and the end of its log, as a person would read it; of one whose pages do not
        answer, where its threads stand."""
        state = self._standing() if self.running else f"ended with {self.ended}"
        shown = [" ".join(str(value) for value in list(line.values())[:6])[:250] for line in self.lines()[-lines:]]
        return "\n".join([f"{self.module} (pid {self.pid}) {state}:", *shown])

    def _standing(self) -> str:
        try:
            flows = json.loads(self.page("/status")[1])["flows"]
        except (OSError, NeverHappened) as gone:
            os.kill(self.pid, signal.SIGQUIT)
            return f"runs and does not answer: {gone}"
        shown = ("ready", "standing", "leader", "troubles")
        shown_of = (f"{flow}: {[flow_status.get(key) for key in shown]}" for flow, flow_status in flows.items())
        return "; ".join(["runs", *shown_of])

    # -- its pages -----------------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return str(self.hear("started")["address"])

    def page(self, path: str) -> tuple[int, str]:
        """Return status and text of a page."""
        try:
            with urllib.request.urlopen(self.address + path, timeout=5.0) as answer:  # noqa: S310 - our own address
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def ready(self) -> bool:
        return self.page("/ready")[0] == 200

    def wait_ready(self, within: float = STARTED_WITHIN) -> Self:
        wait_until(self.ready, within=within, what="/ready")
        return self

    def status(self, flow: str) -> dict[str, Any]:
        """Return what /status says about a flow."""
        flow_status: dict[str, Any] = json.loads(self.page("/status")[1])["flows"][flow]
        return flow_status


def two_cluster_file(folder: Path, a: tuple[str, str], b: tuple[str, str], *lines: str) -> Path:
    """Return an mm2.properties file for two clusters given as (alias, bootstrap). Factors are 1; nothing is enabled
    yet."""
    path = folder / "mm2.properties"
    factors = ("replication.factor", "offset.storage.replication.factor", "heartbeats.topic.replication.factor")
    text = [
        f"clusters = {a[0]}, {b[0]}",
        f"{a[0]}.bootstrap.servers = {a[1]}",
        f"{b[0]}.bootstrap.servers = {b[1]}",
        *(f"{factor} = 1" for factor in factors),
        *lines,
    ]
    path.write_text("\n".join(text) + "\n")
    return path


COPY_ONLY = tuple(f"{what}.enabled = false" for what in ("sync.topic.acls", "emit.heartbeats", "emit.checkpoints"))
"""Lines of a file with which topics are mirrored and their records copied, and nothing else."""


def one_flow_file(folder: Path, flow: Flow, mark: str, source: str, target: str, *lines: str) -> Path:
    """Return `two_cluster_file` of one flow, which copies the topics that begin with `mark`. `source`, `target`:
    addresses."""
    enabled = (f"{flow}.enabled = true", f"{flow}.topics = {mark}-.*", "offset-syncs.topic.replication.factor = 1")
    return two_cluster_file(folder, (flow.source, source), (flow.target, target), *enabled, *lines)


def _line(text: str) -> dict[str, Any]:
    if text.startswith("{"):
        body = json.loads(text)
        if isinstance(body, dict):
            return body
    return {"raw": text}
