"""Records that are none, on the control topics of a flow that copies: all services go on, also new ones."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.commands.command import Command
from lockstep_state.names import commands_topic, events_topic, progress_topic, state_topic
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.control_records import GARBAGE, damaged
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror
from tests.support.services import ServiceProcess
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Iterator[Mirror]:
    a, b = ((broker.bootstrap, broker.bootstrap) for broker in (broker_a, broker_b))
    with Mirror.one_flow(tmp_path, uuid.uuid4().hex[:6], a, b, "sync.topic.acls.enabled = false") as mirror:
        yield mirror


def test_flow_with_hostile_control_records_copies_on(mirror: Mirror) -> None:
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-numbers", partitions=2)
    small = [value for value in GARBAGE if len(value) < 100_000]
    others = ("lockstep_checkpoint", "lockstep_heartbeat")
    with Traffic(flow.source, topic, partitions=2, rate=200):
        flow.wait_for_more(topic, 500)
        names = {"state": state_topic(flow.flow), "events": events_topic(flow.flow)}
        names |= {"commands": commands_topic(flow.flow), "progress": progress_topic(flow.flow)}
        checkpoints = create_topic(
            flow.target, f"{flow.flow.source}.checkpoints.internal", configs={"cleanup.policy": "compact"}
        )
        for row in (flow.progress(topic)[0], MirroredTopic(source_topic=topic, target_topic=flow.remote(topic))):
            key, value = row.encode()
            wrong = [one for one in damaged(value) if len(one) < 100_000]
            produce(flow.target, names["state"], [Record(value=one, key=key) for one in (*wrong, *small)])
        _, command = Command(id="c", verb="pause", subject=f"topic:{topic}").encode()
        bad = [b'{"verb":"pause","subject":{"a":1}}', json.dumps({"id": "d", "verb": "pause", "subject": []}).encode()]
        bad += [one for one in damaged(command) if b'"subject": "topic' not in one]
        produce(flow.target, names["commands"], [Record(value=one, key=b"c") for one in (*bad, *small)])
        for name in (names["events"], checkpoints):
            produce(flow.target, name, [Record(value=one, key=b"k") for one in small])
        flow.wait_for_more(topic, 500)
        mirror.kill_data_plane()
        mirror.topic_sync.kill()
        mirror.topic_sync.start()
        mirror.data_plane.start()
        processes = [ServiceProcess(name, mirror.config, str(flow.flow)) for name in others]
        for process in processes:
            process.start()
        try:
            flow.wait_for_more(topic, 500)
            for process in (mirror.topic_sync, *processes):
                process.hear("leading")
                assert process.running
            wait_until(
                lambda: mirror.topic_sync.status(str(flow.flow))["unreadable"]["counts"].get(names["state"], 0) > 50,
                within=60,
                what="what was passed over is counted",
            )
        finally:
            for process in processes:
                process.stop()
    flow.wait_copied(topic)
    assert not [row for row in flow.rows(PartitionProgress) if row.topic == topic and row.phase == "halted"]
