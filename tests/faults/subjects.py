"""What each control service changes on a cluster, as a subject of the faults of its replicas."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from lockstep_state.codecs.mm2_codec import OffsetSync, decode_checkpoint, decode_heartbeat, encode_offset_sync
from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow, events_topic, state_topic
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import Leader, MirroredTopic, Row, decode_row
from tests.support.broker import Broker
from tests.support.clusters import Record, admin, commit_offset, create_topic, delete_topic, produce
from tests.support.control import last_row, read_so_far
from tests.support.eventually import wait_until
from tests.support.services import two_cluster_file

WITHIN = 30.0
"""Seconds for what has to happen; it takes a few, unless the machine is shared."""

ADMIN_S = 20.0
ANYBODY: Any = None
"""In a filter; the library's types do not know it."""

until = partial(wait_until, within=WITHIN, every=0.1)


@dataclass
class Subject:
    """One service in one flow between A and B, under aliases and names that nobody else uses."""

    a: Broker
    b: Broker
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:6])
    service: ClassVar[str] = ""
    lines: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self.flow = Flow(f"s{self.mark}", f"t{self.mark}")

    @property
    def module(self) -> str:
        return "lockstep_" + self.service.replace("-", "_")

    def topic(self, number: int) -> str:
        return f"{self.mark}-t{number}"

    def remote(self, number: int) -> str:
        return f"{self.flow.source}.{self.topic(number)}"

    def prepare(self) -> None:
        """What the service needs to be there."""

    def work(self, number: int) -> None:
        """Give it something to do, of which `done` says whether it was done."""
        raise NotImplementedError

    def done(self, number: int) -> bool:
        """Whether that can be seen on the clusters."""
        raise NotImplementedError

    def move_on(self, number: int) -> None:
        """Change the source so that who still goes by what it was after `work(number)` does harm."""

    def moved_on(self, number: int) -> bool:
        """Whether the leader has followed."""
        return True

    def standing(self) -> object:
        """All that the service has brought about on the target, and that stands still while there is nothing to do."""
        return None

    # -- what it wrote down --------------------------------------------------------------------------------------------

    def file(self, folder: Path, *, proxied: bool = False) -> Path:
        """`proxied`: behind both proxies."""
        assert self.a.proxy is not None
        assert self.b.proxy is not None
        folder.mkdir(exist_ok=True)
        return two_cluster_file(
            folder,
            (self.flow.source, self.a.proxy.bootstrap if proxied else self.a.bootstrap),
            (self.flow.target, self.b.proxy.bootstrap if proxied else self.b.bootstrap),
            f"{self.flow}.enabled = true",
            f"topics = {self.mark}-.*",
            f"groups = {self.mark}-.*",
            "heartbeats.replication.enabled = false",
            *self.lines,
        )

    def rows(self) -> list[tuple[int, Row]]:
        """Every row that was ever written, with its offset."""
        wrong = []
        for record in read_so_far(self.b.bootstrap, state_topic(self.flow)):
            row = decode_row(record.key or b"", record.value)
            if row is not None:
                wrong.append((record.offset or 0, row))
        return wrong

    def leaders(self) -> Mapping[int, Leader]:
        """Every leader row, by its term."""
        return {offset: row for offset, row in self.rows() if isinstance(row, Leader)}

    def events(self) -> list[Event]:
        return [decode_event(r.value or b"") for r in read_so_far(self.b.bootstrap, events_topic(self.flow))]

    def said_twice(self) -> list[Row]:
        """Rows that say no more than the one under the same key that they follow."""
        last: dict[str, Row] = {}
        twice = []
        for _, row in self.rows():
            content = replace(row, at_ms=0, term=0)
            if not isinstance(row, Leader) and last.get(row.key()) == content:
                twice.append(row)
            last[row.key()] = content
        return twice


class Topics(Subject):
    """A new topic is a topic to create."""

    service = "topic-sync"

    def work(self, number: int) -> None:
        create_topic(self.a.bootstrap, self.topic(number))

    def done(self, number: int) -> bool:
        return self.remote(number) in self._topics()

    def move_on(self, number: int) -> None:
        """The topic is gone on both sides: who believes that it is there would create it."""
        delete_topic(self.a.bootstrap, self.topic(number))

        def seen() -> bool:
            row = last_row(self.b.bootstrap, self.flow, f"topic/{self.topic(number)}")
            return isinstance(row, MirroredTopic) and row.phase == "deleted"

        until(seen, what="the leader sees that the topic is gone")
        delete_topic(self.b.bootstrap, self.remote(number))

    def standing(self) -> object:
        client = admin(self.b.bootstrap)
        there = {name: topic for name, topic in self._topics().items() if name.startswith(f"{self.flow.source}.")}
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in there]
        configs = client.describe_configs(asked) if asked else {}
        return {
            one.name: (len(there[one.name].partitions), {key: e.value for key, e in future.result(ADMIN_S).items()})
            for one, future in configs.items()
        }

    def _topics(self) -> dict[str, Any]:
        return dict(admin(self.b.bootstrap).list_topics(timeout=ADMIN_S).topics)


class Acls(Subject):
    """A new binding is one to add."""

    service = "acl-sync"
    lines = ("sync.topic.acls.interval.seconds = 1",)

    def work(self, number: int) -> None:
        client = admin(self.a.bootstrap)
        for future in client.create_acls([self._binding(self.topic(number))]).values():
            future.result(ADMIN_S)

    def done(self, number: int) -> bool:
        return self.remote(number) in self._named()

    def move_on(self, number: int) -> None:
        """The binding is gone on both sides: who believes that it is there would add it."""
        for broker, name in ((self.a, self.topic(number)), (self.b, self.remote(number))):
            client = admin(broker.bootstrap)
            for future in client.delete_acls([self._filter(name)]).values():
                future.result(ADMIN_S)

    def standing(self) -> object:
        return self._named()

    def _named(self) -> frozenset[str]:
        client = admin(self.b.bootstrap)
        bindings = client.describe_acls(self._filter(ANYBODY)).result(ADMIN_S)
        return frozenset(binding.name for binding in bindings if binding.name.startswith(f"{self.flow.source}."))

    def _filter(self, name: str) -> AclBindingFilter:
        kind, pattern = ResourceType.TOPIC, ResourcePatternType.LITERAL
        return AclBindingFilter(kind, name, pattern, ANYBODY, ANYBODY, AclOperation.ANY, AclPermissionType.ANY)

    def _binding(self, name: str) -> AclBinding:
        kind, pattern = ResourceType.TOPIC, ResourcePatternType.LITERAL
        return AclBinding(kind, name, pattern, "User:anna", "*", AclOperation.READ, AclPermissionType.ALLOW)


class Checkpoints(Subject):
    """Groups that went on are checkpoints to write and groups to move. Each time there is a sync of just that place."""

    service = "checkpoint"
    groups = 12
    records = 1000
    lines = (
        "checkpoints.topic.replication.factor = 1",
        "offset-syncs.topic.replication.factor = 1",
        "emit.checkpoints.interval.seconds = 1",
        "refresh.groups.interval.seconds = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.named = [f"{self.mark}-g{number}" for number in range(self.groups)]

    def prepare(self) -> None:
        for broker, name in ((self.a, self.topic(0)), (self.b, self.remote(0))):
            create_topic(broker.bootstrap, name)
            produce(broker.bootstrap, name, [Record(value=b"x")] * self.records)
        create_topic(self.a.bootstrap, self._syncs)

    def work(self, number: int) -> None:
        place = self._place(number)
        key, value = encode_offset_sync(OffsetSync(self.topic(0), 0, UpstreamOffset(place), DownstreamOffset(place)))
        produce(self.a.bootstrap, self._syncs, [Record(key=key, value=value, partition=0)])
        for group in self.named:
            commit_offset(self.a.bootstrap, group, self.topic(0), 0, place)

    def done(self, number: int) -> bool:
        return set(self.written().get(self._place(number), ())) == set(self.named) and all(
            (at or 0) >= self._place(number) for at in self.on_target().values()
        )

    def move_on(self, number: int) -> None:
        self.work(number + 1)

    def moved_on(self, number: int) -> bool:
        return self.done(number + 1)

    def standing(self) -> object:
        return self.written(), self.on_target()

    def written(self) -> Mapping[int, Sequence[str]]:
        """The groups for which a checkpoint of an upstream offset was written, one for each time."""
        found: dict[int, list[str]] = {}
        for record in read_so_far(self.b.bootstrap, f"{self.flow.source}.checkpoints.internal"):
            checkpoint = decode_checkpoint(record.key, record.value)
            found.setdefault(int(checkpoint.upstream), []).append(checkpoint.group)
        return found

    def on_target(self) -> Mapping[str, int | None]:
        """Where each group stands there."""
        client = admin(self.b.bootstrap)
        found: dict[str, int | None] = {}
        for group in self.named:
            asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            places = asked[group].result(ADMIN_S).topic_partitions
            found[group] = places[0].offset if places else None
        return found

    @property
    def _syncs(self) -> str:
        return f"mm2-offset-syncs.{self.flow.target}.internal"

    def _place(self, number: int) -> int:
        return 100 + 10 * number


class Beats(Subject):
    """There is always a beat to write."""

    service = "heartbeat"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._before: dict[int, int] = {}

    def work(self, number: int) -> None:
        self._before[number] = self._beats()

    def done(self, number: int) -> bool:
        return self._beats() > self._before[number]

    def _beats(self) -> int:
        decoded = (decode_heartbeat(r.key, r.value) for r in read_so_far(self.b.bootstrap, "heartbeats"))
        return sum((one.source, one.target) == (self.flow.source, self.flow.target) for one in decoded)


SUBJECTS: Mapping[str, Callable[[Broker, Broker], Subject]] = {
    kind.service: kind for kind in (Topics, Acls, Checkpoints, Beats)
}
