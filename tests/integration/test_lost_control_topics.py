"""Control topics that are deleted while records keep coming: the copy is exact or halted, never doubled."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_protocol.names import commands_topic, events_topic, progress_topic, state_topic
from tests.support.broker import Broker
from tests.support.clusters import admin, create_topic, delete_topic, end_offsets, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

PARTITIONS = 2
WITHIN = 120.0


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Iterator[Mirror]:
    with Mirror.of_records(tmp_path, uuid.uuid4().hex[:6], broker_a, broker_b, slots=1) as mirror:
        yield mirror


@pytest.fixture
def topic(mirror: Mirror) -> str:
    return create_topic(mirror.flow.source, f"{mirror.flow.flow.source[1:]}-numbers", partitions=PARTITIONS)


def control_topic(flow: MirroredFlow, which: str) -> tuple[str, str]:
    """Address and name."""
    named = {
        "state": (flow.target, state_topic(flow.flow)),
        "events": (flow.target, events_topic(flow.flow)),
        "commands": (flow.target, commands_topic(flow.flow)),
        "progress": (flow.target, progress_topic(flow.flow)),
        "offset-syncs": (flow.source, f"mm2-offset-syncs.{flow.flow.target}.internal"),
    }
    return named[which]


EACH = ("state", "events", "commands", "progress", "offset-syncs")


def grows(flow: MirroredFlow, topic: str, records: int = 500) -> None:
    """Returns once the copy has so many more records."""
    before = sum(end_offsets(flow.target, flow.remote(topic)).values())
    wait_until(
        lambda: sum(end_offsets(flow.target, flow.remote(topic)).values()) >= before + records,
        within=WITHIN,
        every=0.25,
        what="the copy goes on",
    )


def never_doubled(flow: MirroredFlow, topic: str) -> None:
    values = [record.value for record in read_topic(flow.target, flow.remote(topic))]
    assert len(values) == len(set(values)), f"{len(values) - len(set(values))} records are doubled"


@pytest.mark.parametrize("which", EACH)
def test_control_topic_lost_before_a_kill_doubles_nothing(mirror: Mirror, topic: str, which: str) -> None:
    flow = mirror.flow
    at, name = control_topic(flow, which)
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=400):
        flow.wait_for_more(topic, 1_000)
        delete_topic(at, name)
        mirror.topic_sync.kill()
        grows(flow, topic)
        mirror.kill_data_plane()
        mirror.topic_sync.start()
        mirror.data_plane.start()
        grows(flow, topic)
    flow.wait_copied(topic, within=WITHIN)
    wait_until(lambda: name in admin(at).list_topics(timeout=10).topics, within=30, what=f"{name} is there again")
    never_doubled(flow, topic)
