"""Spans: off by default and then not loaded, of works and their steps, sent to a collector that may be away."""

import asyncio
import io
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_kafka.common.errors import ClusterError, LeadershipLost
from lockstep_kafka.common.tracing import NO_TRACING, STEPS_AT_MOST, Tracing, add_event, set_attributes, step
from lockstep_runtime.telemetry import log
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.tracing_config import TracingConfig, start_tracing, tracing_config
from tests.support.collector import Collector
from tests.support.flow_context import flow_context
from tests.support.ports import free_port

SAY = FlowLog("topic-sync", "A->B")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """One that still tries to send draws random numbers, which Hypothesis notices in other tests."""
    yield
    for thread in threading.enumerate():
        if thread.name == "last spans" or thread.name.startswith("OtelBatch"):
            thread.join(30.0)
            assert not thread.is_alive(), thread.name


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        yield running


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """What is logged, as a service logs it."""
    stream = io.StringIO()
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    log.configure("topic-sync", stream=stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


@contextmanager
def begun(service: str = "topic-sync") -> Iterator[Tracing]:
    tracing = start_tracing(service, "one", os.environ, SAY)
    try:
        yield tracing
    finally:
        tracing.end(5.0)


# -- what is asked for -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, TracingConfig(True, "lockstep-checkpoint", "http://localhost:4318")),
        ({"OTEL_SERVICE_NAME": "mirror"}, TracingConfig(True, "mirror", "http://localhost:4318")),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "a=b, service.name = mirror"},
            TracingConfig(True, "mirror", "http://localhost:4318"),
        ),
        ({"OTEL_SDK_DISABLED": "True"}, TracingConfig(False, "lockstep-checkpoint")),
        ({"OTEL_TRACES_EXPORTER": "none"}, TracingConfig(False, "lockstep-checkpoint")),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:4318/t"},
            TracingConfig(True, "lockstep-checkpoint", "http://t:4318/t"),
        ),
    ],
)
def test_the_usual_variables_are_obeyed(environment: dict[str, str], wanted: TracingConfig) -> None:
    assert tracing_config("checkpoint", environment) == wanted


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "takes otlp or none"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is 'http/json'"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317"}, "has gRPC's port"),
    ],
)
def test_unsupported_tracing_setting_is_a_warning(environment: dict[str, str], words: str) -> None:
    (warning,) = tracing_config("checkpoint", environment).warnings
    assert words in warning


# -- off ---------------------------------------------------------------------------------------------------------------


def test_without_tracing_opentelemetry_is_not_loaded() -> None:
    code = (
        "import sys, lockstep_runtime.service.service, lockstep_runtime.telemetry.tracing_config; "
        "import lockstep_data_plane.slot.worker, "
        "lockstep_topic_sync.app; assert not [one for one in sys.modules if one.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_a_work_steps_and_notes_are_nothing() -> None:
    with NO_TRACING.work("round", flow="A->B"), step("request", cluster="A"):
        set_attributes(topics=3)
        add_event("TopicCreated")
    NO_TRACING.span_interval("copy", 0, 1)
    NO_TRACING.end(0.0)


@pytest.mark.parametrize("obstacle", ["lockstep-kafka[tracing]", "a variable OTEL_... cannot be understood"])
def test_tracing_that_cannot_begin_is_off_with_one_line(
    said: io.StringIO, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    """Its packages are missing, or a variable makes no sense."""
    if "variable" in obstacle:
        monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-3")
    else:
        monkeypatch.setitem(sys.modules, "lockstep_runtime.telemetry.spans", None)
    assert start_tracing("topic-sync", "one", {}, SAY) is NO_TRACING
    lines = [line for line in said.getvalue().splitlines() if "tracing is off" in line]
    assert len(lines) == 1
    assert obstacle in lines[0]


# -- on ----------------------------------------------------------------------------------------------------------------


async def test_a_work_its_steps_and_what_happened_arrive(collector: Collector) -> None:
    async def request(cluster: str) -> None:
        with step("admin list", cluster=cluster):
            await asyncio.sleep(0)

    with begun() as tracing:
        with tracing.work("topic-sync topic refresh", flow="A->B", service="topic-sync"):
            await asyncio.gather(request("A"), request("B"))
            set_attributes(topics=3)
            add_event("TopicCreated", subject="orders")
        with tracing.work("topic-sync topic refresh", flow="A->B", service="topic-sync"):
            pass
    first, second = collector.spans("topic-sync topic refresh")
    assert first.service == "lockstep-topic-sync"
    assert first.parent == second.parent == b""
    assert first.trace != second.trace
    assert first.attributes == {"flow": "A->B", "service": "topic-sync", "topics": 3}
    assert first.events == ("TopicCreated",)
    steps = collector.spans("admin list")
    assert {span.attributes["cluster"] for span in steps} == {"A", "B"}
    assert {(span.trace, span.parent) for span in steps} == {(first.trace, first.id)}
    assert {span["service.instance.id"] for span in collector.resources()} == {"one"}


def test_span_records_errors_but_not_a_change_of_leader(collector: Collector) -> None:
    with begun() as tracing:
        with pytest.raises(ClusterError), tracing.work("failing"), step("admin describe"):
            raise ClusterError("A", "cluster A: it is away")
        with pytest.raises(LeadershipLost), tracing.work("stood down"):
            raise LeadershipLost("somebody else leads")
    (work,), (within,), (stood,) = map(collector.spans, ("failing", "admin describe", "stood down"))
    assert work.error == within.error == "cluster A: it is away"
    assert work.events == ("exception",)
    assert stood.error is None


def test_work_has_a_maximum_of_steps(collector: Collector) -> None:
    with begun() as tracing, tracing.work("round"):
        for _ in range(STEPS_AT_MOST + 7):
            with step("admin describe"):
                pass
    assert len(collector.spans("admin describe")) == STEPS_AT_MOST
    assert collector.spans("round")[0].attributes["steps_left_out"] == 7


async def test_a_task_that_outlives_its_work_adds_nothing_to_it(collector: Collector) -> None:
    ended = asyncio.Event()

    async def long_living() -> None:
        await ended.wait()
        with step("admin describe"):
            set_attributes(topics=1)
            add_event("Late")

    with begun() as tracing:
        with tracing.work("round"):
            task = asyncio.create_task(long_living())
        ended.set()
        await task
    (span,) = collector.spans()
    assert (span.name, span.attributes, span.events) == ("round", {}, ())


def test_span_interval_has_the_times_that_it_was_given(collector: Collector) -> None:
    with begun("data-plane") as tracing:
        tracing.span_interval("data-plane copy", 5_000_000_000, 6_000_000_000, "cut", records=7)
    (span,) = collector.spans()
    assert (span.began_ns, span.ended_ns, span.error) == (5_000_000_000, 6_000_000_000, "cut")
    assert span.attributes == {"records": 7}


async def test_each_round_of_a_service_is_a_work(collector: Collector, tmp_path: Path) -> None:
    with begun() as tracing:
        ctx = flow_context(tmp_path, "topic-sync", tracing=tracing)
        done = asyncio.Event()

        async def round_() -> None:
            done.set()

        task = asyncio.create_task(ctx.periodic.every("topic refresh", timedelta(hours=1), round_))
        await done.wait()
        await asyncio.sleep(0)
        task.cancel()
    (span,) = collector.spans()
    assert span.name == "topic-sync topic refresh"
    assert span.attributes == {"flow": "A->B", "service": "topic-sync", "round": "topic refresh", "instance": "one"}


# -- a collector that is away ------------------------------------------------------------------------------------------


def test_a_collector_that_is_away_costs_one_line_and_no_time(
    said: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    tracing = start_tracing("topic-sync", "one", os.environ, SAY)
    began = time.monotonic()
    for _ in range(10_000):  # several times what is kept
        with tracing.work("round"):
            pass
    assert time.monotonic() - began < 20.0, "nothing waits for it"
    deadline = time.monotonic() + 30.0
    while "spans not sent" not in said.getvalue() and time.monotonic() < deadline:
        time.sleep(0.05)
    for _ in range(100):
        with tracing.work("round"):
            pass
    ending = time.monotonic()
    tracing.end(0.5)
    assert time.monotonic() - ending < 5.0
    lines = [line for line in said.getvalue().splitlines() if "tracing" not in line]
    assert len(lines) == 1, lines
    assert "spans not sent" in lines[0]


def test_a_collector_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        tracing = start_tracing("topic-sync", "one", os.environ, SAY)
        with tracing.work("round"):
            pass
        began = time.monotonic()
        tracing.end(0.5)
        assert time.monotonic() - began < 5.0


def test_collector_that_comes_back_is_logged_once(said: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with ExitStack() as back, begun() as tracing:
        _until(tracing, lambda: "spans not sent" in said.getvalue())
        collector = back.enter_context(Collector(port))  # until the last spans are sent
        _until(tracing, lambda: "spans arrive again" in said.getvalue())
        assert collector.spans("round")
    assert said.getvalue().count("spans not sent") == 1


def _until(tracing: Tracing, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not reached():
        assert time.monotonic() < deadline
        with tracing.work("round"):
            time.sleep(0.02)
