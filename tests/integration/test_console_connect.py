"""The console as Kafka Connect: what tools for Connect ask, on real clusters, and what pause, resume and stop do."""

import base64
import json
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lockstep_state.rows.state_rows import Assignment, Leader, MirroredTopic, PartitionProgress, SlotStatus
from tests.support.broker import Broker
from tests.support.control import events
from tests.support.eventually import wait_until
from tests.support.go_programs import CONNECT_CLIENT, build_program, find_go
from tests.support.own_flow import OwnFlow
from tests.support.services import ServiceProcess

MARK = uuid.uuid4().hex[:6]
TOKEN = "s3cret"
SOURCE, HEARTBEAT = (f"s{MARK}->t{MARK}.{name}" for name in ("MirrorSourceConnector", "MirrorHeartbeatConnector"))
AT, HEARTBEAT_AT = (f"/connectors/{quote(name)}" for name in (SOURCE, HEARTBEAT))
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BASIC = {"Authorization": f"Basic {base64.b64encode(f'kafbat:{TOKEN}'.encode()).decode()}"}
QUIET = ("sync.topic.acls.enabled = false", "emit.checkpoints.enabled = false")


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory, broker_a: Broker, broker_b: Broker) -> OwnFlow:
    return OwnFlow.between(broker_a, broker_b, tmp_path_factory.mktemp("connect"), MARK, *QUIET)


@pytest.fixture(scope="module")
def console(flow: OwnFlow, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Run the console, topic-sync and heartbeat. Nothing copies records: the data plane's rows are written here."""
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(TOKEN)
    arguments = ("--token-file", str(token))
    with (
        ServiceProcess("lockstep_topic_sync", flow.file, str(flow.flow)) as topics,
        ServiceProcess("lockstep_heartbeat", flow.file, str(flow.flow)) as beats,
        ServiceProcess("lockstep_console", flow.file, str(flow.flow), arguments=arguments) as process,
    ):
        for service in (topics, beats):
            service.hear("leading", flow=str(flow.flow))
        flow.write_rows(
            Leader(service="data-plane", instance="pod-0", at_ms=1),
            MirroredTopic(source_topic=f"{MARK}-orders", target_topic=f"s{MARK}.{MARK}-orders", phase="mirrored"),
            PartitionProgress(topic=f"{MARK}-orders", partition=0, upstream=41, slot=0),
            Assignment(slot=0, partitions=((f"{MARK}-orders", 0),)),
            SlotStatus(slot=0, phase="started", partitions=1),
        )
        process.wait_ready()
        wait_until(lambda: get(process, f"{HEARTBEAT_AT}/status")["connector"]["state"] == "RUNNING", within=30)
        yield process


def ask(
    console: ServiceProcess, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, str, dict[str, str]]:
    """Return status, body and headers of an answer."""
    request = urllib.request.Request(console.address + path, method=method, headers=headers or {})  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - our own address
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def get(console: ServiceProcess, path: str, headers: dict[str, str] = BEARER) -> Any:
    status, text, _ = ask(console, "GET", path, headers)
    assert status == 200, text
    return json.loads(text)


def test_connectors_are_those_of_the_flow(console: ServiceProcess) -> None:
    assert get(console, "/connectors") == [SOURCE, HEARTBEAT]


def test_program_is_answered_as_by_a_worker_and_a_browser_gets_the_page(console: ServiceProcess) -> None:
    body = get(console, "/")
    assert body.keys() == {"version", "commit", "kafka_cluster_id"}
    assert len(wait_until(lambda: get(console, "/")["kafka_cluster_id"], within=30)) == 22
    assert get(console, "/", {**BEARER, "Accept": "*/*"}).keys() == body.keys()
    _, text, headers = ask(console, "GET", "/", {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert "json" not in headers["Content-Type"], text


def test_requests_of_kafbat_are_answered(console: ServiceProcess) -> None:
    """As `KafkaConnectService.getAllConnectors` of kafbat UI asks, with the only credentials that it knows."""
    states = {"RUNNING", "FAILED", "PAUSED", "RESTARTING", "UNASSIGNED", "STOPPED"}
    for name in get(console, "/connectors", BASIC):
        at = f"/connectors/{quote(name)}"
        connector = get(console, at, BASIC)
        assert (connector["name"], connector["type"]) == (name, "source")
        status = get(console, f"{at}/status", BASIC)
        assert status["connector"]["state"] in states
        assert all(isinstance(value, str) for value in get(console, f"{at}/config", BASIC).values())
        tasks = get(console, f"{at}/tasks", BASIC)
        assert [task["id"] for task in tasks] == connector["tasks"]
        for number in (task["id"]["task"] for task in tasks):
            task = get(console, f"{at}/tasks/{number}/status", BASIC)
            assert (task["id"], task["state"] in states, "worker_id" in task) == (number, True, True)
        assert get(console, f"{at}/topics", BASIC)[name]["topics"] is not None
    assert {plugin["class"].rpartition(".")[2] for plugin in get(console, "/connector-plugins", BASIC)} == {
        "MirrorSourceConnector",
        "MirrorCheckpointConnector",
        "MirrorHeartbeatConnector",
    }


def test_requests_of_redpanda_console_are_answered(console: ServiceProcess) -> None:
    """As its service of Connect asks: all connectors at once, each with both parts."""
    expanded = get(console, "/connectors?expand=info&expand=status")
    assert list(expanded) == [SOURCE, HEARTBEAT]
    for name, connector in expanded.items():
        assert connector["info"]["name"] == connector["status"]["name"] == name
        assert connector["info"]["config"]["connector.class"].startswith("org.apache.kafka.connect.mirror.")
        assert {"id", "state", "worker_id"} <= connector["status"]["tasks"][0].keys()
    assert get(console, "/connectors?expand=status")[SOURCE].keys() == {"status"}


def redpanda_console(console: ServiceProcess, *arguments: str, user: str = "redpanda", password: str = TOKEN) -> Any:
    """Return what the client that the backend of Redpanda Console uses reads, or says."""
    program = build_program("redpanda_console", CONNECT_CLIENT)
    command = [str(program), console.address, user, password, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(ran.stdout)


@pytest.mark.skipif(find_go() is None, reason="there is no Go to build it with")
@pytest.mark.parametrize("user", ["redpanda", ""])
def test_client_of_redpanda_console_reads_everything_that_its_pages_show(console: ServiceProcess, user: str) -> None:
    read = redpanda_console(console, user=user)
    assert read["root"]["version"] == get(console, "/")["version"]
    assert {plugin["type"] for plugin in read["plugins"]} == {"source"}
    assert read["names"] == [SOURCE, HEARTBEAT]
    assert read["connectors"].keys() == read["details"].keys() == {SOURCE, HEARTBEAT}
    for name, expanded in read["connectors"].items():
        details = read["details"][name]
        assert expanded["info"] == details["info"] == get(console, f"/connectors/{quote(name)}")
        assert (expanded["status"]["name"], expanded["status"]["type"]) == (name, "source")
        assert expanded["status"]["connector"]["worker_id"] == "test"
        assert details["config"] == details["info"]["config"]
        assert details["config"]["connector.class"].endswith(name.partition(".")[2])
        assert details["topics"].keys() == {name}
    assert read["details"][HEARTBEAT]["topics"] == {HEARTBEAT: {"topics": ["heartbeats"]}}
    (task,) = read["connectors"][SOURCE]["status"]["tasks"]
    assert (task["id"], task["state"]) == (0, "UNASSIGNED")
    assert "no replica of it runs" in task["trace"]


@pytest.mark.skipif(find_go() is None, reason="there is no Go to build it with")
def test_client_of_redpanda_console_pauses_and_resumes_and_is_told_what_is_refused(console: ServiceProcess) -> None:
    for verb, state in (("pause", "PAUSED"), ("resume", "RUNNING")):
        assert redpanda_console(console, verb, HEARTBEAT) == {}
        wait_until(partial(is_in_state, console, state), within=20)
    assert redpanda_console(console, "restart", HEARTBEAT) == {}
    refused = {
        ("delete", HEARTBEAT): "change the file, and restart its services (405)",
        ("pause", "other"): "Unknown connector other (404)",
        ("read", "other"): "Connector other not found (404)",
    }
    for arguments, words in refused.items():
        assert words in redpanda_console(console, *arguments)["error"]
    assert "(401)" in redpanda_console(console, "read", HEARTBEAT, password="wrong")["error"]
    assert is_in_state(console, "RUNNING")


def test_request_with_a_slash_at_its_end_is_the_same(console: ServiceProcess) -> None:
    """As kafka_connect_api asks, which Kafka Connect Watcher is made of."""
    assert get(console, "/connectors/", BASIC) == [SOURCE, HEARTBEAT]
    assert get(console, f"{AT}/", BASIC)["name"] == SOURCE
    assert ask(console, "DELETE", f"{AT}/", BASIC)[0] == 405


def test_status_says_what_runs_and_what_does_not(console: ServiceProcess) -> None:
    status = get(console, f"{AT}/status")
    assert status["connector"] == {"state": "RUNNING", "worker_id": "test"}
    (task,) = status["tasks"]
    assert (task["state"], task["trace"]) == ("UNASSIGNED", "data-plane: no replica of it runs")


def test_offsets_are_those_of_the_rows(console: ServiceProcess) -> None:
    partition = {"cluster": f"s{MARK}", "partition": 0, "topic": f"{MARK}-orders"}
    assert get(console, f"{AT}/offsets") == {"offsets": [{"partition": partition, "offset": {"offset": 41}}]}


@pytest.mark.parametrize(
    ("method", "path", "code", "words"),
    [
        ("GET", "/connectors/other/status", 404, "No status found for connector other"),
        ("GET", "/connectors/other", 404, "Connector other not found"),
        ("GET", "{at}/tasks/7/status", 404, "No status found for task {name}-7"),
        ("GET", "{at}/nothing", 404, "there is no"),
        ("PUT", "/connectors/other/pause", 404, "Unknown connector other"),
        ("DELETE", "{at}", 405, "change the file"),
        ("POST", "/connectors", 405, "change the file"),
        ("PATCH", "{at}/offsets", 405, "lockstep offsets"),
        ("PUT", "{at}/config", 405, "change the file"),
        ("POST", "/connectors/other/restart", 404, "Unknown connector: other"),
        ("POST", "{at}/tasks/7/restart", 404, "Unknown task: {name}-7"),
        ("PUT", "{at}/restart", 405, "takes POST"),
        ("PATCH", "{at}/tasks/0/restart", 405, "takes POST"),
        ("DELETE", "{at}/stop", 405, "takes PUT"),
        ("DELETE", "{at}/nothing", 404, "there is no"),
    ],
)
def test_other_requests_are_refused_as_connect_does(
    console: ServiceProcess, method: str, path: str, code: int, words: str
) -> None:
    status, text, _ = ask(console, method, path.format(at=AT), BEARER)
    body = json.loads(text)
    assert (status, body["error_code"]) == (code, code)
    assert words.format(name=SOURCE) in body["message"]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic ???"}, {**BEARER, "Origin": "http://x"}]
)
def test_pause_without_the_token_or_from_another_site_does_nothing(
    console: ServiceProcess, headers: dict[str, str]
) -> None:
    status, text, _ = ask(console, "PUT", f"{HEARTBEAT_AT}/pause", headers)
    assert status in (401, 403)
    assert json.loads(text).keys() == {"error_code", "message"}
    assert get(console, f"{HEARTBEAT_AT}/status")["connector"]["state"] == "RUNNING"


def is_in_state(console: ServiceProcess, state: str) -> bool:
    return bool(get(console, f"{HEARTBEAT_AT}/status")["connector"]["state"] == state)


def test_pause_resume_and_stop_are_commands_of_who_asked(console: ServiceProcess, flow: OwnFlow) -> None:
    earlier = len(events(flow.target, flow.flow, "Paused", "Stopped", "Resumed"))
    for verb, state in (("pause", "PAUSED"), ("stop", "STOPPED"), ("resume", "RUNNING")):
        status, text, _ = ask(console, "PUT", f"{HEARTBEAT_AT}/{verb}", BEARER)
        assert (status, text) == (202, ""), verb
        wait_until(partial(is_in_state, console, state), within=20)
    answered = events(flow.target, flow.flow, "Paused", "Stopped", "Resumed")[earlier:]
    assert [event.kind for event in answered] == ["Paused", "Stopped", "Resumed"]
    assert {event.detail["by"] for event in answered} == {"console token"}


def test_restarts_answer_as_those_of_connect(console: ServiceProcess, flow: OwnFlow) -> None:
    earlier = len(events(flow.target, flow.flow, "Restarted"))
    assert ask(console, "POST", f"{HEARTBEAT_AT}/restart", BEARER)[:2] == (204, "")
    assert ask(console, "POST", f"{HEARTBEAT_AT}/tasks/0/restart", BASIC)[:2] == (204, "")
    status, text, _ = ask(console, "POST", f"{HEARTBEAT_AT}/restart?includeTasks=true&onlyFailed=false", BEARER)
    assert (status, json.loads(text)["name"]) == (202, HEARTBEAT)
    status, text, _ = ask(console, "POST", f"{HEARTBEAT_AT}/restart?includeTasks=true&onlyFailed=true", BEARER)
    assert (status, json.loads(text)["connector"]["state"]) == (202, "RUNNING")
    assert ask(console, "POST", f"{HEARTBEAT_AT}/restart", {})[0] in (401, 403)
    restarts = [
        event for event in events(flow.target, flow.flow, "Restarted")[earlier:] if event.service == "heartbeat"
    ]
    assert len(restarts) == 3, "nothing had failed, and nobody else may ask"


def test_connectors_of_a_flow_that_cannot_be_read_say_why(flow: OwnFlow, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(flow.file.read_text().replace(flow.target, "127.0.0.1:1"))
    with ServiceProcess("lockstep_console", file, str(flow.flow)) as console:
        console.wait_ready()
        expanded = get(console, "/connectors?expand=status&expand=info", {})
        state = expanded[SOURCE]["status"]["connector"]
        assert (state["state"], state["worker_id"]) == ("UNASSIGNED", "")
        assert "cannot be reached" in state["trace"]
        status, text, _ = ask(console, "GET", f"{AT}/offsets")
        assert (status, "cannot be reached" in json.loads(text)["message"]) == (500, True)
