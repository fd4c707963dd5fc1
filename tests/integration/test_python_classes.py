"""A filter and a replication policy of the file's own, in every process that asks them: topic-sync, the data plane's
driver and Spark's workers, the checkpoint service, and the client."""

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from lockstep_client import CheckpointsTopicMissing, ReplicationPolicy, translate_offsets
from lockstep_state.names import Flow
from tests.support.broker import Broker
from tests.support.clusters import Record, commit_offset, create_topic, produce, topic_names
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess

MODULE = "lockstep_example_rules"
TEXT = """
from lockstep_rules.policy import ReplicationPolicy


class Suffixed(ReplicationPolicy):
    def format_remote_topic(self, source_alias, topic):
        return f"{topic}-from-{source_alias}"

    def topic_source(self, topic):
        name, found, alias = topic.rpartition("-from-")
        return alias if found and name else None

    def upstream_topic(self, topic):
        return topic.rpartition("-from-")[0] if self.topic_source(topic) else None


class Ending:
    own_keys = ("example.ending",)

    def configure(self, properties):
        self.begin, self.end = properties["topics"].rstrip(".*"), properties["example.ending"]

    def should_replicate_topic(self, topic):
        return topic.startswith(self.begin) and topic.endswith(self.end)
"""


class Suffixing(MirroredFlow):
    def remote(self, topic: str) -> str:
        return f"{topic}-from-{self.flow.source}"


@pytest.fixture
def mirror(
    broker_a: Broker, broker_b: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Mirror, str]]:
    (tmp_path / f"{MODULE}.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    mark = f"own{uuid.uuid4().hex[:6]}"
    made = Mirror.one_flow(
        tmp_path,
        mark,
        (broker_a.bootstrap, broker_a.bootstrap),
        (broker_b.bootstrap, broker_b.bootstrap),
        "topic.filter.class = com.example.Ending",
        f"lockstep.topic.filter.class = {MODULE}:Ending",
        f"lockstep.replication.policy.class = {MODULE}:Suffixed",
        "example.ending = orders",
        "checkpoints.topic.replication.factor = 1",
        "emit.checkpoints.interval.seconds = 1",
    )
    flow = Flow(f"s{mark}", f"t{mark}")
    suffixing = Suffixing(flow, broker_a.bootstrap, broker_b.bootstrap)
    with Mirror(made.config, [suffixing]) as running:
        yield running, mark


def translated(target: Broker, source: str, group: str, policy: ReplicationPolicy) -> list[TopicPartition]:
    """Nothing before the checkpoint service has made its topic."""
    try:
        return translate_offsets({"bootstrap.servers": target.bootstrap}, source, group, policy=policy)
    except CheckpointsTopicMissing:
        return []


@pytest.mark.long
def test_python_classes_decide_in_every_process(
    mirror: tuple[Mirror, str], broker_a: Broker, broker_b: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running, mark = mirror
    wanted, other = f"{mark}-orders", f"{mark}-payments"
    for topic in (wanted, other):
        create_topic(broker_a.bootstrap, topic)
        produce(broker_a.bootstrap, topic, [Record(None, f"{n}".encode()) for n in range(100)])
    copy = running.flow.wait_copied(wanted)
    assert len(copy) == 100
    there = topic_names(broker_b.bootstrap)
    assert f"{wanted}-from-s{mark}" in there
    assert not [topic for topic in there if topic.startswith(other) or topic.endswith(f".{wanted}")]

    group = f"{mark}-billing"
    commit_offset(broker_a.bootstrap, group, wanted, 0, 40)
    monkeypatch.syspath_prepend(str(tmp_path))
    policy = __import__(MODULE).Suffixed()
    try:
        with ServiceProcess("lockstep_checkpoint", running.config, str(running.flow)).start() as checkpoint:
            checkpoint.wait_ready()
            topics = wait_until(
                lambda: translated(broker_b, f"s{mark}", group, policy), within=60, every=0.5, what="a checkpoint"
            )
    finally:
        sys.modules.pop(MODULE, None)
    assert [(topic.topic, topic.partition, topic.offset) for topic in topics] == [(f"{wanted}-from-s{mark}", 0, 40)]
