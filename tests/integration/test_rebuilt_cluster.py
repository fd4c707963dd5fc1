"""A cluster that is rebuilt at the same address, with another cluster id, while the services run."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, delete_topic, end_offsets, produce
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = pytest.mark.long

WITHIN = 120.0
SERVICES = {"topic-sync", "data-plane"}


@pytest.fixture
def mirror(tmp_path: Path, brokers: tuple[Broker, Broker]) -> Iterator[Mirror]:
    restarts = "lockstep.on.recreate = .*-before=restart"
    with Mirror.of_records(tmp_path, uuid.uuid4().hex[:6], *brokers, restarts) as mirror:
        yield mirror


def filled(flow: MirroredFlow, stem: str) -> str:
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-{stem}")
    produce(flow.source, topic, [Record(key=b"k", value=b"%d" % number) for number in range(100)])
    return topic


def each_service_says_so(flow: MirroredFlow, alias: str) -> None:
    def said() -> bool:
        return {event.service for event in flow.events("ClusterReplaced", alias)} == SERVICES

    wait_until(said, within=WITHIN, every=0.5, what="each service says that the cluster is another one")


def test_rebuilt_source_is_noticed_and_its_topics_are_copied(mirror: Mirror, brokers: tuple[Broker, Broker]) -> None:
    flow, source = mirror.flow, brokers[0]
    topic = filled(flow, "before")
    flow.wait_copied(topic)
    source.rebuild()
    new = filled(flow, "after")
    filled(flow, "before")
    each_service_says_so(flow, flow.flow.source)
    flow.wait_copied(new, within=WITHIN)
    assert flow.wait_event("CopyRestarted", f"{topic}-0", within=WITHIN).detail["case"] == "source-recreated"
    wait_until(lambda: end_offsets(flow.target, flow.remote(topic))[0] == 200, within=WITHIN, every=0.5)


def test_rebuilt_target_gets_all_topics_and_records_again(mirror: Mirror, brokers: tuple[Broker, Broker]) -> None:
    flow, target = mirror.flow, brokers[1]
    topic = filled(flow, "before")
    flow.wait_copied(topic)
    target.rebuild()
    each_service_says_so(flow, flow.flow.target)
    flow.wait_copied(topic, within=WITHIN)
    new = filled(flow, "after")
    flow.wait_copied(new, within=WITHIN)


def test_heartbeats_topic_that_is_created_again_is_copied_on(mirror: Mirror) -> None:
    """On either side. Nobody has to decide, as for other topics."""
    flow = mirror.flow

    def beat(count: int, first: int) -> list[Record]:
        records = [Record(b"k", b"%d" % number, timestamp_ms=1_000) for number in range(first, first + count)]
        produce(flow.source, create_topic(flow.source, "heartbeats"), records)
        return records

    old = beat(5, 0)
    flow.wait_holds("heartbeats", old, within=WITHIN)
    delete_topic(flow.source, "heartbeats")
    new = beat(7, 100)
    flow.wait_holds("heartbeats", [*old, *new], within=WITHIN)
    delete_topic(flow.target, flow.remote("heartbeats"))
    flow.wait_holds("heartbeats", new, within=WITHIN)
