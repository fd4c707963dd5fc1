"""Control topics that are deleted while records keep coming: the copy is exact or halted, never doubled."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_protocol.names import commands_topic, events_topic, progress_topic, state_topic
from tests.support.broker import Broker
from tests.support.clusters import admin, create_topic, delete_topic, end_offsets, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import SOURCE_CONNECTOR, Mirror, MirroredFlow
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


def is_there(flow: MirroredFlow, which: str) -> None:
    at, name = control_topic(flow, which)
    wait_until(lambda: name in admin(at).list_topics(timeout=10).topics, within=30, what=f"{name} is there again")


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
    is_there(flow, which)


@pytest.mark.parametrize("which", EACH)
def test_control_topic_lost_while_it_runs_is_created_again(mirror: Mirror, topic: str, which: str) -> None:
    """Twice. The services notice it by themselves, and the copy is exact."""
    flow = mirror.flow
    at, name = control_topic(flow, which)
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=400):
        for _ in range(2):
            flow.wait_for_more(topic, 1_000)
            delete_topic(at, name)
            is_there(flow, which)
            grows(flow, topic)
    flow.wait_copied(topic, within=WITHIN)
    flow.wait_written_down(topic)
    assert flow.events("ControlTopicLost", name) or which == "events"


def test_state_topic_lost_while_all_is_stopped_doubles_nothing(mirror: Mirror, topic: str) -> None:
    flow = mirror.flow
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=400):
        flow.wait_for_more(topic, 1_000)
        mirror.data_plane.stop()
        mirror.topic_sync.stop()
        delete_topic(*control_topic(flow, "state"))
        mirror.topic_sync.start()
        mirror.data_plane.start()
        grows(flow, topic)
    flow.wait_copied(topic, within=WITHIN)


def test_all_control_topics_lost_before_a_kill_halt_for_a_decision(mirror: Mirror, topic: str) -> None:
    """Nothing but the copy itself is left, so an operator says where it ends."""
    flow = mirror.flow
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=400):
        flow.wait_for_more(topic, 1_000)
        for which in EACH:
            delete_topic(*control_topic(flow, which))
        mirror.topic_sync.kill()
        mirror.kill_data_plane()
        mirror.topic_sync.start()
        mirror.data_plane.start()

        def halted() -> bool:
            rows = flow.progress(topic)
            return len(rows) == PARTITIONS and all((r.phase, r.case) == ("halted", "in-doubt") for r in rows.values())

        wait_until(halted, within=WITHIN, every=0.5, what="both partitions are in doubt")
    never_doubled(flow, topic)
    ends = end_offsets(flow.target, flow.remote(topic))
    flow.ask("stop", SOURCE_CONNECTOR)
    for number, end in ends.items():
        assert flow.alter(topic, end - 1, number).kind == "OffsetsAltered"
    flow.ask("resume", SOURCE_CONNECTOR)
    flow.wait_copied(topic, within=WITHIN)
