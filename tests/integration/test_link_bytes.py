"""The bytes that a cluster's client counts are those that pass on its connections, but for each one's handshake."""

from collections.abc import Iterator

import pytest

from lockstep_data_plane.log_reader import log_between
from lockstep_kafka.wire.cluster import connect_cluster
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.proxy import Proxy

HANDSHAKE_BYTES = 4_000
"""ApiVersions and its answer, on each of three connections at most."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker of its own: services of other tests still speak with the common one, past the same proxy."""
    with Proxy() as proxy, Broker("links", behind=proxy) as broker:
        yield broker


async def test_link_bytes_are_those_of_the_line(broker: Broker) -> None:
    proxy = broker.proxy
    assert proxy is not None
    topic = create_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [Record(value=b"v" * 100_000, partition=0) for _ in range(50)])
    cluster = connect_cluster("A", {"bootstrap.servers": proxy.bootstrap}, "links")
    sent_before, received_before = proxy.requested, proxy.answered
    try:
        await cluster.refresh([topic])
        end = await cluster.end_offset((topic, 0))
        read = [len(b.data) async for batches, _ in log_between(cluster, (topic, 0), 0, end) for b in batches]
        links: dict[str, int] = {}
        for direction, _, size in cluster.links.totals():
            links[direction] = links.get(direction, 0) + size
        sent, received = proxy.requested - sent_before, proxy.answered - received_before
    finally:
        await cluster.close()
    assert sum(read) >= 5_000_000
    assert received - 3 * HANDSHAKE_BYTES <= links["received"] <= received
    assert sent - 3 * HANDSHAKE_BYTES <= links["sent"] <= sent
    assert links["received"] >= sum(read)
