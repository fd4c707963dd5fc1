"""Clusters that feed each other under the same topic names, written to on every side for minutes, while slots and the
JVM are killed: each record is exactly once on each cluster, in its origin's order (`same-topic-names.md`)."""

import os
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Origin
from tests.faults.counting import Count
from tests.faults.numbered import Writer
from tests.faults.origins import first_of, same_everywhere
from tests.support.broker import Broker, started
from tests.support.clusters import create_topic, end_offsets
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

LASTS_S = float(os.environ.get("DURATION") or 60)
BRIEFLY_S = LASTS_S / 2  # for what differs from a pair in one thing
PARTITIONS = 3
RATE = 200  # a second, on each cluster
BACK_WITHIN = 240.0  # seconds; usual is 12 for a new Spark, 2 for a new worker, but the cores may be shared
TOPIC = "same-orders"
NAMES = "ABC"


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[Broker]]:
    brokers = [Broker(name) for name in NAMES]
    with started(*brokers):
        yield brokers


class Mesh:
    """Flows between some clusters, all in one data plane, for one topic that every cluster has."""

    def __init__(
        self,
        brokers: Sequence[Broker],
        flows: Sequence[tuple[int, int]],
        folder: Path,
        *,
        more: str = "",
        relaying: Sequence[int] = (),
    ) -> None:
        """`flows` as places in `brokers`; `relaying` as places in `flows`; `more`: a line of the file for each
        alias."""
        mark = uuid.uuid4().hex[:6]
        aliases = [f"{name.lower()}{mark}" for name in NAMES[: len(brokers)]]
        self.topic = f"{TOPIC}-{mark}"
        self.folder = folder
        self.at = [broker.bootstrap for broker in brokers]
        self.flows = [
            MirroredFlow(Flow(aliases[source], aliases[target]), self.at[source], self.at[target])
            for source, target in flows
        ]
        factors = ("replication.factor", "offset.storage.replication.factor", "heartbeats.topic.replication.factor")
        text = [
            f"clusters = {', '.join(aliases)}",
            *(f"{alias}.bootstrap.servers = {at}" for alias, at in zip(aliases, self.at, strict=True)),
            *(f"{factor} = 1" for factor in (*factors, "offset-syncs.topic.replication.factor")),
            "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            f"topics = {self.topic}",
            "tasks.max = 1",
            "emit.heartbeats.enabled = false",
            *(f"{flow}.enabled = true" for flow in self.flows),
            *(f"{self.flows[place]}.lockstep.provenance = relay" for place in relaying),
            *(more.format(alias=alias) for alias in aliases),
        ]
        file = folder / "mm2.properties"
        file.write_text("\n".join(text) + "\n")
        self.mirror = Mirror(file, self.flows)

    def run(self, seed: int, lasts_s: float = LASTS_S) -> Sequence[Count]:
        """Written to on every side and struck again and again; then the counts of every origin on every other side,
        once all of it is everywhere."""
        for at in self.at:
            create_topic(at, self.topic, partitions=PARTITIONS)
        dice = random.Random(seed)
        with self.mirror, ExitStack() as writing:
            for flow in self.flows:
                flow.wait_mirrored(self.topic, partitions=PARTITIONS, within=BACK_WITHIN)
            for cluster, at in enumerate(self.at):
                log = self.folder / f"writer-{cluster}.log"
                writer = Writer(at, self.topic, partitions=PARTITIONS, rate=RATE, log=log, first=first_of(cluster))
                writing.enter_context(writer)
            began = time.monotonic()
            for strike in (self._kill_a_slot, self._kill_the_jvm, self._kill_a_slot):
                self._goes_on(for_s=lasts_s / 4)
                strike(dice)
            self._goes_on(for_s=began + lasts_s - time.monotonic())
            writing.close()
            found = same_everywhere(self.at, self.topic, within=BACK_WITHIN)
            for flow in self.flows:
                flow.wait_written_down(self.topic, within=BACK_WITHIN)
                assert not flow.events("PartitionHalted"), flow
            # Nothing came in while the last positions were written down.
            assert same_everywhere(self.at, self.topic, within=1) == found
        return list(found.values())

    def _goes_on(self, *, for_s: float) -> None:
        """Returns when every flow has written down more, and so long has passed."""
        until = time.monotonic() + for_s
        for flow in self.flows:
            flow.wait_for_more(self.topic, 100, within=BACK_WITHIN)
        wait_until(lambda: time.monotonic() >= until, within=for_s + 10, every=0.5, what="more load")

    def _kill_a_slot(self, dice: random.Random) -> None:
        def one() -> psutil.Process | None:
            found = [worker for worker in self.mirror.workers() if self.mirror.is_connected(worker)]
            return dice.choice(found) if found else None

        wait_until(one, within=BACK_WITHIN, what="a slot to kill").kill()

    def _kill_the_jvm(self, dice: random.Random) -> None:
        self.mirror.jvm().kill()
        assert self.mirror.data_plane.wait(60) == 1
        self.mirror.data_plane.start()


def records_of(counts: Sequence[Count]) -> int:
    return min(count.records for count in counts)


def test_pair_under_faults_loses_and_doubles_nothing(brokers: Sequence[Broker], tmp_path: Path) -> None:
    counts = Mesh(brokers[:2], [(0, 1), (1, 0)], tmp_path).run(1)
    assert len(counts) == 2
    assert records_of(counts) > RATE * LASTS_S / 2


def test_a_pair_whose_partitions_have_ids_of_their_own(brokers: Sequence[Broker], tmp_path: Path) -> None:
    line = "{alias}.exactly.once.source.support = enabled"
    counts = Mesh(brokers[:2], [(0, 1), (1, 0)], tmp_path, more=line).run(5, BRIEFLY_S)
    assert len(counts) == 2
    assert records_of(counts) > RATE * BRIEFLY_S / 2


def test_a_full_mesh_of_three(brokers: Sequence[Broker], tmp_path: Path) -> None:
    ways = [(a, b) for a in range(3) for b in range(3) if a != b]
    counts = Mesh(brokers, ways, tmp_path).run(2)
    assert len(counts) == 6
    assert records_of(counts) > RATE * LASTS_S / 2


def test_a_ring_of_three(brokers: Sequence[Broker], tmp_path: Path) -> None:
    """What is written on A comes to C by way of B only, and no further."""
    ring = Mesh(brokers, [(0, 1), (1, 2), (2, 0)], tmp_path)
    counts = ring.run(3)
    assert len(counts) == 6
    assert records_of(counts) > RATE * LASTS_S / 2
    for flow in ring.flows:
        origins = {row.origin_cluster_id for row in flow.rows(Origin)}
        assert len(origins) == 2, f"{flow} has an id for what is written on its source and one for what comes through"


def test_a_hub_between_two_that_do_not_know_each_other(brokers: Sequence[Broker], tmp_path: Path) -> None:
    """Spokes send what is their own, the hub passes everything on."""
    a, b, c = 0, 1, 2
    hub = Mesh(brokers, [(a, b), (b, a), (b, c), (c, b)], tmp_path, relaying=(1, 2))
    counts = hub.run(4, BRIEFLY_S)
    assert len(counts) == 6
    assert all(sum(end_offsets(at, hub.topic).values()) > 3 * RATE * BRIEFLY_S / 2 for at in hub.at)
