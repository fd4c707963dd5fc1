"""Brokers that know old versions of requests only, as Event Hubs and Redpanda do. Real ones announce less here."""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lockstep_protocol.kafka_apis import APIS
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.mirror import Mirror
from tests.support.proxy import Proxy

pytestmark = pytest.mark.long

SOURCE = {"fetch": 6, "metadata": 5, "list_offsets": 3}
"""No fetch sessions, no leader epochs, no topic ids."""
TARGET = {"produce": 7, "metadata": 8, "init_producer_id": 1, "list_offsets": 4, "fetch": 11}
"""No errors of single records, no topic ids, and in nothing but DescribeProducers flexible messages."""
EVENTS = range(3000)
TRANSACTIONS = "B.exactly.once.source.support = enabled"
CODECS = ("none", "gzip", "snappy", "lz4")
"""zstd needs Fetch 10."""


def by_key(newest: Mapping[str, int]) -> dict[int, int]:
    return {APIS[api].key: version for api, version in newest.items()}


@pytest.fixture
def old_clusters(proxy_a: Proxy, proxy_b: Proxy) -> Iterator[tuple[str, str]]:
    """Return the bootstrap servers of A and B, which announce old versions."""
    proxy_a.announce(by_key(SOURCE))
    proxy_b.announce(by_key(TARGET))
    yield proxy_a.bootstrap, proxy_b.bootstrap
    proxy_a.announce({})
    proxy_b.announce({})


@pytest.mark.parametrize(
    "lines", [(), ("B.exactly.once.source.support = enabled",)], ids=["idempotent", "transactions"]
)
def test_copy_in_old_versions_is_exact_over_a_kill(
    tmp_path: Path, broker_a: Broker, broker_b: Broker, old_clusters: tuple[str, str], lines: tuple[str, ...]
) -> None:
    mark = uuid.uuid4().hex[:6]
    a, b = (broker_a.bootstrap, old_clusters[0]), (broker_b.bootstrap, old_clusters[1])
    with Mirror.one_flow(tmp_path, mark, a, b, "emit.heartbeats.enabled = false", *lines) as mirror:
        topic = create_topic(broker_a.bootstrap, f"{mark}-old", partitions=2)
        for part, codec in enumerate(CODECS):
            produce(
                broker_a.bootstrap,
                topic,
                [Record(value=b"%d" % n, key=None, headers=(("h", None),), partition=n % 2) for n in EVENTS[part::4]],
                codec=codec,
            )
        mirror.flow.wait_for_more(topic)
        mirror.copying_worker().kill()
        mirror.flow.wait_copied(topic)
        mirror.flow.wait_written_down(topic)
        mirror.copying_worker().kill()
        produce(broker_a.bootstrap, topic, [Record(value=b"later-%d" % n, partition=n % 2) for n in EVENTS])
        copied = mirror.flow.wait_copied(topic)
        assert len(copied) == 2 * len(EVENTS)
