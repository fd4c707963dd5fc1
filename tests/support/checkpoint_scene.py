"""A flow with groups on its source, and the checkpoint service that translates them."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException

from lockstep_state.codecs.mm2_codec import Checkpoint, OffsetSync, decode_checkpoint, encode_offset_sync
from lockstep_state.events import Event
from lockstep_state.names import Flow
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    create_topic,
    produce,
)
from tests.support.control import events, last_row, read_so_far
from tests.support.eventually import wait_until
from tests.support.services import ServiceProcess, two_cluster_file

WITHIN = 90.0
"""Seconds for what has to happen; it takes one or two, unless the machine is shared."""

until = partial(wait_until, within=WITHIN)

SETTLED = 4.0
"""Seconds in which several rounds of a second each have looked at everything: for what must *not* happen."""


@dataclass
class Scene:
    """One flow between A and B under aliases, a topic and a group that no other test uses."""

    folder: Path
    a: Broker
    b: Broker
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:6])
    location: str = "source"
    group_sync: bool = True
    lines: tuple[str, ...] = ()
    target_address: str = ""
    """How the service reaches B; "": as tests do."""

    def __post_init__(self) -> None:
        self.source, self.target = f"s{self.mark}", f"t{self.mark}"
        self.flow = Flow(self.source, self.target)
        self.topic, self.group = f"orders-{self.mark}", f"billing-{self.mark}"
        self.remote = f"{self.source}.{self.topic}"
        self.checkpoints = f"{self.source}.checkpoints.internal"
        other, self.syncs_on = (self.target, self.a) if self.location == "source" else (self.source, self.b)
        self.syncs = f"mm2-offset-syncs.{other}.internal"
        self._fill_topic()

    @classmethod
    def with_syncs(cls, folder: Path, a: Broker, b: Broker) -> "Scene":
        """Create the topic of offset syncs, compacted."""
        scene = cls(folder, a, b)
        create_topic(a.bootstrap, scene.syncs, configs={"cleanup.policy": "compact"})
        return scene

    def with_second_topic(self) -> "Scene":
        """Return a scene of the same flow and group whose topic is another one of it."""
        second = copy(self)
        second.topic, second.remote = f"{self.topic}-second", f"{self.remote}-second"
        second._fill_topic()
        return second

    def _fill_topic(self) -> None:
        for broker, name in ((self.a, self.topic), (self.b, self.remote)):
            create_topic(broker.bootstrap, name, partitions=2)
            produce(broker.bootstrap, name, [Record(value=b"x", partition=n % 2) for n in range(2200)])

    def file(self) -> Path:
        return two_cluster_file(
            self.folder,
            (self.source, self.a.bootstrap),
            (self.target, self.target_address or self.b.bootstrap),
            f"{self.flow}.enabled = true",
            "topics = orders-.*",
            f"groups = .*-{self.mark}",
            "checkpoints.topic.replication.factor = 1",
            "offset-syncs.topic.replication.factor = 1",
            f"offset-syncs.topic.location = {self.location}",
            "emit.checkpoints.interval.seconds = 1",
            f"sync.group.offsets.enabled = {str(self.group_sync).lower()}",
            "sync.group.offsets.interval.seconds = 1",
            *self.lines,
        )

    @contextmanager
    def service(self) -> Iterator[ServiceProcess]:
        with ServiceProcess("lockstep_checkpoint", self.file(), str(self.flow)) as process:
            yield process

    def sync(self, *pairs: tuple[int, int], partition: int = 0) -> None:
        """Write offset syncs as MM2 does."""
        records = []
        for up, down in pairs:
            key, value = encode_offset_sync(
                OffsetSync(self.topic, partition, UpstreamOffset(up), DownstreamOffset(down))
            )
            records.append(Record(key=key, value=value, partition=0))
        produce(self.syncs_on.bootstrap, self.syncs, records)

    def commit(self, offset: int, partition: int = 0) -> None:
        commit(self.a, self.group, self.topic, partition, offset)

    def checkpoint(self, up: int, down: int, partition: int = 0) -> Checkpoint:
        return Checkpoint(self.group, self.remote, partition, UpstreamOffset(up), DownstreamOffset(down), "")

    def written(self) -> list[Record]:
        """Return the checkpoints topic as it lies on the target."""
        return read_so_far(self.b.bootstrap, self.checkpoints)

    def emitted(self, partition: int = 0) -> list[tuple[int, int]]:
        checkpoints = [decode_checkpoint(record.key, record.value) for record in self.written()]
        return [(record.upstream, record.downstream) for record in checkpoints if record.partition == partition]

    def on_target(self, partition: int = 0, *, group: str = "") -> int | None:
        return committed_offset(self.b.bootstrap, group or self.group, self.remote, partition)

    def row(self) -> GroupStatus | None:
        row = last_row(self.b.bootstrap, self.flow, f"group/{self.group}")
        return row if isinstance(row, GroupStatus) else None

    def events(self, kind: str) -> list[Event]:
        return events(self.b.bootstrap, self.flow, kind)


def commit(broker: Broker, group: str, topic: str, partition: int, offset: int) -> None:
    """Commit as a consumer would, once the group's coordinator has settled (a new cluster's moves at first)."""

    def committed() -> bool:
        try:
            commit_offset(broker.bootstrap, group, topic, partition, offset)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.NOT_COORDINATOR:
                return False
            raise
        return True

    until(committed)


@contextmanager
def reading(broker: Broker, group: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """Yield a member of the group that has its partitions and commits nothing."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.2) is not None, what="the member reads")
    try:
        yield consumer
    finally:
        consumer.close()
