"""Clusters of three brokers, racks and all: the nearest replica is read, and leaders that move every few seconds, on
either side, cost nothing. Brokers and mirror are this file's own; the mirror reaches each of the three through a
proxy, which counts what that broker gave."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic, PartitionMetadata

from lockstep_state.names import Flow, progress_topic
from tests.faults.deployment import THREE
from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import Record, admin, create_topic, end_offsets, produce, unique_name, wait_for_brokers
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.services import two_cluster_file
from tests.support.traffic import Traffic
from tests.support.wire import move_leaders

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MARK = uuid.uuid4().hex[:6]
NODES = (1, 2, 3)
RACKS = {**THREE, "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
LEASE_S = 5.0
PARTITIONS = 4
RATE = 500.0
MOVES, MOVE_EVERY_S = 8, 5.0
LONGEST_STANDSTILL_S = 30.0
BEGINS_WITHIN_S = 60.0  # much less than the five minutes in which all metadata are asked for anew
WITHIN = 180.0
PAYLOAD = b"x" * 1000


@dataclass(frozen=True, slots=True)
class Clusters:
    """Three brokers, each in a rack of its own, and one."""

    three: Sequence[Broker]
    one: Broker
    mirror: Mirror

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.three)

    @property
    def out(self) -> MirroredFlow:
        """From the three to the one, by a client in the rack of the second."""
        return next(iter(self.mirror.flows.values()))

    @property
    def back(self) -> MirroredFlow:
        """From the one to the three."""
        return list(self.mirror.flows.values())[1]

    def given(self, node: int) -> int:
        """Bytes that a broker gave the mirror so far."""
        proxy = self.three[node - 1].proxy
        assert proxy is not None
        return proxy.answered


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with ExitStack() as stack:
        quorum = Quorum.with_nodes(len(NODES))
        three = [
            Broker(
                f"T{node}",
                properties={**RACKS, "broker.rack": f"rack-{node}"},
                behind=stack.enter_context(Proxy()),
                quorum=quorum,
                node=node,
            )
            for node in NODES
        ]
        one = Broker("O")
        stack.enter_context(started(one, *three))
        direct = ",".join(broker.bootstrap for broker in three)
        wait_for_brokers(direct, len(NODES))
        behind = ",".join(broker.proxy.bootstrap for broker in three if broker.proxy)
        out, back = Flow(f"t{MARK}", f"o{MARK}"), Flow(f"o{MARK}", f"t{MARK}")
        file = two_cluster_file(
            tmp_path_factory.mktemp("three"),
            (out.source, behind),
            (out.target, one.bootstrap),
            f"{out}.enabled = true",
            f"{out}.topics = out-.*",
            f"{out.source}.consumer.client.rack = rack-2",
            f"{out.source}.consumer.metadata.max.age.ms = {LEASE_S * 1000:.0f}",
            f"{back}.enabled = true",
            f"{back}.topics = back-.*",
            f"{back}.replication.factor = 3",
            "tasks.max = 1",
            "heartbeats.replication.enabled = false",
            "offset-syncs.topic.replication.factor = 1",
        )
        flows = [MirroredFlow(out, direct, one.bootstrap), MirroredFlow(back, one.bootstrap, direct)]
        yield Clusters(three, one, stack.enter_context(Mirror(file, flows)))


def replicated(clusters: Clusters, topic: str) -> str:
    """Creates a topic on the three that the first leads."""
    new = NewTopic(topic, num_partitions=PARTITIONS, replica_assignment=[[*NODES]] * PARTITIONS)
    client = admin(clusters.bootstrap)
    client.create_topics([new])[topic].result(30)
    return topic


def test_replica_of_the_own_rack_is_read_and_the_leader_if_it_fails(clusters: Clusters) -> None:
    flow, follower = clusters.out, clusters.three[1]
    topic = replicated(clusters, unique_name("out-rack"))

    def write(count: int, mark: bytes) -> int:
        records = [Record(value=b"%b %d " % (mark, n) + PAYLOAD, partition=n % PARTITIONS) for n in range(count)]
        produce(clusters.bootstrap, topic, records)
        return count * len(PAYLOAD)

    size = write(4_000, b"first")
    flow.wait_copied(topic, within=WITHIN)
    # Which records came before the leader was asked with a rack is chance; of what follows none need come from it.
    before = [clusters.given(node) for node in NODES]
    size = write(8_000, b"near")
    flow.wait_copied(topic, within=WITHIN)
    leader, near, _ = (clusters.given(node) - begin for node, begin in zip(NODES, before, strict=True))
    assert near > 0.9 * size
    assert leader < 0.3 * size

    follower.kill()
    before_leader = clusters.given(1)
    size = write(8_000, b"without")
    flow.wait_copied(topic, within=WITHIN)
    assert clusters.given(1) - before_leader > 0.9 * size
    assert flow.events("PartitionHalted") == flow.events("GapFound") == []

    follower.start()

    def near_again() -> bool:
        begin = clusters.given(2)
        size = write(1_000, b"again")
        flow.wait_copied(topic, within=WITHIN)
        return clusters.given(2) - begin > 0.9 * size

    wait_until(near_again, within=WITHIN, every=1.0, what="the replica that is back is read")
    assert flow.compared(topic).equal


def test_leaders_that_move_every_five_seconds_on_either_side_cost_nothing(clusters: Clusters) -> None:
    out, back = clusters.out, clusters.back
    topics = {out: replicated(clusters, f"out-{MARK}-moves")}
    topics[back] = create_topic(clusters.one.bootstrap, f"back-{MARK}-moves", partitions=PARTITIONS)
    moved = [topics[out], back.remote(topics[back])]
    changed = dict.fromkeys(moved, 0)
    refused_before = refusals(clusters)
    with (
        Traffic(clusters.bootstrap, topics[out], partitions=PARTITIONS, rate=RATE),
        Traffic(clusters.one.bootstrap, topics[back], partitions=PARTITIONS, rate=RATE),
    ):
        for flow, topic in topics.items():
            flow.wait_for_more(topic, 500, within=WITHIN)
        led = {topic: leaders(clusters.bootstrap, topic) for topic in moved}
        for move in range(MOVES):
            for topic in moved:
                orders = {p: [NODES[(p + move + i) % len(NODES)] for i in range(len(NODES))] for p in range(PARTITIONS)}
                now = lead(clusters.bootstrap, topic, orders)
                changed[topic] += len(now.items() - led[topic].items())
                led[topic] = now
            _keeps_growing(topics, MOVE_EVERY_S)
    for flow, topic in topics.items():
        flow.wait_copied(topic, within=WITHIN)
        assert flow.compared(topic).equal
        assert flow.events("PartitionHalted") == flow.events("GapFound") == flow.events("ForeignWrite") == []
    for topic in moved:
        assert changed[topic] >= (MOVES - 1) * PARTITIONS, "where they stood at first is chance"
    for name, count in refusals(clusters).items():
        assert count > refused_before[name], f"{name} is what tells of it"
    assert clusters.mirror.data_plane.running


def test_topics_begin_at_once_after_leaders_of_the_progress_topic_moved(clusters: Clusters) -> None:
    """The remembered leader of the topic may be wrong by now."""
    flow, progress = clusters.back, progress_topic(clusters.back.flow)
    before = create_topic(clusters.one.bootstrap, f"back-{MARK}-before", partitions=PARTITIONS)
    produce(clusters.one.bootstrap, before, [Record(value=b"1", partition=p) for p in range(PARTITIONS)])
    flow.wait_copied(before, within=WITHIN)

    there = leaders(clusters.bootstrap, progress)
    orders = {number: [*(n for n in NODES if n != one), one] for number, one in there.items()}

    lead(clusters.bootstrap, progress, orders)
    after = create_topic(clusters.one.bootstrap, f"back-{MARK}-after", partitions=PARTITIONS)
    produce(clusters.one.bootstrap, after, [Record(value=b"2", partition=p) for p in range(PARTITIONS)])
    flow.wait_copied(after, within=BEGINS_WITHIN_S)
    assert flow.compared(after).equal


def test_log_truncated_by_unclean_election_and_grown_again_is_named(clusters: Clusters) -> None:
    """An unclean election while the former leader sleeps: it wakes as a follower, and what was copied from it is gone
    from its log, which by then is longer than before."""
    flow, (former, _, late) = clusters.out, clusters.three
    topic = unique_name("out-unclean")
    awake = ",".join(broker.bootstrap for broker in clusters.three[1:])
    configs = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    new = NewTopic(topic, num_partitions=1, replica_assignment=[[former.node, late.node]], config=configs)
    client = admin(clusters.bootstrap)
    client.create_topics([new])[topic].result(30)
    produce(clusters.bootstrap, topic, [Record(value=b"kept %d" % n) for n in range(100)])
    flow.wait_copied(topic, within=WITHIN)
    try:
        late.kill()
        wait_until(lambda: _in_sync(clusters.bootstrap, topic) == {former.node}, within=WITHIN, every=0.2)
        produce(clusters.bootstrap, topic, [Record(value=b"lost %d" % n) for n in range(50)])
        flow.wait_copied(topic, within=WITHIN)
        former.suspend()
        late.start()
        wait_until(lambda: leaders(awake, topic) == {0: late.node}, within=WITHIN, every=0.2, what="the late one leads")
        produce(awake, topic, [Record(value=b"other %d" % n) for n in range(80)])
        former.resume()
        halted = flow.wait_event("PartitionHalted", f"{topic}-0", within=WITHIN)
    finally:
        former.resume()
        late.start()
    assert "up to offset 100 only, not up to 149" in halted.detail["reason"]
    assert flow.wait_event("GapFound", f"{topic}-0").detail["case"] == "source-truncated"
    values = [record.value for record in flow.copy_of(topic)]
    assert values == [*(b"kept %d" % n for n in range(100)), *(b"lost %d" % n for n in range(50))]
    wait_until(lambda: _in_sync(clusters.bootstrap, topic) == {former.node, late.node}, within=WITHIN, every=0.2)


def refusals(clusters: Clusters) -> dict[str, int]:
    """How often the mirror was told so far that another leads, by the name of the error in its log: the one answers
    appends, the other fetches."""
    said = clusters.mirror.data_plane.log.read_text()
    return {name: said.count(f"({name})") for name in ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH")}


def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """The leader of each partition in the metadata; -1: none."""
    return {number: one.leader for number, one in _partitions(bootstrap, topic).items()}


def lead(bootstrap: str, topic: str, orders: dict[int, list[int]]) -> dict[int, int]:
    """Returns who leads, once each partition is led by the first of its replicas."""

    def moved() -> dict[int, int] | None:
        settled, now = move_leaders(bootstrap, topic, orders), leaders(bootstrap, topic)
        return now if settled == orders.keys() and all(now[p] == order[0] for p, order in orders.items()) else None

    return wait_until(moved, within=WITHIN, every=0.2, what=f"{topic} is led as it is to be")


def _in_sync(bootstrap: str, topic: str) -> set[int]:
    return set(_partitions(bootstrap, topic)[0].isrs)


def _partitions(bootstrap: str, topic: str) -> dict[int, PartitionMetadata]:
    partitions: dict[int, PartitionMetadata] = admin(bootstrap).list_topics(topic, timeout=30).topics[topic].partitions
    return partitions


def _keeps_growing(topics: dict[MirroredFlow, str], seconds: float) -> None:
    """Looks on for so long; no partition of a copy may stand still for long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for flow, topic in topics.items():
            what = f"every partition of {topic} goes on"
            before = wait_until(partial(_ends, flow, topic), within=WITHIN)
            wait_until(partial(_grown, flow, topic, before), within=LONGEST_STANDSTILL_S, every=0.2, what=what)


def _grown(flow: MirroredFlow, topic: str, before: dict[int, int]) -> bool:
    now = _ends(flow, topic)
    return now is not None and all(now[number] > end for number, end in before.items())


def _ends(flow: MirroredFlow, topic: str) -> dict[int, int] | None:
    """Where the copy ends; None while a leader that was just elected cannot say."""
    try:
        return end_offsets(flow.target, flow.remote(topic))
    except KafkaException:
        return None
