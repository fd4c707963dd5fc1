"""Lockstep from its wheels, in an empty environment: without Spark, and as one line that runs everything.

Not long, though it takes more than 3 seconds: a package that lacks a file or a requirement is found before it lands.
"""

import json
import signal
from pathlib import Path

import pytest

from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.installation import Installation, build_wheels, uv
from tests.support.runs import Run

FLOW = """
clusters = A, B
A.bootstrap.servers = {a}
B.bootstrap.servers = {b}
A->B.enabled = true
A->B.topics = {topic}
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
"""
CONTROL = ("topic_sync", "acl_sync", "checkpoint", "heartbeat")
COMMON = ("protocol", "config", "runtime", "cli")
WITH_AN_EXTRA = {
    "lockstep_runtime.telemetry.spans": "opentelemetry",
    "lockstep_config.clients.iam_signer": "botocore",
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


def packages(*names: str) -> list[str]:
    return [f"lockstep_{name}" for name in names]


def test_command_client_and_control_services_install_without_spark(wheels: Path, tmp_path: Path) -> None:
    place = Installation(tmp_path, wheels)
    file = tmp_path / "mm2.properties"
    file.write_text(FLOW.format(a="127.0.0.1:1", b="127.0.0.1:2", topic="orders"))
    python, lockstep = tmp_path / "env" / "bin" / "python", tmp_path / "env" / "bin" / "lockstep"
    place.run(uv(), "venv", "--quiet", tmp_path / "env")
    install = (uv(), "pip", "install", "--quiet", "--python", python)

    place.run(*install, "lockstep")
    assert "run" in place.run(lockstep, "--help")
    assert place.run(lockstep, "config", "check", file).endswith("can be used: A->B enabled\n")
    versions = json.loads(place.run(lockstep, "version", "--output", "json"))
    assert versions["spark"] is None
    refused = place.run(lockstep, "run", file, code=2)
    assert refused == (
        f"{file} needs data-plane, topic-sync, acl-sync, checkpoint, heartbeat, which this Python does not have: "
        "install lockstep-kafka[all] in place of lockstep-kafka\n"
    )
    assert place.modules_that_lack(python, packages(*COMMON)) == WITH_AN_EXTRA

    place.run(*install, "lockstep[control]", "lockstep-client")
    assert place.modules_that_lack(python, packages(*CONTROL, "client")) == {}
    for service in CONTROL:
        name = f"lockstep-{service.replace('_', '-')}"
        assert "--config" in place.run(tmp_path / "env" / "bin" / name, "--help")
    assert "needs data-plane, which" in place.run(lockstep, "run", file, code=2)
    place.run(python, "-c", "import pyspark", code=1)


def test_one_line_runs_everything_from_wheels(pair: Pair, wheels: Path, tmp_path: Path) -> None:
    place = Installation(tmp_path, wheels)
    place.run(uv(), "tool", "install", "--quiet", "lockstep[all]")
    assert [one.name for one in (tmp_path / "bin").iterdir()] == ["lockstep"]
    python = tmp_path / "tools" / "lockstep" / "bin" / "python"
    assert place.modules_that_lack(python, packages(*COMMON, *CONTROL, "client", "data_plane")) == {}

    topic = create_topic(pair.a.bootstrap, unique_name("installed"))
    produce(pair.a.bootstrap, topic, [Record(value=b"%d" % number) for number in range(100)])
    file = tmp_path / "mm2.properties"
    file.write_text(FLOW.format(a=pair.a.bootstrap, b=pair.b.bootstrap, topic=topic))
    line = [uv(), "tool", "run", "--from", "lockstep[all]", "lockstep", "run", str(file)]  # uvx --from ...
    run = Run(line, tmp_path / "run.log", place.environment)
    try:
        run.until_said("ready: data-plane, topic-sync, acl-sync, checkpoint, heartbeat", within=60)
        wait_until(lambda: len(read_topic(pair.b.bootstrap, f"A.{topic}")) == 100, within=60, what="100 records on B")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(15) == 0, run.text()
    finally:
        run.kill()
