"""A target that stores batches without producer ids and has no transactions: one writer reads its log back."""

import random
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import Leader, Origin
from tests.faults.cutting import CUTS
from tests.support.broker import Broker
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.known_clusters import OF_TRANSACTIONS
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.services import COPY_ONLY, ServiceProcess
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

FORGETS = ClusterProfile(forgets_producers=True, absent=OF_TRANSACTIONS)
FORGETS_ALL = ClusterProfile(forgets_producers=True, forgets_transactions=True)
"""It answers the requests of transactions, and does nothing."""
PARTITIONS = 2
RECORDS, PARTS = 5_000, 4
WITHIN = 120.0


@pytest.fixture
def target(proxy_b: Proxy) -> Iterator[Proxy]:
    proxy_b.answer_as(FORGETS)
    yield proxy_b
    proxy_b.answer_as(ClusterProfile())


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker, target: Proxy) -> Iterator[Mirror]:
    a, b = (broker_a.bootstrap, broker_a.bootstrap), (broker_b.bootstrap, target.bootstrap)
    with Mirror.one_flow(tmp_path, uuid.uuid4().hex[:6], a, b, *COPY_ONLY) as mirror:
        yield mirror


def topic_of(flow: MirroredFlow, name: str) -> str:
    return create_topic(flow.source, f"{flow.flow.source[1:]}-{name}", partitions=PARTITIONS)


def test_copy_without_producer_ids_is_exact_over_three_kills(mirror: Mirror) -> None:
    flow = mirror.flow
    topic = topic_of(flow, "killed")
    for part in range(PARTS):
        first = part * RECORDS // PARTS
        same = [
            Record(value=b"%d" % (n // 3), partition=n % PARTITIONS) for n in range(first, first + RECORDS // PARTS)
        ]
        produce(flow.source, topic, same)
        flow.wait_mirrored(topic, partitions=PARTITIONS, within=WITHIN)
        flow.wait_for_more(topic, 100, within=WITHIN)
        if part < PARTS - 1:
            mirror.kill_data_plane()
            mirror.data_plane.start()
    flow.wait_copied(topic, within=WITHIN)
    assert end_offsets(flow.source, topic) == end_offsets(flow.target, flow.remote(topic))
    assert [origin.appends for origin in flow.rows(Origin)] == ["read-back"]
    assert [event.detail["mode"] for event in flow.events("AppendModeChosen")] == ["read-back"]
    assert flow.events("GapFound") == flow.events("RecordsDoubled") == []


def test_copy_with_transactions_by_name_alone_is_exact_over_a_kill(mirror: Mirror, target: Proxy) -> None:
    target.answer_as(FORGETS_ALL)
    flow = mirror.flow
    topic = topic_of(flow, "named")
    for first in (0, 2_000):
        produce(flow.source, topic, [Record(value=b"%d" % n, partition=n % 2) for n in range(first, first + 2_000)])
        flow.wait_mirrored(topic, partitions=PARTITIONS, within=WITHIN)
        flow.wait_for_more(topic, 100, within=WITHIN)
        if not first:
            mirror.kill_data_plane()
            mirror.data_plane.start()
    flow.wait_copied(topic, within=WITHIN)
    assert end_offsets(flow.source, topic) == end_offsets(flow.target, flow.remote(topic))
    assert [origin.appends for origin in flow.rows(Origin)] == ["read-back"]


def test_copy_without_producer_ids_is_exact_over_cuts(mirror: Mirror, target: Proxy) -> None:
    flow, dice = mirror.flow, random.Random(1)
    topic = topic_of(flow, "cut")
    with Traffic(flow.source, topic, partitions=PARTITIONS):
        flow.wait_mirrored(topic, partitions=PARTITIONS, within=WITHIN)
        for cut in CUTS * 3:
            flow.wait_for_more(topic, 100, within=WITHIN)
            cut(target, dice)
        flow.wait_for_more(topic, 100, within=WITHIN)
    flow.wait_copied(topic, within=WITHIN)
    assert end_offsets(flow.source, topic) == end_offsets(flow.target, flow.remote(topic))
    assert flow.events("GapFound") == flow.events("RecordsDoubled") == []


@pytest.fixture
def other_way(broker_b: Broker) -> Iterator[Proxy]:
    """A second way to the same target."""
    with Proxy() as proxy:
        host, _, port = broker_b.bootstrap.rpartition(":")
        proxy.forward_to(host, int(port))
        proxy.answer_as(FORGETS)
        yield proxy


def test_doubles_of_a_writer_that_was_held_up_are_reported(
    mirror: Mirror, target: Proxy, other_way: Proxy, tmp_path: Path
) -> None:
    flow = mirror.flow
    topic = topic_of(flow, "woken")
    folder = tmp_path / "other"
    folder.mkdir()
    lines = mirror.config.read_text().replace(target.bootstrap, other_way.bootstrap)
    (folder / "mm2.properties").write_text(lines)
    second = ServiceProcess("lockstep_data_plane", folder / "mm2.properties", str(flow), instance="second")
    with second:
        with Traffic(flow.source, topic, partitions=PARTITIONS) as traffic:
            flow.wait_mirrored(topic, partitions=PARTITIONS, within=WITHIN)
            second.wait_ready()
            flow.wait_for_more(topic, 100, within=WITHIN)
            (writer,) = {row.instance for row in flow.rows(Leader) if row.service == "data-plane"}
            way = {"test": target, "second": other_way}[writer]
            traffic.wait_for_more(20, within=WITHIN)
            way.hold(requests=True, answers=False)  # with an append of each partition under way
            flow.wait_for_more(topic, 20, within=WITHIN)
            way.let_pass()
            flow.wait_event("RecordsDoubled", within=WITHIN)
        wanted = sum(end_offsets(flow.source, topic).values())
        wait_until(lambda: sum(row.upstream + 1 for row in flow.progress(topic).values()) == wanted, within=WITHIN)
    doubled = sum(row.doubled for row in flow.progress(topic).values())
    assert sum(end_offsets(flow.target, flow.remote(topic)).values()) == wanted + doubled
    assert doubled > 0
    copied = [(record.partition, record.value) for record in flow.copy_of(topic)]
    sent = [(record.partition, record.value) for record in read_topic(flow.source, topic)]
    assert first_ones(copied) == sent, "nothing is lost, and the order is the source's"
    assert flow.events("GapFound") == []


Numbered = tuple[int | None, bytes | None]
"""A record's partition and value. No value of the traffic is written twice."""


def first_ones(found: Sequence[Numbered]) -> list[Numbered]:
    """Return each the first time."""
    return list(dict.fromkeys(found))
