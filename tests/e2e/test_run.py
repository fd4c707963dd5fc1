"""`lockstep run FILE` as somebody meets it: a file that is wrong, a service that dies, the end."""

import http.client
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest

from lockstep_ops.services import SERVICES
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.collector import Collector, Received
from tests.support.eventually import wait_until
from tests.support.metrics import read_page
from tests.support.ports import free_port
from tests.support.runs import LockstepRun
from tools.docs.metrics import RUN, declared_by

COMMAND = [sys.executable, "-m", "lockstep_cli", "run"]
ENDS_WITHIN = 10.0

GOOD = """
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
"""


def refused(file: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a run that must not start says; the exit code is 2, and there is no traceback."""
    ran = subprocess.run(
        [*COMMAND, str(file)], capture_output=True, text=True, timeout=30, check=False, env=environment
    )
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    return ran.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "emit.checkpoint.enabled = false\n", ("mm2.properties:6", "emit.checkpoints.enabled")),
        (GOOD + "A-B.topics = orders\n", ("mm2.properties:6", "A->B.topics")),
        (GOOD + "A->B.topics = orders[\n", ("mm2.properties:6", "orders[")),
        (GOOD.replace("A, B", ""), ("clusters",)),
        ("", ("clusters",)),
        (GOOD.replace("127.0.0.1:2", ""), ("B.bootstrap.servers",)),
        (GOOD.replace("= true", "= false") + "emit.heartbeats.enabled = false\n", ("mm2.properties",)),
    ],
    ids=["unknown key", "another arrow", "bad pattern", "no clusters", "empty file", "no address", "nothing to run"],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_mistake(
    tmp_path: Path, text: str, said: tuple[str, ...]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    message = refused(file)
    for words in said:
        assert words in message


def test_run_names_all_mistakes_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD + "A->B.topics = orders[\ntopcs = x\nA->B.groups = [\n")
    message = refused(file)
    assert [line for line in (":6", ":7", ":8") if f"mm2.properties{line}" in message] == [":6", ":7", ":8"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    message = refused(tmp_path / "nowhere.properties")
    assert "nowhere.properties" in message
    assert len(message.strip().splitlines()) == 1


def test_run_without_java_is_refused_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD)
    message = refused(file, {**os.environ, "JAVA_HOME": str(tmp_path)})
    assert "needs Java" in message
    assert len(message.strip().splitlines()) == 1


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LockstepRun]]:
    runs: list[LockstepRun] = []

    def begin(text: str, *arguments: str) -> LockstepRun:
        file = tmp_path / "mm2.properties"
        file.write_text(text)
        runs.append(LockstepRun(file, *arguments))
        return runs[-1]

    yield begin
    for run in runs:
        run.kill()


def both_ways(a: str, b: str, more: str = "") -> str:
    return f"""
clusters = A, B
A.bootstrap.servers = {a}
B.bootstrap.servers = {b}
A->B.enabled = true
A->B.topics = run-.*
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
{more}"""


ROUNDS = {
    "topic-sync topic refresh",
    "topic-sync config sync",
    "acl-sync ACL sync",
    "checkpoint checkpoint emission",
    "heartbeat heartbeat",
}
COPY = "data-plane copy"
RECORDS = 200


def test_run_services_become_ready_restart_after_a_kill_and_end_on_sigterm(
    pair: Pair, start: Callable[..., LockstepRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(pair.a.bootstrap, unique_name("run"))
    produce(pair.a.bootstrap, topic, [Record(value=b"%d" % number) for number in range(RECORDS)])
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        text = both_ways(pair.a.bootstrap, pair.b.bootstrap, "lockstep.tracing = opentelemetry\n")
        run = start(text, "--http-port", "0")
        run.until_said_by("run", "ready: data-plane, topic-sync, acl-sync, checkpoint, heartbeat")
        check_pages(run)
        check_address_of_run(run)
        wait_until(
            partial(copied_and_told, collector), within=90, every=0.2, what="spans of every round and of the copy"
        )
        check_spans(collector.spans())
        for service, process in (("data-plane", "data-plane"), ("heartbeat", "control-services")):
            psutil.Process(run.service_pid(service)).kill()
            run.until_said_by("run", f"{process} was killed by SIGKILL, starting again at once (1st time)")
        for service in SERVICES:
            run.until_said_by("run", f"{service} is ready again")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(ENDS_WITHIN) == 0, run.text()
    assert run.left() == []


def copied_and_told(collector: Collector) -> bool:
    span_names = {span.name for span in collector.spans()}
    copied = sum(span.attributes["records"] for span in collector.spans(COPY))
    assert span_names >= ROUNDS, ROUNDS - span_names
    assert copied >= RECORDS, copied
    return True


def check_spans(spans: Sequence[Received]) -> None:
    """Each is a root with what it is about, or a request within one."""
    by_id = {span.id: span for span in spans}
    for span in spans:
        service, _, kind = span.name.partition(" ")
        if service == "admin":
            parent = by_id.get(span.parent)  # the last ones may be lost with their round
            assert span.attributes.keys() >= {"cluster", "resource"}
            assert parent is None or (parent.trace, parent.service) == (span.trace, span.service)
            continue
        assert span.parent == b""
        assert span.service == f"lockstep-{service}"
        assert span.attributes["flow"] in ("A->B", "B->A")
        assert span.attributes["service"] == service
        if span.name == COPY:
            assert span.attributes.keys() >= {"slot", "run", "records", "bytes", "partitions"}
            assert span.attributes["bytes"] > span.attributes["records"] > 0
        else:
            assert span.attributes["round"] == kind
    steps = [span for span in spans if span.name.startswith("admin ")]
    assert {by_id[span.parent].name for span in steps if span.parent in by_id} >= {"topic-sync topic refresh"}
    assert "TopicCreated" in {event for span in spans for event in span.events}
    assert any(span.attributes.get("to_create") for span in spans)


def check_pages(run: LockstepRun) -> None:
    addresses = {line["service"]: line["address"] for line in run.lines() if "address" in line}
    assert len(addresses) == 5
    for service, address in addresses.items():
        assert page_at(address, "/live") == (200, "live\n")
        metrics = read_page(page_at(address, "/metrics")[1])
        assert "lockstep_ready" in metrics
        assert metrics.keys() <= declared_by(service)


def check_address_of_run(run: LockstepRun) -> None:
    """It lists the pages of all services and answers each, and one page has the metrics of all."""
    (address,) = re.findall(r"pages of all services: (http://[0-9.:]+)", run.text())
    pages = ("live", "ready", "status", "metrics")
    listed = page_at(address, "/")[1].split()
    assert set(listed) == {f"/{page}" for page in pages} | {f"/{name}/{page}" for name in SERVICES for page in pages}
    assert {path: page_at(address, path)[0] for path in listed} == dict.fromkeys(listed, 200)
    metrics = read_page(page_at(address, "/metrics")[1])
    assert [(labels["service"], value) for labels, value in metrics["lockstep_service_up"]] == [
        (service, 1.0) for service in SERVICES
    ]
    assert {labels["service"] for labels, _ in metrics["lockstep_build_info"]} == set(SERVICES)
    assert all("service" in labels for samples in metrics.values() for labels, _ in samples)
    declared = {metric.shown_as for metric in RUN}.union(*(declared_by(service) for service in SERVICES))
    assert metrics.keys() <= declared


def page_at(address: str, path: str) -> tuple[int, str]:
    """The status and the text of a page."""
    pages = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10)
    pages.request("GET", path)
    answer = pages.getresponse()
    text = answer.read().decode()
    pages.close()
    return answer.status, text


def check_warnings_are_said_once(run: LockstepRun) -> None:
    """A first start on few brokers lowers the replication factor of many topics of each of five processes."""
    warnings = [line for line in run.lines() if line["level"] not in ("info", "debug")]
    said = Counter((line["service"], line["message"], line.get("flow"), line.get("text")) for line in warnings)
    assert {words: times for words, times in said.items() if times > 1} == {}
    lowered = [line["text"].partition(":")[0] for line in warnings if line["message"] == "replication factor lowered"]
    assert sorted(lowered) == ["C", "D"], "said once for a cluster"


def test_each_service_has_a_process_of_its_own_if_asked_to(pair: Pair, start: Callable[..., LockstepRun]) -> None:
    # Of our own topics only: when the first topic is mirrored, here that of heartbeats, depends on the machine.
    text = re.sub(r".+\.replication.factor = 1\n", "", both_ways(pair.a.bootstrap, pair.b.bootstrap))
    run = start(re.sub(r"\bA\b", "C", re.sub(r"\bB\b", "D", text)), "--processes")  # no topic of theirs is there yet
    run.until_said_by("run", "ready: data-plane, topic-sync, acl-sync, checkpoint, heartbeat")
    check_warnings_are_said_once(run)
    assert len({run.service_pid(service) for service in SERVICES}) == len(SERVICES)
    check_pages(run)
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(ENDS_WITHIN) == 0, run.text()
    assert run.left() == []


@pytest.mark.long
def test_mm2_033_run_skips_a_disabled_service_and_two_ctrl_c_end_it(
    pair: Pair, start: Callable[..., LockstepRun]
) -> None:
    run = start(both_ways(pair.a.bootstrap, pair.b.bootstrap, "A->B.emit.checkpoints.enabled = false\n"))
    run.until_said_by("run", "ready: data-plane, topic-sync, acl-sync, heartbeat")
    for process in psutil.Process(run.process.pid).children(recursive=True):
        if process.status() == psutil.STATUS_ZOMBIE:
            continue  # what Spark's start scripts leave
        if "lockstep_data_plane" in process.cmdline():
            continue  # to convert an argument, PySpark imports its own tests' tools, which load what they find of these
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert "google/_upb" not in maps, f"who does not trace does not load what tracing needs: {process.cmdline()}"
    run.process.send_signal(signal.SIGINT)
    run.until_said_by("run", "ending")  # two signals that nobody has taken yet are one
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(5) in (0, 130), run.text()
    assert run.left() == []


def test_a_cluster_that_cannot_be_reached_is_named_and_waited_for(start: Callable[..., LockstepRun]) -> None:
    heartbeats_only = both_ways(f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}").replace("= true", "= false")
    run = start(heartbeats_only)
    run.until_said_by("heartbeat", "started")

    def named() -> bool:
        return any("127.0.0.1:" in str(line.get("text")) for line in run.lines() if line["level"] == "warning")

    wait_until(named, every=0.1, what="the cluster and its address are named")
    assert run.process.poll() is None
    assert "Traceback" not in run.text()
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(ENDS_WITHIN) == 0, run.text()


@pytest.mark.long
def test_run_with_a_closed_output_ends(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(both_ways("127.0.0.1:1", "127.0.0.1:2").replace("= true", "= false"))
    run = subprocess.Popen([*COMMAND, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.readline()
    run.stdout.close()
    try:
        assert run.wait(30) == 0
        assert run.stderr.read() == b""
    finally:
        run.kill()
        run.wait()
        run.stderr.close()
