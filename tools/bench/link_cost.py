"""`python -m tools.bench.link_cost`: what goes over the links of a flow, and how much of that crosses zones.

A source of three brokers, each in a rack of its own, and a target of one. The same topic is copied with some settings,
one after the other, by `lockstep run` whose place is the second rack. The bytes are those of
`lockstep_link_bytes_total`, as the row of the slot has them.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import NewTopic

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import SlotStatus
from tests.faults.deployment import THREE
from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import admin, end_offsets, wait_for_brokers
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import two_cluster_file
from tools.bench.orders import load

NODES = (1, 2, 3)
OUR_RACK = "rack-2"
PARTITIONS = 6
WITHIN_S = 180.0
RACK = "{source}.consumer.client.rack = " + OUR_RACK
CASES: Mapping[str, tuple[str, ...]] = {
    "as the brokers' clients do by default": (),
    "client.rack": (RACK,),
    "client.rack, recompressed to zstd": (
        RACK,
        "{flow}.producer.override.compression.type = zstd",
        "{flow}.lockstep.recompress = true",
    ),
}

LinkCost = tuple[int, int, int]
"""Bytes of one copy: received, those of it that came from other racks than ours, and sent to the target."""


@contextmanager
def clusters() -> Iterator[tuple[str, str]]:
    """Start three brokers in three racks and one without; yield both addresses."""
    racks = {**THREE, "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    quorum, target = Quorum.with_nodes(len(NODES)), Broker("O")
    three = [
        Broker(f"T{node}", properties={**racks, "broker.rack": f"rack-{node}"}, quorum=quorum, node=node)
        for node in NODES
    ]
    with started(target, *three):
        source = ",".join(broker.bootstrap for broker in three)
        wait_for_brokers(source, len(NODES))
        yield source, target.bootstrap


def measure(folder: Path, number: int, bootstrap: Sequence[str], topic: str, lines: Sequence[str]) -> LinkCost:
    """Copy the topic by a flow of its own with these lines, from its beginning to its end."""
    flow = Flow(f"a{number}", f"b{number}")
    plain = ("tasks.max = 1", f"{flow}.enabled = true", f"{flow}.topics = {topic}")
    quiet = ("heartbeats.replication.enabled = false", "offset-syncs.topic.replication.factor = 1")
    named = [line.format(flow=flow, source=flow.source) for line in lines]
    (own := folder / str(number)).mkdir()
    both = (flow.source, bootstrap[0]), (flow.target, bootstrap[1])
    mirrored, records = MirroredFlow(flow, *bootstrap), sum(end_offsets(bootstrap[0], topic).values())

    def is_copied() -> bool:
        return sum(progress.upstream + 1 for progress in mirrored.progress(topic).values()) >= records

    with Mirror(two_cluster_file(own, *both, *plain, *quiet, *named), [mirrored]):
        wait_until(is_copied, within=WITHIN_S)
        *_, sent = _cost(mirrored)
        wait_until(lambda: _cost(mirrored)[2] > sent, within=WITHIN_S)  # the row follows the last batch
        return _cost(mirrored)


def _cost(mirrored: MirroredFlow) -> LinkCost:
    counts = [count for row in mirrored.rows(SlotStatus) for count in row.link_bytes]
    source = mirrored.flow.source
    received = {rack: n for alias, way, rack, n in counts if (alias, way) == (source, "received")}
    sent = sum(n for alias, way, _, n in counts if alias != source and way == "sent")
    return sum(received.values()), sum(n for rack, n in received.items() if rack != OUR_RACK), sent


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.link_cost", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000, help="orders of 470 bytes (300,000)")
    parser.add_argument("--codec", default="lz4", help="of the producers: none, gzip, snappy, lz4 or zstd (lz4)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lockstep-link-") as work, clusters() as bootstrap:
        turns = [[NODES[(number + step) % len(NODES)] for step in range(len(NODES))] for number in range(PARTITIONS)]
        new = NewTopic("orders", num_partitions=PARTITIONS, replica_assignment=turns)  # each rack leads in turn
        client = admin(bootstrap[0])
        client.create_topics([new])["orders"].result(WITHIN_S)
        loaded = load(bootstrap[0], "orders", records=chosen.records, partitions=PARTITIONS, codec=chosen.codec)
        sys.stdout.write(f"records: {loaded.record_bytes * loaded.records / 1e6:.1f} MB uncompressed, {chosen.codec}\n")
        for number, (case, lines) in enumerate(CASES.items()):
            received, across, sent = measure(Path(work), number, bootstrap, "orders", lines)
            sys.stdout.write(
                f"{case}: {received / 1e6:.1f} MB received, {across / 1e6:.1f} MB of it from other racks; "
                f"{sent / 1e6:.1f} MB sent\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
