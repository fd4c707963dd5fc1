"""A source without OffsetForLeaderEpoch and a target without DescribeProducers: the logs say where a copy goes on."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_protocol.kafka_apis import APIS
from tests.support.broker import Broker
from tests.support.clusters import create_topic, end_offsets
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

ABSENT = -1
PARTITIONS = 2
WITHIN = 120.0


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker, proxy_a: Proxy, proxy_b: Proxy) -> Iterator[Mirror]:
    proxy_a.announce({APIS["offset_for_leader_epoch"].key: ABSENT})
    proxy_b.announce({APIS["describe_producers"].key: ABSENT})
    a, b = (broker_a.bootstrap, proxy_a.bootstrap), (broker_b.bootstrap, proxy_b.bootstrap)
    lines = [f"{what}.enabled = false" for what in ("sync.topic.acls", "emit.heartbeats", "emit.checkpoints")]
    with Mirror.one_flow(tmp_path, uuid.uuid4().hex[:6], a, b, *lines) as mirror:
        yield mirror
    proxy_a.announce({})
    proxy_b.announce({})


def unsupported(flow: MirroredFlow) -> set[tuple[str, str]]:
    """Return (cluster, request) of each that slots have reported."""
    return {(event.subject, event.detail["api"]) for event in flow.events("RequestUnsupported")}


def test_copy_without_the_requests_is_exact_over_kills(mirror: Mirror) -> None:
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-numbers", partitions=PARTITIONS)
    with Traffic(flow.source, topic, partitions=PARTITIONS) as traffic:
        flow.wait_mirrored(topic, partitions=PARTITIONS, within=WITHIN)
        flow.wait_for_more(topic, 200, within=WITHIN)
        mirror.copying_worker(within=WITHIN).kill()
        traffic.wait_for_more(300, within=WITHIN)
        flow.wait_for_more(topic, 100, within=WITHIN)
        mirror.kill_data_plane()
        traffic.wait_for_more(300, within=WITHIN)
        mirror.data_plane.start()
        flow.wait_for_more(topic, 100, within=WITHIN)
    flow.wait_copied(topic, within=WITHIN)
    assert end_offsets(flow.source, topic) == end_offsets(flow.target, flow.remote(topic))
    wanted = {
        (f"cluster {flow.flow.source}", "OffsetForLeaderEpoch"),
        (f"cluster {flow.flow.target}", "DescribeProducers"),
    }
    wait_until(lambda: unsupported(flow) == wanted, within=WITHIN, what="what is done instead is reported")
    assert flow.events("GapFound") == []
