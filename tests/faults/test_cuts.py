"""Connections that end with requests in flight, again and again under traffic: in order, nothing lost, nothing doubled.

The cut requests are real ones of unknown outcome: the proxy holds answers back (the broker has appended, nobody knows),
or requests (nothing has reached it), and then resets every connection.
"""

import random
import time

import pytest

from tests.faults.cutting import CUTS, cut_with_answers_held
from tests.harness.clusters import create_topic, unique_name
from tests.harness.mirror import MirroredFlow
from tests.harness.proxy import Proxy
from tests.harness.traffic import Traffic

# `test_random` has what `make test` has time for.

PARTITIONS = 3
DAY_MS = 86_400_000


@pytest.mark.parametrize("side", ["target", "source"])
def test_connections_cut_under_traffic(there: MirroredFlow, proxy_a: Proxy, proxy_b: Proxy, side: str) -> None:
    proxy = proxy_b if side == "target" else proxy_a
    dice = random.Random(7)
    topic = create_topic(there.source, unique_name(f"there-cut-{side}"), partitions=PARTITIONS)
    with Traffic(there.source, topic, partitions=PARTITIONS, rate=600):
        for turn in range(6):
            there.wait_for_more(topic)
            CUTS[turn % 2](proxy, dice)
    assert len(there.wait_copied(topic)) > 1_000
    assert there.events("PartitionHalted", topic) == []
    assert there.events("ForeignWrite", there.remote(topic)) == []


@pytest.mark.long
def test_records_three_days_old_with_cuts(there: MirroredFlow, proxy_b: Proxy) -> None:
    """Brokers forget a producer by record time, so here only the target's log can say what was appended."""
    dice = random.Random(11)
    old = time.time_ns() // 1_000_000 - 3 * DAY_MS
    topic = create_topic(there.source, unique_name("there-old-cut"), partitions=PARTITIONS)
    with Traffic(there.source, topic, partitions=PARTITIONS, rate=600, timestamp_ms=old):
        for _ in range(5):
            there.wait_for_more(topic)
            cut_with_answers_held(proxy_b, dice)
    copy = there.wait_copied(topic)
    assert {record.timestamp_ms for record in copy} == {old}


@pytest.mark.long
def test_both_clusters_away_for_a_while(there: MirroredFlow, proxy_a: Proxy, proxy_b: Proxy) -> None:
    topic = create_topic(there.source, unique_name("there-away"), partitions=PARTITIONS)
    with Traffic(there.source, topic, partitions=PARTITIONS, rate=300) as traffic:
        for proxy in (proxy_b, proxy_a):
            there.wait_for_more(topic)
            proxy.refuse()
            traffic.wait_for_more(600)
            proxy.heal()
        there.wait_for_more(topic)
    assert len(there.wait_copied(topic)) > 1_200
