"""The commands as somebody types them, against real clusters."""

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep_state.names import Flow, events_topic
from tests.conftest import Pair
from tests.support.clusters import Record, produce
from tests.support.commands import lockstep
from tests.support.services import ServiceProcess, two_cluster_file

MARK = uuid.uuid4().hex[:6]
FLOW = f"s{MARK}->t{MARK}"
HEARTBEAT = "connector:MirrorHeartbeatConnector"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Path:
    """A flow of which only heartbeats run, so far."""
    source, _, target = FLOW.partition("->")
    folder = tmp_path_factory.mktemp("commands")
    return two_cluster_file(
        folder, (source, pair.a.bootstrap), (target, pair.b.bootstrap), f"{FLOW}.enabled = true", "topics = none"
    )


@pytest.fixture(scope="module")
def heartbeat(file: Path) -> Iterator[ServiceProcess]:
    with ServiceProcess("lockstep_heartbeat", file, FLOW) as process:
        process.hear("leading", flow=FLOW)
        yield process


def lockstep_json(*arguments: str, code: int = 0) -> Any:
    return json.loads(lockstep(*arguments, "--output", "json", code=code))


def test_pause_and_resume_of_a_connector_are_confirmed(file: Path, heartbeat: ServiceProcess) -> None:
    (flow,) = lockstep_json("pause", str(file), HEARTBEAT)["flows"]
    (answer,) = flow["answers"]
    assert (answer["service"], answer["kind"], answer["detail"]["wanted"]) == ("heartbeat", "Paused", "paused")
    assert heartbeat.hear("not running", flow=FLOW)
    said = lockstep("refresh", str(file), HEARTBEAT, code=1)
    assert "refused: the MirrorHeartbeatConnector is paused: resume it" in said
    said = lockstep("resume", str(file), HEARTBEAT, "--wait")
    assert f"{HEARTBEAT} is to be running" in said
    assert f"{FLOW}  {HEARTBEAT} is running" in said


def test_command_names_a_service_that_does_not_run(file: Path, heartbeat: ServiceProcess) -> None:
    said = lockstep("refresh", str(file), "--timeout", "1", code=3)
    assert f"{FLOW}  heartbeat: refreshed" in said
    assert f"{FLOW}  topic-sync: no answer to refresh. No replica of it runs for this flow: start it." in said


def test_status_names_services_with_and_without_replicas(file: Path, heartbeat: ServiceProcess) -> None:
    (flow,) = lockstep_json("status", str(file), "--flow", FLOW, code=1)["flows"]
    replicas = {line["service"]: line["replicas"] for line in flow["services"]}
    assert (replicas["heartbeat"], replicas["topic-sync"]) == (1, 0)
    assert {"what": "topic-sync", "why": "no replica of it runs", "code": "no-replica"} in flow["troubles"]
    said = lockstep("status", str(file), "--flow", FLOW, code=1)
    # Another module's flow may beat to the source: its heartbeats topic is then selected and not begun.
    assert f"{FLOW}  0 topics" in said
    assert "behind: 4 troubles" in said
    assert "data-plane: no replica of it runs" in said


def test_watch_shows_what_there_is_decoded_whatever_it_is(file: Path, heartbeat: ServiceProcess, pair: Pair) -> None:
    produce(pair.b.bootstrap, events_topic(Flow.parse(FLOW)), [Record(key=b"k", value=b"rubbish")])
    topics = ("--topic", "events", "--topic", "state", "--topic", "heartbeats", "--topic", "checkpoints")
    said = lockstep(
        "watch", str(file), "--flow", FLOW, "--from", "beginning", "--no-follow", "--output", "json", *topics
    )
    *lines, awaited = sorted(said.splitlines(), key=lambda line: not line.startswith("{"))
    assert awaited.startswith("watching heartbeats, ")
    assert "has no topic s" in awaited, awaited
    seen = [json.loads(line) for line in lines]
    assert {one["role"] for one in seen} == {"events", "state", "heartbeats"}
    assert all(one["about"] == FLOW for one in seen if one["kind"] == "heartbeat")
    assert any(one["kind"] == "leader" and one["about"] == "heartbeat" for one in seen)
    (rubbish,) = (one for one in seen if one["kind"] == "undecoded")
    assert bytes.fromhex(rubbish["detail"]["value"]) == b"rubbish"


def test_watch_runs_until_an_interrupt_and_ends_cleanly(file: Path, heartbeat: ServiceProcess) -> None:
    arguments = ["watch", str(file), "--flow", FLOW, "--topic", "heartbeats"]
    with subprocess.Popen(
        [sys.executable, "-m", "lockstep_cli", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert FLOW in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=20)
    assert (running.returncode, complaints) == (0, "watching heartbeats; Ctrl-C ends it\n")


def test_command_names_a_flow_that_never_ran_and_an_unreachable_cluster(
    file: Path, heartbeat: ServiceProcess, tmp_path: Path
) -> None:
    text = file.read_text()
    never = tmp_path / "never.properties"
    never.write_text(text.replace(f"s{MARK}", f"n{MARK}"))
    assert "the flow has never run" in lockstep("pause", str(never), code=3)
    assert "the flow has never run" in lockstep("status", str(never), code=3)
    gone = tmp_path / "gone.properties"
    gone.write_text(text + f"t{MARK}.bootstrap.servers = 127.0.0.1:1\n")
    assert "127.0.0.1:1 cannot be reached" in lockstep("pause", str(gone), "--timeout", "1", code=3)
    assert "127.0.0.1:1 cannot be reached" in lockstep("status", str(gone), "--timeout", "1", code=3)


def test_probe_reaches_both_clusters_and_sees_a_heartbeat(file: Path, heartbeat: ServiceProcess, pair: Pair) -> None:
    printed = lockstep_json("probe", str(file), "--flow", FLOW)
    assert printed["success"] is True
    checks = [check for category in printed["categories"] for check in category["checks"]]
    source, _, target = FLOW.partition("->")
    good = [(check["code"], check["subject"]) for check in checks if check["result"] == "ok"]
    wanted = [("LD601", source), ("LD601", target), ("LD605", FLOW), ("LD701", FLOW), ("LD701", FLOW), ("LD901", FLOW)]
    assert [command for command in good if command in wanted] == wanted
    said = lockstep("probe", str(file), "--canary-topic", "unmirrored", code=1)
    assert f"✗ LD902 {FLOW}: canary: {FLOW} does not mirror unmirrored" in said


def test_probe_names_an_unreachable_cluster_and_missing_heartbeats(
    file: Path, heartbeat: ServiceProcess, tmp_path: Path
) -> None:
    text, target = file.read_text(), FLOW.partition("->")[2]
    gone = tmp_path / "gone.properties"
    gone.write_text(text + f"t{MARK}.bootstrap.servers = 127.0.0.1:1\n")
    said = lockstep("probe", str(gone), "--timeout", "1", code=3)
    assert f"✗ LD301 {target}: port of each address: 127.0.0.1:1: 127.0.0.1: connection refused" in said
    silent = tmp_path / "silent.properties"
    silent.write_text(text.replace(f"s{MARK}", f"n{MARK}"))
    said = lockstep("probe", str(silent), "--timeout", "5", code=1)
    assert f"✗ LD901 n{FLOW.removeprefix('s')}: heartbeat: none came within " in said
    assert " s: does the service heartbeat run?" in said
