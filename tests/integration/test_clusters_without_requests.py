"""A source without OffsetForLeaderEpoch and a target without DescribeProducers: the logs say where a copy goes on."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.broker import Broker
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import Record, create_topic, end_offsets, produce
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.services import COPY_ONLY
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

EPOCHS, PRODUCERS = "offset_for_leader_epoch", "describe_producers"
LARGEST = 1_046_528
"""What Azure Event Hubs takes as a request."""
PARTITIONS = 4
WITHIN = 120.0


class Lacking(NamedTuple):
    """The proxies of a source and a target that lack a request each, and how that is reported."""

    source: Proxy
    target: Proxy
    case: str
    limits: bool


@pytest.fixture(params=["absent", "connection-closed"])
def lacking(request: pytest.FixtureRequest, proxy_a: Proxy, proxy_b: Proxy) -> Iterator[Lacking]:
    closes = request.param == "connection-closed"
    if closes:
        proxy_a.answer_as(ClusterProfile(closes_on=frozenset({EPOCHS})))
        proxy_b.answer_as(ClusterProfile(closes_on=frozenset({PRODUCERS}), largest_request=LARGEST))
    else:
        proxy_a.answer_as(ClusterProfile(absent=frozenset({EPOCHS})))
        proxy_b.answer_as(ClusterProfile(absent=frozenset({PRODUCERS})))
    yield Lacking(proxy_a, proxy_b, request.param, closes)
    for proxy in (proxy_a, proxy_b):
        proxy.answer_as(ClusterProfile())


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker, lacking: Lacking) -> Iterator[Mirror]:
    a, b = (broker_a.bootstrap, lacking.source.bootstrap), (broker_b.bootstrap, lacking.target.bootstrap)
    with Mirror.one_flow(tmp_path, uuid.uuid4().hex[:6], a, b, *COPY_ONLY) as mirror:
        yield mirror


def unsupported(flow: MirroredFlow) -> set[tuple[str, str, str]]:
    """Return (cluster, request, case) of each that slots have reported."""
    events = flow.events("RequestUnsupported")
    return {(event.subject, event.detail["api"], event.detail["case"]) for event in events}


def test_copy_without_the_requests_is_exact_over_kills(mirror: Mirror, lacking: Lacking) -> None:
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-numbers", partitions=PARTITIONS)
    large = [Record(value=b"v" * 400_000, partition=number % PARTITIONS) for number in range(80)]
    with Traffic(flow.source, topic, partitions=PARTITIONS) as traffic:
        mirror.kill_while_copying(traffic, topic, within=WITHIN, while_away=lambda: produce(flow.source, topic, large))
    flow.wait_copied(topic, within=WITHIN)
    assert end_offsets(flow.source, topic) == end_offsets(flow.target, flow.remote(topic))
    wanted = {
        (f"cluster {flow.flow.source}", "OffsetForLeaderEpoch", lacking.case),
        (f"cluster {flow.flow.target}", "DescribeProducers", lacking.case),
    }
    wait_until(lambda: unsupported(flow) == wanted, within=WITHIN, what="what is done instead is reported")
    assert flow.events("GapFound") == []
    assert bool(flow.events("RequestsLimited")) == lacking.limits
