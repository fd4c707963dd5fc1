"""Connections that end with requests in flight, again and again under traffic: in order, nothing lost, nothing doubled.

The cut requests are real ones of unknown outcome: the proxy holds answers back (the broker has appended, nobody knows),
or requests (nothing has reached it), and then resets every connection.
"""

import random
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.faults.cutting import CUTS, cut_with_answers_held
from tests.support.broker import Broker
from tests.support.clusters import create_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.jvm import jvm
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.traffic import Traffic

PARTITIONS = 3
DAY_MS = 86_400_000


@pytest.mark.long  # `make test` has the cuts of `test_random`
@pytest.mark.parametrize(
    ("side", "way_s", "times", "records"),
    [
        pytest.param("target", 0.0, 6, 1_000, id="target"),
        pytest.param("target", 0.04, 6, 1_000, id="target, far away"),
        pytest.param("source", 0.0, 6, 1_000, id="source"),
    ],
)
def test_connections_cut_under_traffic(
    there: MirroredFlow, proxy_a: Proxy, proxy_b: Proxy, side: str, way_s: float, times: int, records: int
) -> None:
    proxy = proxy_b if side == "target" else proxy_a
    if way_s:
        proxy.delay(requests=way_s, answers=way_s)
        proxy.cut()  # who is connected knows a shorter way
    dice = random.Random(7)
    topic = create_topic(there.source, unique_name(f"there-cut-{side}"), partitions=PARTITIONS)
    with Traffic(there.source, topic, partitions=PARTITIONS, rate=600):
        for turn in range(times):
            there.wait_for_more(topic)
            CUTS[turn % len(CUTS)](proxy, dice)
        there.wait_for_more(topic)
    assert len(there.wait_copied(topic)) > records
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
def test_cut_of_both_clusters_for_a_while_loses_nothing(there: MirroredFlow, proxy_a: Proxy, proxy_b: Proxy) -> None:
    topic = create_topic(there.source, unique_name("there-away"), partitions=PARTITIONS)
    with Traffic(there.source, topic, partitions=PARTITIONS, rate=300) as traffic:
        for proxy in (proxy_b, proxy_a):
            there.wait_for_more(topic)
            proxy.refuse()
            traffic.wait_for_more(600)
            proxy.heal()
        there.wait_for_more(topic)
    assert len(there.wait_copied(topic)) > 1_200


MARK = f"f{uuid.uuid4().hex[:6]}"
FORGETS = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "500"}


@pytest.fixture(scope="module")
def forgetful(broker_a: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mirror, Proxy]]:
    """A mirror of one slot to a target that forgets a producer a second after its newest record's timestamp."""
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy())
        target = stack.enter_context(Broker("forgetful", properties=FORGETS, behind=proxy))
        a, b = (broker_a.bootstrap,) * 2, (target.bootstrap, proxy.bootstrap)
        yield stack.enter_context(Mirror.one_flow(tmp_path_factory.mktemp("forgetful"), MARK, a, b)), proxy


def remembered(flow: MirroredFlow, topic: str) -> int:
    """How many producers the target's leader remembers in the copy, by Kafka's own admin client."""
    with jvm() as gateway:
        admin = gateway.jvm.org.apache.kafka.clients.admin.Admin.create({"bootstrap.servers": flow.target})
        try:
            places = [
                gateway.jvm.org.apache.kafka.common.TopicPartition(flow.remote(topic), n) for n in range(PARTITIONS)
            ]
            found = admin.describeProducers(places).all().get()
            return sum(len(found.get(place).activeProducers()) for place in places)
        finally:
            admin.close()


@pytest.mark.long
@pytest.mark.parametrize("age_ms", [0, 3 * DAY_MS], ids=["new records", "three days old"])
def test_a_target_that_forgets_producers(forgetful: tuple[Mirror, Proxy], age_ms: int) -> None:
    """What was appended is in the log, whatever the broker remembers: cuts, and kills of the slot, double nothing."""
    mirror, proxy = forgetful
    flow, dice = mirror.flow, random.Random(13)
    written_at = time.time_ns() // 1_000_000 - age_ms if age_ms else None
    topic = create_topic(flow.source, unique_name(MARK), partitions=PARTITIONS)
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=600, timestamp_ms=written_at):
        for turn in range(8):
            flow.wait_for_more(topic, 100)
            CUTS[turn % 2](proxy, dice)
            if turn % 3 == 2:
                flow.wait_for_more(topic, 100)
                mirror.copying_worker().kill()
    assert len(flow.wait_copied(topic)) > 1_000
    flow.wait_written_down(topic)
    assert flow.compared(topic).equal
    assert flow.events("PartitionHalted", topic) == []
    wait_until(lambda: remembered(flow, topic) == 0, within=60, every=1.0, what="the target has forgotten our producer")
    # A chain of which the broker knows nothing is continued where its log says that it ended.
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=600, timestamp_ms=written_at):
        flow.wait_for_more(topic, 300)
    flow.wait_copied(topic)
