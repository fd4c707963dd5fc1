"""A fleet of flows that is written down and not copied: real topics on real clusters, real rows in real state topics.

All sources are one cluster, and so are all targets: `s00->t` and `s01->t` read the same topics, and each has copies of
its own. No service runs. `FleetScene.move` writes what slots write while they copy.
"""

import itertools
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lockstep_kafka.topics.control_topics import flow_topics
from lockstep_state.events import Event
from lockstep_state.names import Flow, events_topic, state_topic
from lockstep_state.rows.state_rows import (
    Assignment,
    ClusterCapabilities,
    GroupStatus,
    Leader,
    MirroredTopic,
    PartitionProgress,
    Row,
    SlotStatus,
    SourceGroupsStatus,
    VerifiedPartition,
)
from tests.support.broker import Broker, started
from tests.support.clusters import TIMEOUT, Record, produce
from tests.support.eventually import wait_until

TARGET = "t"
GROUPS = ("billing", "fraud-check", "reports")
INSTANCE = "fleet"
RECORDS = 5
SMALL_INDEX = {"segment.index.bytes": "1024"}
CREATED_AT_ONCE = 50
CREATED_WITHIN = 300.0


def now_ms() -> int:
    return round(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class FleetSize:
    """The number of flows, of topics in each, and of partitions in each topic."""

    flows: int
    topics: int
    partitions: int

    @property
    def total(self) -> int:
        return self.flows * self.topics * self.partitions


class FleetScene:
    """Two clusters, the file of all flows, and what is written about them."""

    def __init__(self, folder: Path, a: Broker, b: Broker, size: FleetSize, *, stem: str = "load") -> None:
        self.a, self.b, self.size, self.stem = a, b, size, stem
        self._held_back: set[tuple[Flow, str, int]] = set()
        self.flows = [Flow(f"s{number:02d}", TARGET) for number in range(size.flows)]
        self.topics = [f"{stem}-{number:02d}" for number in range(size.topics)]
        self.file = folder / "mm2.properties"
        aliases = [flow.source for flow in self.flows]
        lines = [f"clusters = {', '.join([*aliases, TARGET])}"]
        lines += [f"{alias}.bootstrap.servers = {a.bootstrap}" for alias in aliases]
        lines += [f"{TARGET}.bootstrap.servers = {b.bootstrap}", f"topics = {stem}-.*", "groups = .*"]
        lines += [f"{flow}.enabled = true" for flow in self.flows]
        lines += [
            f"{factor}.replication.factor = 1"
            for factor in ("heartbeats.topic", "checkpoints.topic", "offset-syncs.topic", "offset.storage")
        ]
        self.file.write_text("\n".join([*lines, "replication.factor = 1"]) + "\n")

    def copy_of(self, flow: Flow, topic: str) -> str:
        return f"{flow.source}.{topic}"

    def create(self) -> None:
        """Create all topics with some records in each partition, and write all rows. Raises KafkaException."""
        partitions = self.size.partitions
        self._create(self.a, [NewTopic(name, partitions, 1, config=SMALL_INDEX) for name in self.topics])
        copies = [self.copy_of(flow, topic) for flow in self.flows for topic in self.topics]
        self._create(self.b, [NewTopic(name, partitions, 1, config=SMALL_INDEX) for name in copies])
        control = [topic for flow in self.flows for topic in flow_topics(flow, None, 1)]
        self._create(
            self.b, [NewTopic(topic.name, topic.partitions, 1, config=topic.creation_configs) for topic in control]
        )
        for broker, names in ((self.a, self.topics), (self.b, copies)):
            records = self._records()
            for name in names:
                produce(broker.bootstrap, name, records)
        self.write({flow: [*self._rows(flow)] for flow in self.flows})
        for flow in self.flows:
            created = [
                Event(
                    kind="TopicCreated",
                    service="topic-sync",
                    flow=str(flow),
                    subject=topic,
                    at_ms=now_ms(),
                    instance=INSTANCE,
                )
                for topic in self.topics
            ]
            produce(self.b.bootstrap, events_topic(flow), [Record(*event.encode()) for event in created])

    def write(self, rows: Mapping[Flow, Sequence[Row]]) -> None:
        """Append rows to the state topic of each flow, and wait for the acknowledgements."""
        producer = Producer({"bootstrap.servers": self.b.bootstrap, "queue.buffering.max.messages": "1000000"})
        for flow, written in rows.items():
            for row in written:
                key, value = row.encode()
                producer.produce(state_topic(flow), value, key, 0)
            producer.poll(0)
        assert producer.flush(TIMEOUT) == 0, "rows were not acknowledged"

    def move(self, records: int = 1, *, share: float = 1.0) -> None:
        """Write what slots write each second: that they live, and the progress of a share of the partitions."""
        moved = max(1, round(self.size.topics * self.size.partitions * share))
        held_back = set(self._held_back)
        self.write(
            {
                flow: [
                    self._slot(),
                    *(
                        row
                        for row in itertools.islice(self._progress(records), moved)
                        if (flow, row.topic, row.partition) not in held_back
                    ),
                ]
                for flow in self.flows
            }
        )

    @contextmanager
    def held_back(self, flow: Flow, topic: str, partition: int) -> Iterator[None]:
        """Let `move` leave a partition alone until the end: the test writes its row."""
        self._held_back.add((flow, topic, partition))
        try:
            yield
        finally:
            self._held_back.remove((flow, topic, partition))
            self.move()

    @contextmanager
    def moving(self, *, every_s: float = 1.0, share: float = 1.0) -> Iterator[None]:
        """Call `move` again and again until the end. Raises what it raised."""
        ended, failures = threading.Event(), list[Exception]()

        def go_on() -> None:
            try:
                for number in itertools.count(1):
                    self.move(number, share=share)
                    if ended.wait(every_s):
                        return
            except Exception as exc:  # noqa: BLE001 - raised at the end
                failures.append(exc)

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if failures:
            raise failures[0]

    def _records(self) -> list[Record]:
        return [
            Record(b"%d" % n, b"record %d" % n, partition=partition)
            for partition in range(self.size.partitions)
            for n in range(RECORDS)
        ]

    def _rows(self, flow: Flow) -> Iterator[Row]:
        at_ms = now_ms()
        for service in ("topic-sync", "acl-sync", "heartbeat", "data-plane"):
            yield Leader(service=service, instance=INSTANCE, at_ms=at_ms)
        for alias in (flow.source, flow.target):
            yield ClusterCapabilities(alias=alias, product="Kafka 4.1", at_ms=at_ms)
        for topic in self.topics:
            yield MirroredTopic(
                source_topic=topic,
                target_topic=self.copy_of(flow, topic),
                partitions=self.size.partitions,
                target_partitions=self.size.partitions,
                at_ms=at_ms,
            )
        held = tuple((topic, number) for topic in self.topics for number in range(self.size.partitions))
        yield Assignment(slot=0, generation=1, partitions=held, at_ms=at_ms)
        yield self._slot()
        yield from self._progress(0)
        for group in GROUPS:
            copy = self.copy_of(flow, self.topics[0])
            positions = tuple((copy, number, RECORDS, RECORDS) for number in range(self.size.partitions))
            yield GroupStatus(
                group=group,
                phase="translated",
                synced=True,
                positions=positions,
                exact=self.size.partitions,
                at_ms=at_ms,
                read_ms=at_ms,
            )
        for share in range(6):
            yield SourceGroupsStatus(share=share, phase="read", read_ms=at_ms, at_ms=at_ms)
        for topic, number in held:
            yield VerifiedPartition(
                topic=topic,
                partition=number,
                first=0,
                upstream=RECORDS - 1,
                downstream=RECORDS - 1,
                records=RECORDS,
                verified_ms=at_ms - 720_000,
                at_ms=at_ms,
            )

    def _slot(self) -> SlotStatus:
        held = self.size.topics * self.size.partitions
        return SlotStatus(slot=0, phase="started", run=INSTANCE, generation=1, partitions=held, at_ms=now_ms())

    def _progress(self, records: int) -> Iterator[PartitionProgress]:
        at_ms = now_ms()
        row = PartitionProgress(
            topic="",
            partition=0,
            upstream=RECORDS - 1,
            downstream=RECORDS - 1,
            producer_id=4_001,
            sequence=RECORDS - 1,
            open_run=(0, 0, RECORDS),
            source_end=RECORDS,
            records=RECORDS + records,
            counts_since=at_ms - 60_000,
            slot=0,
            at_ms=at_ms,
        )
        for topic in self.topics:
            for number in range(self.size.partitions):
                yield replace(row, topic=topic, partition=number)

    def _create(self, broker: Broker, topics: Sequence[NewTopic]) -> None:
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        for some in _chunks(topics, CREATED_AT_ONCE):
            for created in client.create_topics(some, request_timeout=TIMEOUT, operation_timeout=TIMEOUT).values():
                created.result(CREATED_WITHIN)

        def led() -> bool:
            seen = client.list_topics(timeout=TIMEOUT).topics
            return all(
                topic.topic in seen
                and len(seen[topic.topic].partitions) == topic.num_partitions
                and all(partition.leader >= 0 for partition in seen[topic.topic].partitions.values())
                for topic in topics
            )

        wait_until(led, within=CREATED_WITHIN, every=0.2, what=f"{len(topics)} topics are led")


def _chunks(topics: Sequence[NewTopic], size: int) -> Iterable[list[NewTopic]]:
    for first in range(0, len(topics), size):
        yield list(topics[first : first + size])


@contextmanager
def large_brokers() -> Iterator[tuple[Broker, Broker]]:
    """Yield a source and a target that bear ten thousand partitions."""
    a, b = Broker("A"), Broker("B", heap="1500m")
    with started(a, b):
        yield a, b
