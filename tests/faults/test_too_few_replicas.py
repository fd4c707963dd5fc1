"""A target of three brokers that has too few replicas in sync refuses appends for more than a minute (each is answered
`NOT_ENOUGH_REPLICAS`): the fetching slows down, the memory does not grow, the driver's watchdog says which partitions
stand, and all goes on once the replica is back. Brokers and mirror are this file's own."""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import PartitionMetadata

from tests.faults.deployment import THREE
from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import Record, admin, create_topic, produce, set_configs, unique_name, wait_for_brokers
from tests.support.eventually import wait_until
from tests.support.metrics import read_page, values, wait_for_value
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MARK = f"r{uuid.uuid4().hex[:6]}"
MIB = 1 << 20
NODES = (1, 2, 3)
FACTORS = ("replication.factor", "offset.storage.replication.factor", "lockstep.control.replication.factor")
CAP = 8 * MIB
PARTITIONS = 60
PIECE = 50_000
PIECES = 50
"""Of each partition; all together are several times what may be in flight."""

RSS_SLACK = 3 * CAP + 16 * MIB
"""Batches, and what is being read and sent beside them. A megabyte of each partition would be more."""

WITHIN = 180.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The target's brokers and the mirror to them."""

    targets: Sequence[Broker]
    mirror: Mirror

    @property
    def flow(self) -> MirroredFlow:
        return self.mirror.flow

    def led_by_others(self, topic: str) -> bool:
        """Whether nothing of the topic is led by the last broker, which is away and known to be."""
        wrong = [
            (p.leader, p.isrs) for p in self._partitions(topic) if p.leader not in NODES[:2] or NODES[-1] in p.isrs
        ]
        assert not wrong, wrong
        return True

    def in_sync(self, topic: str) -> bool:
        """Whether each partition has all its replicas."""
        return all(set(part.isrs) == set(NODES) for part in self._partitions(topic))

    def _partitions(self, topic: str) -> list[PartitionMetadata]:
        return list(admin(self.flow.target).list_topics(topic, timeout=30).topics[topic].partitions.values())

    def stuck(self, topic: str) -> float:
        """How many partitions of the topic the metric calls stuck."""
        page = read_page(self.mirror.data_plane.page("/metrics")[1])
        return sum(values(page, "lockstep_partition_stuck", topic=topic))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        quorum = Quorum.with_nodes(len(NODES))
        targets = [Broker(f"T{node}", properties=THREE, quorum=quorum, node=node) for node in NODES]
        source = Broker("S")
        stack.enter_context(started(source, *targets))
        target = ",".join(broker.bootstrap for broker in targets)
        wait_for_brokers(target, len(NODES))
        mirror = Mirror.one_flow(
            tmp_path_factory.mktemp("few"),
            MARK,
            (source.bootstrap, source.bootstrap),
            (target, target),
            f"lockstep.max.in.flight.bytes = {CAP}",
            *(f"{factor} = {len(NODES)}" for factor in FACTORS),
        )
        yield Scene(targets, stack.enter_context(mirror))


def test_too_few_replicas_slow_down_fetching_and_are_named(scene: Scene) -> None:
    flow, mirror, away = scene.flow, scene.mirror, scene.targets[-1]
    topic = create_topic(flow.source, unique_name(MARK), partitions=PARTITIONS)
    remote = flow.remote(topic)
    produce(flow.source, topic, [Record(value=b"first", partition=n) for n in range(PARTITIONS)])
    flow.wait_written_down(topic, within=WITHIN)
    wait_until(lambda: scene.in_sync(remote), within=WITHIN, every=0.25, what=f"{remote} has its replicas")
    worker = mirror.copying_worker()
    resident = worker.memory_info().rss

    set_configs(flow.target, remote, {"min.insync.replicas": str(len(NODES))})
    away.stop()
    wait_until(lambda: scene.led_by_others(remote), within=WITHIN, every=0.25, what="the other two lead")
    pieces = [Record(value=os.urandom(PIECE), partition=n % PARTITIONS) for n in range(PIECES * PARTITIONS)]
    produce(flow.source, topic, pieces)
    most = 0

    def all_stuck() -> bool:
        nonlocal most
        most = max(most, worker.memory_info().rss - resident)
        assert len(flow.events("PartitionStuck", topic)) == PARTITIONS
        return True

    wait_until(all_stuck, within=WITHIN, every=0.5, what="each partition is said to stand")
    assert most < RSS_SLACK < PIECES * PARTITIONS * PIECE
    assert wait_for_value(mirror.data_plane, PARTITIONS, "lockstep_partition_stuck", topic=topic) == PARTITIONS
    assert {event.detail["upstream"] for event in flow.events("PartitionStuck", topic)} == {0}
    assert flow.events("PartitionMoves", topic) == []

    away.start()
    flow.wait_written_down(topic, within=WITHIN)
    assert flow.compared(topic).equal
    wait_until(lambda: scene.stuck(topic) == 0, within=WITHIN, every=0.5, what="none stands any more")
    # The metric changes first, and then the events are appended.
    wait_until(
        lambda: len(flow.events("PartitionMoves", topic)) >= PARTITIONS, within=WITHIN, every=0.5, what="each moves"
    )
    assert len(flow.events("PartitionMoves", topic)) == PARTITIONS
    assert flow.events("PartitionHalted") == flow.events("GapFound") == flow.events("ForeignWrite") == []
    assert worker.memory_info().rss - resident < RSS_SLACK
