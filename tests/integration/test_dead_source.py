"""A source that is dead for a while: no service says that it is there again before it is."""

import time
import uuid
from pathlib import Path

import pytest

from tests.support.broker import Broker, started
from tests.support.checkpoint_scene import commit
from tests.support.clusters import Record, create_topic, produce
from tests.support.mirror import Mirror
from tests.support.services import ServiceProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

DEAD_S = 60.0
REACHED, LOST = "cluster reachable again", "cluster unreachable"
LINES = (
    "emit.checkpoints.interval.seconds = 1",
    "sync.group.offsets.enabled = true",
    "refresh.topics.interval.seconds = 2",
)


def test_dead_source_is_not_reported_as_reachable(tmp_path: Path, broker_b: Broker) -> None:
    mark, broker = uuid.uuid4().hex[:6], Broker("A")
    b = (broker_b.bootstrap, broker_b.bootstrap)
    with started(broker):
        a = (broker.bootstrap, broker.bootstrap)
        with Mirror.one_flow(tmp_path, mark, a, b, f"groups = {mark}-.*", *LINES) as mirror:
            others = [
                ServiceProcess(name, mirror.config, str(mirror.flow))
                for name in ("lockstep_checkpoint", "lockstep_heartbeat")
            ]
            with others[0] as checkpoint, others[1] as heartbeat:
                topic = create_topic(broker.bootstrap, f"{mark}-numbers", partitions=12)
                produce(broker.bootstrap, topic, [Record(value=b"%d" % n, partition=n % 12) for n in range(500)])
                mirror.flow.wait_copied(topic)
                for n in range(6):
                    commit(broker, f"{mark}-group-{n}", topic, 0, 20)
                services = {
                    "topic-sync": mirror.topic_sync,
                    "data-plane": mirror.data_plane,
                    "checkpoint": checkpoint,
                    "heartbeat": heartbeat,
                }
                time.sleep(5)
                broker.kill()
                time.sleep(DEAD_S)
                said = {name: service.said(REACHED) for name, service in services.items()}
                lost = {name: len(service.said(LOST)) for name, service in services.items()}
                assert not any(said.values()), (said, lost)
                assert all(lost[name] for name in ("data-plane", "topic-sync", "checkpoint")), lost
