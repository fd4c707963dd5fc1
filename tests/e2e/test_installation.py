"""Lockstep from a release, in an empty environment, by the lines of the page: without Spark, and everything.

Not long, though it takes more than 3 seconds: a package that lacks a file or a requirement is found before it lands.
"""

import json
import shutil
import signal
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.installation import Installation, build_release, uv
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
COMMON = ("state", "rules", "config", "kafka", "runtime", "ops", "cli", "console")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_release(tmp_path_factory.mktemp("release"))


def packages(*names: str) -> list[str]:
    return [f"lockstep_{name}" for name in names]


def test_command_client_and_control_services_install_without_spark(release: Path, tmp_path: Path) -> None:
    place = Installation(tmp_path, release)
    file = tmp_path / "mm2.properties"
    file.write_text(FLOW.format(a="127.0.0.1:1", b="127.0.0.1:2", topic="orders"))
    python, lockstep = place.program("python"), place.program("lockstep")
    place.run(uv(), "venv", "--quiet", tmp_path / "lockstep")

    place.run(*place.install_line("command", "uv"))
    assert "run" in place.run(lockstep, "--help")
    assert place.run(lockstep, "config", "check", file).endswith("can be used: A->B enabled\n")
    versions = json.loads(place.run(lockstep, "version", "--output", "json"))
    assert versions["spark"] is None
    refused = place.run(lockstep, "run", file, code=2)
    assert refused == (
        f"{file} needs data-plane, topic-sync, acl-sync, checkpoint, heartbeat, which this Python does not have: "
        "install lockstep-kafka[all] from the requirements file of a release\n"
    )
    assert place.modules_that_lack(python, packages(*COMMON)) == {}

    place.run(*place.install_line("client", "uv"))
    place.run(*place.install_line("control", "uv"))
    assert place.modules_that_lack(python, packages(*CONTROL, "client")) == {}
    for service in CONTROL:
        assert "--config" in place.run(place.program(f"lockstep-{service.replace('_', '-')}"), "--help")
    assert "needs data-plane, which" in place.run(lockstep, "run", file, code=2)
    place.run(python, "-c", "import pyspark", code=1)


@pytest.mark.long
def test_pip_installs_the_client_and_refuses_another_file_of_its_name(release: Path, tmp_path: Path) -> None:
    place = Installation(tmp_path, release)
    place.run(sys.executable, "-m", "venv", tmp_path / "lockstep")
    line = place.install_line("client", "lockstep/bin/pip")
    place.run(*line)
    assert place.modules_that_lack(place.program("python"), packages("client")) == {}

    forged = tmp_path / "forged"
    shutil.copytree(release, forged)
    (wheel,) = forged.glob("lockstep_kafka_client-*.whl")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("lockstep_client/other.py", "")
    (forged / wheel.name.replace("-", "-1!", 1)).write_bytes(wheel.read_bytes())  # and one of a higher version
    for source in forged.glob("lockstep_kafka_client-*.tar.gz"):
        source.unlink()
    place.run(place.program("python"), "-m", "pip", "uninstall", "--yes", "lockstep-kafka-client")
    said = place.run(*(word.replace(str(release), str(forged)) for word in line), code=1)
    assert "DO NOT MATCH THE HASHES" in said
    place.run(place.program("python"), "-c", "import lockstep_client", code=1)


def test_one_line_installs_what_runs_everything(pair: Pair, release: Path, tmp_path: Path) -> None:
    place = Installation(tmp_path, release)
    place.run(uv(), "venv", "--quiet", tmp_path / "lockstep")
    place.run(*place.install_line("all", "uv"))
    lacking = place.modules_that_lack(place.program("python"), packages(*COMMON, *CONTROL, "client", "data_plane"))
    assert lacking == {}

    topic = create_topic(pair.a.bootstrap, unique_name("installed"))
    produce(pair.a.bootstrap, topic, [Record(value=b"%d" % number) for number in range(100)])
    file = tmp_path / "mm2.properties"
    file.write_text(FLOW.format(a=pair.a.bootstrap, b=pair.b.bootstrap, topic=topic))
    run = Run([str(place.program("lockstep")), "run", str(file)], tmp_path / "run.log", place.environment)
    try:
        run.until_said("ready: data-plane, topic-sync, acl-sync, checkpoint, heartbeat", within=60)
        wait_until(lambda: len(read_topic(pair.b.bootstrap, f"A.{topic}")) == 100, within=60, what="100 records on B")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(15) == 0, run.text()
    finally:
        run.kill()
