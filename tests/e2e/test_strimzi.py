"""A Strimzi resource, as `kubectl get -o yaml` prints it, run by `lockstep run`: it copies, and what it states of its
connectors counts more than commands."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, read_topic, topic_names, unique_name
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.runs import LockstepRun
from tests.support.topic_comparison import compare

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
WITHIN = 240.0

RESOURCE = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields: [{{manager: kubectl}}]
  name: my-mirror-maker2
  namespace: kafka
spec:
  version: 4.2.0
  replicas: 1
  connectCluster: {target}
  clusters:
  - alias: {source}
    bootstrapServers: {a}
  - alias: {target}
    bootstrapServers: {b}
    config:
      group.id: {target}-group
      offset.storage.topic: {target}-offsets
      config.storage.topic: {target}-configs
      status.storage.topic: {target}-status
      offset.storage.replication.factor: 1
  mirrors:
  - sourceCluster: {source}
    targetCluster: {target}
    topicsPattern: {topic}
    sourceConnector:
      tasksMax: 1
      {state}
      config:
        replication.factor: 1
        offset-syncs.topic.replication.factor: 1
        lockstep.control.replication.factor: 1
        {config}
    heartbeatConnector:
      state: stopped
      config:
        heartbeats.topic.replication.factor: 1
status:
  conditions: [{{status: "True", type: Ready}}]
"""


@pytest.fixture
def start() -> Iterator[Callable[[Path], LockstepRun]]:
    runs: list[LockstepRun] = []

    def begin(file: Path) -> LockstepRun:
        runs.append(LockstepRun(file))
        return runs[-1]

    yield begin
    for run in runs:
        run.kill()


def numbered(first: int, count: int) -> list[Record]:
    return [Record(value=b"%d" % number, partition=0) for number in range(first, first + count)]


def test_a_resource_copies_and_its_states_beat_commands(
    pair: Pair, tmp_path: Path, start: Callable[[Path], LockstepRun]
) -> None:
    source, target, topic = unique_name("src"), unique_name("dst"), unique_name("strimzi")
    file = tmp_path / "resource.yaml"

    def written(state: str = "") -> str:
        file.write_text(
            RESOURCE.format(
                source=source,
                target=target,
                a=pair.a.bootstrap,
                b=pair.b.bootstrap,
                topic=topic,
                state=state,
                config="",
            )
        )
        return file.read_text()

    def has_copied(count: int) -> bool:
        return len(read_topic(pair.b.bootstrap, f"{source}.{topic}")) == count

    create_topic(pair.a.bootstrap, topic)
    produce(pair.a.bootstrap, topic, numbered(0, 100))
    written()
    run = start(file)
    run.until_said_by("topic-sync", "topic created", within=WITHIN)
    refused = lockstep("resume", file, "connector:MirrorHeartbeatConnector", "--timeout", "100", code=1)
    assert "spec.mirrors[0].heartbeatConnector.state" in refused
    assert "the file says so, which no command changes" in refused
    assert "MirrorHeartbeatConnector is stopped" in lockstep("status", file)
    wait_until(lambda: has_copied(100), within=WITHIN, every=0.5, what="100 records are copied")
    os.kill(run.process.pid, signal.SIGTERM)
    assert run.process.wait(60) == 0

    line = next(n for n, text in enumerate(written("state: paused").splitlines(), 1) if "state: paused" in text)
    produce(pair.a.bootstrap, topic, numbered(100, 50))
    run = start(file)
    run.until_said_by("run", "ready: data-plane, topic-sync", within=WITHIN)
    refused = lockstep("resume", file, "connector:MirrorSourceConnector", "--timeout", "100", code=1)
    assert f"{file}:{line}: spec.mirrors[0].sourceConnector.state" in refused
    time.sleep(4)  # that nothing happens takes its time to be seen: longer than a slot takes to start
    assert has_copied(100), "it rests although nobody paused it"
    os.kill(run.process.pid, signal.SIGTERM)
    assert run.process.wait(60) == 0

    written("state: running")
    start(file)
    wait_until(lambda: has_copied(150), within=WITHIN, every=0.5, what="the other 50 records are copied")
    copied = compare(read_topic(pair.a.bootstrap, topic), read_topic(pair.b.bootstrap, f"{source}.{topic}"))
    assert copied.equal, copied.first_difference


def test_regex_router_of_a_resource_renames_topics(
    pair: Pair, tmp_path: Path, start: Callable[[Path], LockstepRun]
) -> None:
    """Under the default policy it gets the prefixed name, as in MirrorMaker 2."""
    source, target, topic = unique_name("src"), unique_name("dst"), unique_name("strimzi")
    file, copy = tmp_path / "resource.yaml", f"routed.{topic}"
    router = {
        "transforms": "router",
        "transforms.router.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.router.regex": rf"{source}\.(strimzi.*)",
        "transforms.router.replacement": "routed.$1",
    }
    config = "\n        ".join(f"{key}: '{value}'" for key, value in router.items())
    addresses = {"a": pair.a.bootstrap, "b": pair.b.bootstrap}
    file.write_text(RESOURCE.format(source=source, target=target, topic=topic, state="", config=config, **addresses))
    create_topic(pair.a.bootstrap, topic)
    produce(pair.a.bootstrap, topic, numbered(0, 100))
    start(file)

    def is_copied() -> bool:
        if copy not in topic_names(pair.b.bootstrap):
            return False
        return compare(read_topic(pair.a.bootstrap, topic), read_topic(pair.b.bootstrap, copy)).equal

    wait_until(is_copied, within=WITHIN, every=0.5, what=f"{topic} is copied to {copy}")
    assert f"{source}.{topic}" not in topic_names(pair.b.bootstrap)
