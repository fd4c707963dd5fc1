"""As `sources.py`: what the programs say when they run, without a broker. Commands, their JSON, pages, logs, spans."""

import asyncio
import io
import json
import logging
import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
from click.testing import CliRunner

from lockstep_cli.command_runner import exit_with
from lockstep_cli.commands.version import InstalledVersions
from lockstep_config import Configuration, ConfigurationError, FlowSettings, load
from lockstep_config.text.config_errors import Problem
from lockstep_data_plane.spark.session import SparkSession
from lockstep_kafka.common import tracing
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotAppended, TopicMissing
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops import command_client
from lockstep_ops.command_request import CommandReply
from lockstep_ops.control_topics import record_as_json
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport, ProbeReport
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.record_decoder import decode
from lockstep_ops.status.report_json import report_as_json
from lockstep_ops.takeover.handback import plan_hand_back
from lockstep_ops.takeover.migration import MigrationState
from lockstep_ops.takeover.offset_location import offset_location
from lockstep_ops.takeover.takeover import TakeoverState, plan_takeover
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.server import PageServer
from lockstep_runtime.service import service
from lockstep_runtime.telemetry import log
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.metrics import Metrics
from lockstep_runtime.telemetry.tracing_config import start_tracing
from lockstep_state.events import Event
from lockstep_state.names import Flow
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Row
from tests.support.collector import Collector
from tests.support.reports import reported
from tests.unit.golden.sources import a_file, row_of

AB = Flow("A", "B")
PACKAGES = {
    "topic-sync": "lockstep_topic_sync",
    "acl-sync": "lockstep_acl_sync",
    "data-plane": "lockstep_data_plane",
    "checkpoint": "lockstep_checkpoint",
    "heartbeat": "lockstep_heartbeat",
}

# -- commands ----------------------------------------------------------------------------------------------------------


def installed() -> Mapping[str, click.Command]:
    """What is installed to be run, by its name."""
    ours = {point.name: point for point in entry_points(group="console_scripts") if point.name.startswith("lockstep")}
    return {name: point.load() for name, point in sorted(ours.items())}


def ran(*arguments: str, answer: Mapping[str, Any] | None = None) -> tuple[int, str]:
    """Exit code and output of `lockstep ARGUMENTS`, with a file in the place of FILE. `answer`: the kind and detail
    with which each service that is asked answers; without it none does. No cluster is asked."""

    async def ask(_: FlowSettings, reply: CommandReply, __: float) -> None:
        for name in sorted(reply.request.services) if answer else ():
            heard = {"answers": reply.request.command.id, "service": name, "flow": "A->B", "at_ms": 1}
            reply.add_event(Event(**{**heard, **(answer or {})}))

    with a_file() as file, patch.object(command_client, "ask", ask):
        given = [str(file) if one == "FILE" else one for one in arguments]
        result = CliRunner().invoke(installed()["lockstep"], given)
        return result.exit_code, result.stdout.replace(str(file), "FILE")


def exit_codes() -> Iterator[tuple[str, int]]:
    """How a command ends, by what goes wrong; and how services end."""
    for what, fault in {
        "arguments that cannot be meant": CannotUse("x"),
        "a file that cannot be used": ConfigurationError([Problem(Path("x"), 1, "k", "x")]),
        "a cluster that cannot be reached": ClusterUnreachable("A", "a:1", "x"),
        "a record that is not acknowledged": NotAppended("A", "t", "x"),
        "a topic that is missing": TopicMissing("A", "t"),
        "a cluster that refuses": ClusterError("A", "x"),
        "a row of a newer release": NewerVersion("x", 2, 1),
        "Ctrl-C": KeyboardInterrupt(),
    }.items():
        yield what, _code(_raising(fault))
    ends = (service.CLEAN, service.CRASHED, service.UNUSABLE, service.SHUTDOWN_REQUESTED)
    yield from zip((f"a service {how}" for how in ("ends", "crashes", "cannot start", "is told to")), ends, strict=True)


async def _raising(fault: BaseException) -> int:
    raise fault


def _code(work: Coroutine[Any, Any, int]) -> int:
    try:
        with redirect_stderr(io.StringIO()):
            exit_with(work)
    except SystemExit as ended:
        return int(ended.code or 0)
    return -1


# -- JSON for programs -------------------------------------------------------------------------------------------------


def outputs(bodies: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[tuple[str, object]]:
    """What commands print with `--output json` that `ran` cannot show without a broker. `bodies`: rows, as kind and
    fields."""
    rows: list[Row] = [row_of(kind, body) for kind, body in bodies]
    report = reported(*rows, replicas={"topic-sync": 1}, unreadable=("x",), ends={("t", 0): 13, ("t", 1): 5})
    yield "status", report_as_json(report)
    yield "status --groups --only trouble", report_as_json(report, ["groups"], only_trouble=True)
    failed = registry.PORTS.failed("A", "x")
    for command, report_of in (("probe", ProbeReport), ("doctor", DoctorReport)):
        yield command, report_of((CategoryFindings(Category.CONNECTION, (failed,)),)).as_json()
    yield "version", InstalledVersions("0.1.0", "3.11.7", "4.3.0", "17.0.15", "/usr/bin/java").as_json()
    yield "version, without Spark and Java", InstalledVersions("0.1.0", "3.11.7", "", "", "").as_json()
    event = Event(kind="Paused", service="topic-sync", flow="A->B", subject="topic:t", detail={"scope": "topic:t"})
    key, value = event.encode()
    record = Record("events", 0, 7, key, value, 9)
    yield "watch", json.loads(json.dumps(record_as_json("A->B", "events", record, decode("events", key, value))))
    strimzi, own = (offset_location(origin, AB, None, "mm2-offsets.A.internal") for origin in ("strimzi", "dedicated"))
    theirs = TakeoverState(
        flow=AB,
        cluster="A",
        location=strimzi,
        own=own,
        rows={},
        mm2_offsets={("t", 0): 9},
        selected={"t": "A.t"},
        begins={("t", 0): 0},
        ends={("t", 0): 100},
        target_topics=frozenset({"A.t"}),
    )
    yield "takeover", plan_takeover(theirs).as_json()
    held = MigrationState(flow=AB, cluster="A", location=strimzi, rows={row.key(): row for row in rows}, replicas=1)
    yield "handback", plan_hand_back(held).as_json()


def logged() -> Iterator[tuple[str, object]]:
    """Lines of a service's log with `--log-format json`."""
    stream, root = io.StringIO(), logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        log.configure("topic-sync", "info", "json", stream)
        FlowLog("topic-sync", AB).warn("topic failed", "t", kind="TopicFailed")
        FlowLog("topic-sync", "").failed("crashed", ValueError("x"))
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    for line in stream.getvalue().splitlines():
        yield "log", json.loads(line) | {"at": "AT"}


# -- pages -------------------------------------------------------------------------------------------------------------


BUILDS = {"acl-sync": "AclSync", "checkpoint": "CheckpointFlow", "heartbeat": "Heartbeats", "topic-sync": "TopicSync"}
"""What makes a service for a flow, in its `app.py`."""


def _processes() -> Iterator[service.Process]:
    """One of each service, as it is before it runs."""
    with a_file() as file:
        configuration: Configuration = load(file, {})
    flow = configuration.flows[0]
    for name, package in PACKAGES.items():
        app = import_module(f"{package}.app")
        with patch.object(app, "started", [SparkSession(flow.data_plane.spark, 1)], create=True):
            yield service.Process(
                import_module(f"{package}.__main__").SERVICE,
                configuration,
                lambda: configuration,
                [flow],
                getattr(app, BUILDS.get(name, "build")),
                service.Instance("host-1", AccessPolicy()),
            )


def statuses() -> Iterator[tuple[str, object]]:
    """Of each service, its `/status` before it runs."""

    async def made() -> list[tuple[str, object]]:
        return [(process.service, json.loads(json.dumps(process.status()))) for process in _processes()]

    yield from asyncio.run(made())


ASKED = [
    *(("GET", path, "") for path in ("/live", "/ready", "/status", "/metrics", "/", "/healthz")),
    *((method, "/live", "") for method in ("HEAD", "POST")),
    *(("GET", path, token) for token in ("wrong", "secret") for path in ("/live", "/ready", "/status", "/metrics")),
]


def pages() -> Iterator[tuple[str, str]]:
    """What is asked, and what comes: status line, headers and body. Where a token comes with the request, one is
    wanted."""
    yield from asyncio.run(_heard())


async def _heard() -> list[tuple[str, str]]:
    said: Mapping[str, Any] = {"service": "topic-sync"}
    found = []
    for method, path, token in ASKED:
        served = PageServer(Metrics(), live=lambda: None, ready=lambda: "not read yet", status=lambda: said)
        address = await served.open(AccessPolicy(token="secret" if token else ""))
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        bearer = f"Authorization: Bearer {token}\r\n" if token else ""
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n".encode())
        found.append((f"{method} {path} {token}".rstrip(), (await reader.read()).decode()))
        writer.close()
        await served.close()
    return found


# -- spans -------------------------------------------------------------------------------------------------------------


def spans() -> Iterator[tuple[str, object]]:
    """What a collector receives of a round with one request, one note and one event."""
    with Collector() as collector, patch.dict(os.environ, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}):
        telling = start_tracing("topic-sync", "host-1", os.environ, FlowLog("topic-sync", AB))
        with telling.work("topic-sync round", flow="A->B"), tracing.step("admin list", cluster="A"):
            tracing.set_attributes(topics=1)
            tracing.add_event("TopicCreated", subject="t")
        telling.end(5.0)
        for span in sorted(collector.spans(), key=lambda one: one.name):
            yield span.name, {"attributes": span.attributes, "events": span.events, "service": span.service}
