"""`lockstep doctor` on real clusters: a healthy pair, and one thing wrong at a time."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_config.credentials.permissions import Grant, source_grants, target_grants
from lockstep_ops.doctor.checks.scratch_topic import PREFIX
from lockstep_state.names import Flow
from tests.conftest import GuardedPair, Pair
from tests.support.broker import Broker
from tests.support.broker_pairs import KINDS
from tests.support.clusters import Record, admin, create_topic, produce
from tests.support.commands import lockstep
from tests.support.doctor_runs import run_doctor
from tests.support.eventually import wait_until
from tests.support.guarded import USERS, without
from tests.support.mirror_permissions import settings_of, written
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.shifted_clock import ShiftedClock, can_shift
from tests.support.wire import set_quota

MARK = uuid.uuid4().hex[:6]
A, B = f"a{MARK}", f"b{MARK}"
FLOW = f"{A}->{B}"
TOPIC = f"doctor-{MARK}"
LINES = (
    f"{FLOW}.enabled = true",
    f"topics = doctor-{MARK}.*",
    "checkpoints.topic.replication.factor = 1",
    "offset-syncs.topic.replication.factor = 1",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Path:
    """A flow that is well; nothing of it runs."""
    create_topic(pair.a.bootstrap, TOPIC)
    return two_cluster_file(tmp_path_factory.mktemp("doctor"), (A, pair.a.bootstrap), (B, pair.b.bootstrap), *LINES)


@pytest.fixture(scope="module")
def odd() -> Iterator[Broker]:
    """A target whose limits are unlike those of a source."""
    properties = {
        "message.max.bytes": "100000",
        "unclean.leader.election.enable": "true",
        "log.message.timestamp.type": "LogAppendTime",
    }
    with Broker("odd", properties=properties) as broker:
        yield broker


def changed(file: Path, folder: Path, *lines: str) -> Path:
    """The same file with these lines at its end, where they count."""
    path = folder / "changed.properties"
    path.write_text("\n".join([file.read_text(), *lines, ""]))
    return path


def scratch_topics(broker: Broker) -> list[str]:
    return [name for name in admin(broker.bootstrap).list_topics(timeout=10).topics if name.startswith(PREFIX)]


def test_healthy_pair_is_ok_in_every_line(file: Path) -> None:
    run = run_doctor(file)
    assert run.not_ok() == {}
    assert list(run.results(A)) == [
        "LD201",
        "LD301",
        "LD302",
        "LD402",
        "LD501",
        "LD504",
        "LD601",
        "LD602",
        "LD603",
        "LD604",
        "LD651",
        "LD652",
    ]
    assert run.results(A) == run.results(B)
    assert list(run.results(FLOW)) == [
        "LD605",
        "LD701",
        "LD801",
        "LD802",
        "LD803",
        "LD804",
        "LD805",
        "LD806",
        "LD807",
        "LD808",
        "LD901",
    ]
    assert run.one("LD901", FLOW)["detail"] == "no replica of the service heartbeat runs"
    assert run.one("LD603", A)["detail"].startswith("controller 1 ")


def test_lines_for_people_have_marks_codes_and_a_verdict(file: Path) -> None:
    said = lockstep("doctor", file, "--category", "connection", "--category", "cluster").splitlines()
    assert said[0] == "connection"
    assert said[1].startswith(f"✓ LD301 {A}: port of each address: 127.0.0.1:")
    assert said[-1].endswith(" ok: no issues found")


@pytest.mark.long
def test_heartbeat_is_awaited_where_the_service_runs(file: Path) -> None:
    with ServiceProcess("lockstep_heartbeat", file, FLOW) as process:
        process.hear("leading", flow=FLOW)
        run = run_doctor(file, "--category", "flow")
    assert run.one("LD901", FLOW)["result"] == "ok"
    assert run.one("LD901", FLOW)["detail"].startswith("came after ")


def test_wrong_port_stops_its_cluster_and_not_the_other(file: Path, tmp_path: Path) -> None:
    run = run_doctor(changed(file, tmp_path, f"{B}.bootstrap.servers = 127.0.0.1:1"), code=1)
    assert run.one("LD301", B)["detail"] == "127.0.0.1:1: 127.0.0.1: connection refused"
    assert run.results(B)["LD601"] == "unknown"
    assert run.one("LD701", FLOW)["detail"] == f"not checked, because LD301 (port of each address) failed for {B}"
    assert set(run.results(A).values()) <= {"ok", "skipped"}


def test_name_that_does_not_resolve_is_named(file: Path, tmp_path: Path) -> None:
    broken = changed(file, tmp_path, f"{B}.bootstrap.servers = nowhere.invalid:9092")
    run = run_doctor(broken, code=1)
    assert run.one("LD201", B)["detail"].startswith("nowhere.invalid cannot be resolved: ")
    assert run.results(B)["LD301"] == "unknown"
    assert run.results(A)["LD601"] == "ok"
    names = run_doctor(broken, "--category", "names", code=1)
    assert {one["code"] for one in names.findings} == {"LD201"}
    limits = run_doctor(broken, "--category", "limits", code=4)  # what stopped them is not shown
    assert set(limits.results(FLOW).values()) == {"unknown"}


def test_one_bootstrap_server_of_two_that_is_away_is_a_warning(file: Path, tmp_path: Path, pair: Pair) -> None:
    line = f"{B}.bootstrap.servers = nowhere.invalid:9092, 127.0.0.1:1, {pair.b.bootstrap}"
    run = run_doctor(changed(file, tmp_path, line), "--category", "names", "--category", "connection")
    assert run.one("LD201", B, "nowhere.invalid")["result"] == "warning"
    assert run.one("LD301", B, "127.0.0.1:1:")["result"] == "warning"
    assert run.one("LD302", B)["result"] == "ok"


def test_client_with_settings_of_its_own_is_checked_apart(file: Path, tmp_path: Path) -> None:
    run = run_doctor(changed(file, tmp_path, f"{A}.consumer.bootstrap.servers = 127.0.0.1:1"), code=1)
    other = f"{A} (consumer)"
    assert run.one("LD301", other)["detail"] == "127.0.0.1:1: 127.0.0.1: connection refused"
    assert run.results(other)["LD601"] == "unknown"
    assert set(run.results(A).values()) <= {"ok", "skipped"}
    assert run.one("LD701", FLOW, A)["result"] == "ok"


def test_client_that_is_led_to_another_cluster_fails(file: Path, tmp_path: Path, pair: Pair) -> None:
    run = run_doctor(changed(file, tmp_path, f"{A}.consumer.bootstrap.servers = {pair.b.bootstrap}"), code=1)
    assert run.not_ok() == {("LD601", f"{A} (consumer)"): "failed"}
    assert run.one("LD601", f"{A} (consumer)")["detail"].startswith("leads to cluster ")


def test_one_cluster_under_two_aliases_fails(file: Path, tmp_path: Path, pair: Pair) -> None:
    run = run_doctor(changed(file, tmp_path, f"{B}.bootstrap.servers = {pair.a.bootstrap}"), code=1)
    assert run.not_ok() == {("LD605", FLOW): "failed"}


def test_limits_of_an_odd_target_are_warnings(file: Path, tmp_path: Path, odd: Broker) -> None:
    lines = (
        f"{B}.bootstrap.servers = {odd.bootstrap}",
        "replication.factor = 3",
        f"{B}.producer.max.request.size = 200000",
    )
    set_quota(odd.bootstrap, f"{FLOW}|MirrorSourceConnector|replication-producer-0", producer_byte_rate=1000.0)
    run = run_doctor(changed(file, tmp_path, *lines), "--category", "limits")
    limits = dict.fromkeys(["LD801", "LD802", "LD803", "LD804", "LD805", "LD806"], "warning")
    assert run.results(FLOW) == {**limits, "LD807": "ok", "LD808": "ok"}
    assert "takes 97.7 KiB" in run.one("LD801", FLOW)["detail"]
    assert "replication.factor is 3" in run.one("LD803", FLOW, f"{B} has")["detail"]
    assert "producer_byte_rate of client id" in run.one("LD804", FLOW, f"writing to {B}")["detail"]


@pytest.mark.skipif(not can_shift(), reason="needs Linux and a C compiler")
def test_clock_of_this_machine_that_is_ahead_is_found(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ShiftedClock(tmp_path)
    clock.set(90)
    for key, value in clock.environment().items():
        monkeypatch.setenv(key, value)
    run = run_doctor(file, "--category", "cluster")
    assert run.one("LD603", B)["result"] == "warning"
    assert "controller 1 is 1.5 min behind this machine" in run.one("LD603", B)["detail"]


@pytest.mark.long
def test_broker_of_kafka_2_8_is_supported_and_its_clock_unknown(file: Path, tmp_path: Path) -> None:
    with KINDS["2.8"]() as old:
        path = changed(file, tmp_path, f"{B}.bootstrap.servers = {old.bootstrap}")
        run = run_doctor(path, "--category", "cluster", "--category", "limits", code=4)
        assert run.not_ok() == {("LD603", B): "unknown"}
        assert run.one("LD603", B)["detail"] == "B does not say its time: it does not know DescribeQuorum (Kafka 3.3)"
        measured = run_doctor(path, "--category", "cluster", "--category", "flow", "--bandwidth", "--timeout", "60")
    assert measured.results(B) == {"LD601": "ok", "LD602": "ok", "LD603": "skipped", "LD604": "ok", "LD907": "ok"}


# -- rights ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_missing_right_has_the_command_that_grants_it(tmp_path: Path, pair: GuardedPair) -> None:
    flow, user = Flow(f"c{MARK}", f"d{MARK}"), USERS[1]
    file = written(tmp_path, flow, user, pair.a.guarded, pair.b.guarded)
    settings = settings_of(file, flow)
    pair.a.grant(user, source_grants(settings))
    pair.b.grant(user, target_grants(settings))
    try:
        run = run_doctor(file, code=4)
        assert set(run.results(flow.source).values()) <= {"ok", "skipped"}
        assert run.one("LD603", flow.target)["result"] == "ok"  # ACL sync may describe the cluster
        unread = {code for code, result in run.results(str(flow)).items() if result == "unknown"}
        assert unread == {"LD801", "LD804", "LD805", "LD806"}
        assert "--operation DescribeConfigs --cluster" in run.one("LD806", str(flow), flow.target)["fix"]
        missing = Grant("cluster", "kafka-cluster", "Alter", "")
        with without(pair.b, user, missing):
            run = run_doctor(file, "--category", "rights", code=1)
        finding = run.one("LD701", str(flow), "lacks Alter")
        assert finding["detail"].startswith(f"{flow.target}: User:{user} lacks Alter on the cluster")
        assert finding["fix"].startswith(f"kafka-acls --bootstrap-server {pair.b.guarded} --add")
    finally:
        pair.a.revoke(user, source_grants(settings))
        pair.b.revoke(user, target_grants(settings))


# -- bandwidth ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_bandwidth_ends_in_a_rate_and_removes_its_topic(file: Path, pair: Pair) -> None:
    for _ in range(8):
        produce(pair.a.bootstrap, TOPIC, [Record(value=b"x" * 900_000) for _ in range(50)])
    run = run_doctor(file, "--bandwidth")
    assert {"LD903", "LD904", "LD905", "LD906"} <= run.results(FLOW).keys()
    rates = {code: result for code, result in run.results(FLOW).items() if code != "LD906"}
    assert set(rates.values()) <= {"ok", "skipped"}
    assert run.one("LD906", FLOW)["result"] in ("ok", "warning")  # this machine may be quicker than its slots
    assert run.one("LD907", B)["result"] == "ok"
    assert "expect " in run.one("LD906", FLOW)["detail"]
    assert " is enough" in run.one("LD906", FLOW)["detail"]
    assert scratch_topics(pair.b) == []
    assert scratch_topics(pair.a) == []


def begun(file: Path, pair: Pair) -> subprocess.Popen[str]:
    """A run with a scratch topic that is there."""
    command = [sys.executable, "-m", "lockstep_cli", "doctor", str(file), "--category", "flow", "--bandwidth"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: scratch_topics(pair.b), within=30, every=0.05, what="the scratch topic")
    return process


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_removes_the_scratch_topic(file: Path, pair: Pair, number: signal.Signals, code: int) -> None:
    process = begun(file, pair)
    process.send_signal(number)
    _, complaints = process.communicate(timeout=30)
    assert (process.returncode, complaints) == (code, "")
    wait_until(lambda: not scratch_topics(pair.b), what="the topic is gone")


@pytest.mark.long
def test_scratch_topic_of_a_killed_run_is_removed_by_the_next(file: Path, pair: Pair) -> None:
    process = begun(file, pair)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    (left,) = scratch_topics(pair.b)
    run = run_doctor(file, "--category", "flow", "--bandwidth")
    assert f"removed what a killed run left: {left}" in run.one("LD903", FLOW)["detail"]
    wait_until(lambda: not scratch_topics(pair.b), what="the topics are gone")


@pytest.mark.long
def test_bandwidth_without_its_rights_names_the_commands(tmp_path: Path, pair: GuardedPair) -> None:
    flow, user = Flow(f"e{MARK}", f"f{MARK}"), USERS[1]
    file = written(tmp_path, flow, user, pair.a.guarded, pair.b.guarded)
    settings = settings_of(file, flow)
    pair.a.grant(user, source_grants(settings))
    pair.b.grant(user, target_grants(settings))
    try:
        run = run_doctor(file, "--category", "flow", "--bandwidth", code=1)
    finally:
        pair.a.revoke(user, source_grants(settings))
        pair.b.revoke(user, target_grants(settings))
    finding = run.one("LD903", str(flow))
    assert finding["result"] == "failed"
    assert f"--operation Create --topic {PREFIX} --resource-pattern-type prefixed" in finding["fix"]
    assert scratch_topics(pair.b) == []
