"""Control topics that are deleted while records keep coming: the copy is exact or halted, never doubled."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lockstep_state.codecs.mm2_codec import decode_checkpoint
from lockstep_state.names import commands_topic, events_topic, progress_topic, state_topic
from tests.support.broker import Broker
from tests.support.checkpoint_scene import commit
from tests.support.clusters import admin, create_topic, delete_topic, end_offsets, read_topic
from tests.support.control import read_so_far
from tests.support.eventually import wait_until
from tests.support.mirror import SOURCE_CONNECTOR, Mirror, MirroredFlow
from tests.support.services import ServiceProcess
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

PARTITIONS = 2
WITHIN = 120.0
LINES = (
    "sync.topic.acls.enabled = false",
    "emit.heartbeats.enabled = false",
    "emit.checkpoints.interval.seconds = 1",
    "checkpoints.topic.replication.factor = 1",
)
LOST = [["state"], ["events"], ["commands"], ["progress", "offset-syncs", "checkpoints"]]
"""What is deleted in one scene. The loss of the first three ends a life, which would hide that of another topic."""


@dataclass
class Scene:
    """A flow under traffic with topic-sync, the data plane and checkpoint, and a group that has consumed its topic."""

    mirror: Mirror
    checkpoint: ServiceProcess
    a: Broker
    topic: str
    group: str

    @property
    def flow(self) -> MirroredFlow:
        return self.mirror.flow

    def control_topic(self, which: str) -> tuple[str, str]:
        """Return the address of its cluster and its name."""
        flow = self.flow
        named = {
            "state": (flow.target, state_topic(flow.flow)),
            "events": (flow.target, events_topic(flow.flow)),
            "commands": (flow.target, commands_topic(flow.flow)),
            "progress": (flow.target, progress_topic(flow.flow)),
            "checkpoints": (flow.target, f"{flow.flow.source}.checkpoints.internal"),
            "offset-syncs": (flow.source, f"mm2-offset-syncs.{flow.flow.target}.internal"),
        }
        return named[which]

    @contextmanager
    def traffic(self) -> Iterator[None]:
        """Write to the topic until it is left; what is inside begins once records are copied and the group followed."""
        with Traffic(self.flow.source, self.topic, partitions=PARTITIONS, rate=400):
            self.flow.wait_for_more(self.topic, 1_000)
            self.wait_group_followed()
            yield

    def delete(self, lost: list[str]) -> None:
        for which in lost:
            delete_topic(*self.control_topic(which))

    def wait_created(self, lost: list[str]) -> None:
        def are_created() -> bool:
            topics = [self.control_topic(which) for which in lost]
            return all(name in admin(address).list_topics(timeout=10).topics for address, name in topics)

        wait_until(are_created, within=WITHIN, what=f"{', '.join(lost)} are created again")

    def kill_control_plane(self) -> None:
        """Nobody but the data plane is left to create a topic."""
        self.mirror.topic_sync.kill()
        self.checkpoint.kill()

    def start(self) -> None:
        for service in (self.mirror.topic_sync, self.mirror.data_plane, self.checkpoint):
            service.start()

    def wait_grown(self, records: int = 500) -> None:
        """Return once the copy has so many more records."""
        flow, remote = self.flow, self.flow.remote(self.topic)
        before = sum(end_offsets(flow.target, remote).values())
        wait_until(
            lambda: sum(end_offsets(flow.target, remote).values()) >= before + records,
            within=WITHIN,
            every=0.25,
            what="the copy goes on",
        )

    def wait_group_followed(self) -> None:
        """Return once a checkpoint says where the group is now."""
        offset = end_offsets(self.flow.source, self.topic)[0]
        commit(self.a, self.group, self.topic, 0, offset)

        def is_emitted() -> bool:
            records = read_so_far(*self.control_topic("checkpoints"))
            checkpoints = [decode_checkpoint(record.key, record.value) for record in records]
            return any((c.group, c.partition, c.upstream) == (self.group, 0, offset) for c in checkpoints)

        wait_until(is_emitted, within=WITHIN, every=0.5, what=f"a checkpoint of {self.group} at {offset}")


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Iterator[Scene]:
    mark = uuid.uuid4().hex[:6]
    a, b = ((broker.bootstrap, broker.bootstrap) for broker in (broker_a, broker_b))
    with Mirror.one_flow(tmp_path, mark, a, b, f"groups = {mark}-.*", *LINES) as mirror:
        topic = create_topic(broker_a.bootstrap, f"{mark}-numbers", partitions=PARTITIONS)
        with ServiceProcess("lockstep_checkpoint", mirror.config, str(mirror.flow)) as checkpoint:
            yield Scene(mirror, checkpoint, broker_a, topic, f"{mark}-group")


@pytest.mark.parametrize("lost", LOST, ids="+".join)
def test_control_topic_lost_before_a_kill_doubles_nothing(scene: Scene, lost: list[str]) -> None:
    with scene.traffic():
        scene.delete(lost)
        scene.kill_control_plane()
        scene.wait_grown()
        scene.mirror.kill_data_plane()
        scene.start()
        scene.wait_grown()
        scene.wait_created(lost)
        scene.wait_group_followed()
    scene.flow.wait_copied(scene.topic, within=WITHIN)


@pytest.mark.parametrize("lost", LOST, ids="+".join)
def test_control_topic_lost_while_it_runs_is_created_again(scene: Scene, lost: list[str]) -> None:
    """Twice. The services notice it by themselves, and the copy is exact."""
    with scene.traffic():
        for _ in range(2):
            scene.delete(lost)
            scene.wait_created(lost)
            scene.wait_grown()
            scene.wait_group_followed()
    scene.flow.wait_copied(scene.topic, within=WITHIN)
    scene.flow.wait_written_down(scene.topic)
    for which in lost:
        name = scene.control_topic(which)[1]
        is_reported = partial(scene.flow.events, "ControlTopicLost", name)
        wait_until(is_reported, within=WITHIN, what=f"the event of {name}, for each service waits for the one before")


@pytest.mark.parametrize("lost", LOST, ids="+".join)
def test_control_topic_lost_while_all_is_stopped_doubles_nothing(scene: Scene, lost: list[str]) -> None:
    with scene.traffic():
        for service in (scene.mirror.data_plane, scene.checkpoint, scene.mirror.topic_sync):
            service.stop()
        scene.delete(lost)
        scene.start()
        scene.wait_grown()
        scene.wait_created(lost)
        scene.wait_group_followed()
    scene.flow.wait_copied(scene.topic, within=WITHIN)


def test_all_control_topics_lost_before_a_kill_halt_for_a_decision(scene: Scene) -> None:
    """Nothing but the copy itself is left, so an operator says where it ends."""
    flow, topic = scene.flow, scene.topic
    with scene.traffic():
        for lost in LOST:
            scene.delete(lost)
        scene.kill_control_plane()
        scene.mirror.kill_data_plane()
        scene.start()

        def is_halted() -> bool:
            rows = flow.progress(topic).values()
            return len(rows) == PARTITIONS and all((r.phase, r.case) == ("halted", "in-doubt") for r in rows)

        wait_until(is_halted, within=WITHIN, every=0.5, what="both partitions are in doubt")
    values = [record.value for record in read_topic(flow.target, flow.remote(topic))]
    assert len(values) == len(set(values)), f"{len(values) - len(set(values))} records are doubled"
    ends = end_offsets(flow.target, flow.remote(topic))
    flow.ask("stop", SOURCE_CONNECTOR)
    for number, end in ends.items():
        assert flow.alter(topic, end - 1, number).kind == "OffsetsAltered"
    flow.ask("resume", SOURCE_CONNECTOR)
    flow.wait_copied(topic, within=WITHIN)
