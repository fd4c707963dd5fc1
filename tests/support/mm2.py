"""MirrorMaker 2 itself as a process: in dedicated mode from a file, and as connectors of a Connect worker.

It is the one of the jars that the brokers run from (`kafka_jars`), started as its own scripts start it. Both are
context managers that leave no process behind.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from tests.support import kafka_jars
from tests.support.eventually import wait_until
from tests.support.java import find_java, jvm_performance
from tests.support.ports import free_port
from tests.support.processes import LoggedProcess, starting, tail
from tests.support.properties_file import properties_text

STARTED_WITHIN = 120.0  # seconds; usual is 10, but several test runs may share the cores
STOPPED_WITHIN = 60.0

GRACE_MS = "30000"  # for its tasks; the default of 5 s is short where several test runs share the cores
NOT_WRITTEN_DOWN = re.compile("Graceful stop of task .*SourceConnector.* failed")

# What kafka-run-class.sh and connect-mirror-maker.sh of the 4.3 distribution pass to the JVM.
HEAP = ("-Xms256M", "-Xmx2G")
PERFORMANCE = (
    "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 "
    "-XX:+ExplicitGCInvokesConcurrent -XX:MaxInlineLevel=15 -Djava.awt.headless=true"
)
LOG4J = """\
Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout: {pattern: "[%d] %p %X{connector.context}%m (%c:%L)%n"}
  Loggers:
    Root:
      level: INFO
      AppenderRef: [{ref: out}]
"""
NOT_NOW = (404, 409, 503)
"""What Connect answers while it shares its work out anew, or has not done so yet."""

CONNECTORS = "org.apache.kafka.connect.mirror"


def command(file: Path) -> Sequence[str]:
    """Return the command line of dedicated mode for this `mm2.properties` file."""
    return _java(file, f"{CONNECTORS}.MirrorMaker")


def properties(source: str, target: str, topic: str, settings: Mapping[str, str]) -> str:
    """Return an ``mm2.properties`` file: the flow A->B of one topic, everything at its default save what single brokers
    ask for.

    ``topic`` is a regular expression there, so a plain name without dots.
    """
    once = {
        "clusters": "A, B",
        "A.bootstrap.servers": source,
        "B.bootstrap.servers": target,
        "A->B.enabled": "true",
        "A->B.topics": topic,
        "B->A.enabled": "false",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
    }
    return properties_text(once | dict(settings))


class _Process(LoggedProcess):
    def stop(self) -> None:
        """SIGTERM: it ends in order and writes down how far it came. Raises AssertionError if it does not."""
        self.end_with(143, within=STOPPED_WITHIN)
        assert NOT_WRITTEN_DOWN.search(self.log.read_text()) is None, "a task had not ended in time"


class MirrorMaker(_Process):
    """Dedicated mode. It is at work some ten seconds after its start: wait for what it writes.

    What it copied after it wrote its progress last is copied again by whoever goes on after `kill`.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        super().__init__(command(file), file.with_name(f"{file.stem}-mm2.log"))


class ConnectWorker(_Process):
    """A Connect cluster of one worker that keeps its offsets, configurations and statuses in ``<name>-offsets``,
    ``-configs`` and ``-status`` on the cluster at `bootstrap`, as Strimzi's `mirrormaker2-cluster-offsets` lie."""

    def __init__(self, folder: Path, bootstrap: str, name: str) -> None:
        self._port = free_port()
        file = folder / f"{name}-worker.properties"
        file.write_text(
            properties_text(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": name,
                    "listeners": f"http://127.0.0.1:{self._port}",
                    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
                    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
                    "offset.storage.topic": f"{name}-offsets",
                    "config.storage.topic": f"{name}-configs",
                    "status.storage.topic": f"{name}-status",
                    "task.shutdown.graceful.timeout.ms": GRACE_MS,
                    "offset.storage.replication.factor": "1",
                    "config.storage.replication.factor": "1",
                    "status.storage.replication.factor": "1",
                }
            )
        )
        super().__init__(_java(file, "org.apache.kafka.connect.cli.ConnectDistributed"), folder / f"{name}.log")

    def start(self) -> Self:
        """Start it, or start it again after it ended: its connectors then go on as they were. Returns once it
        answers."""
        super().start()
        with starting(self):
            wait_until(self._answers, within=STARTED_WITHIN, every=0.25, what="Connect answers")
        return self

    def run(self, name: str, connector: str, settings: Mapping[str, str]) -> None:
        """Create one of MM2's connectors, such as `MirrorCheckpointConnector`, or configure it anew; returns once it
        and its tasks run."""
        body = {"connector.class": f"{CONNECTORS}.{connector}", **settings}
        self._change(name, "config", body)
        self._wait_runs(name)

    def stop_connector(self, name: str) -> None:
        """Wait until Connect says that it is stopped, which may be a moment before its tasks have ended."""
        self._change(name, "stop")

        def stopped() -> bool:
            state = self._ask(f"{_path(name)}/status") or {}
            return state.get("connector", {}).get("state") == "STOPPED" and not state["tasks"]

        wait_until(stopped, within=STARTED_WITHIN, every=0.05, what=f"{name} is stopped")

    def resume_connector(self, name: str) -> None:
        """Wait until it and its tasks run."""
        self._change(name, "resume")
        self._wait_runs(name)

    def _change(self, name: str, what: str, body: Mapping[str, str] | None = None) -> None:
        def taken() -> bool:
            return self._ask(f"{_path(name)}/{what}", "PUT", body) is not None

        wait_until(taken, within=STARTED_WITHIN, every=0.5, what=f"Connect takes {what} of {name}")

    def _wait_runs(self, name: str) -> None:
        def runs() -> bool:
            state = self._ask(f"{_path(name)}/status")
            tasks = (state or {}).get("tasks", [])
            failed = [task["trace"] for task in tasks if task["state"] == "FAILED"]
            if failed:
                raise RuntimeError(f"{name}: {failed[0]}")
            return bool(tasks) and all(task["state"] == "RUNNING" for task in tasks)

        wait_until(runs, within=STARTED_WITHIN, every=0.25, what=f"{name} runs")

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"Connect ended while it started:\n{tail(self.log, 40)}")
        return self._ask("/connectors") is not None

    def _ask(self, path: str, method: str = "GET", body: Mapping[str, str] | None = None) -> Any:
        """Return what the worker answers, an empty object for nothing; None while it cannot (it starts, or shares its
        work out anew)."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30.0) as answer:  # noqa: S310 - our own
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode(errors="replace")
            if error.code in NOT_NOW:
                return None
            raise RuntimeError(f"Connect refuses {method} {path}: {said}") from error
        except urllib.error.URLError:
            return None


def _path(name: str) -> str:
    return f"/connectors/{quote(name)}"


def _java(file: Path, main: str) -> Sequence[str]:
    log4j = file.with_name("log4j2.yaml")
    log4j.write_text(LOG4J)
    return [
        str(find_java()),
        *HEAP,
        *jvm_performance(PERFORMANCE),
        f"-Dlog4j2.configurationFile={log4j}",
        "-cp",
        kafka_jars.classpath(),
        main,
        str(file),
    ]
