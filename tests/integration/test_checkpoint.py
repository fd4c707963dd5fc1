"""The checkpoint service as a process between two real clusters (`mm2-behaviour.md` §3, §1.3, §1.4)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from lockstep_protocol.events import Event
from lockstep_protocol.mm2_codec import decode_checkpoint, encode_checkpoint, encode_offset_sync
from lockstep_protocol.mm2_records import Checkpoint, OffsetSync
from lockstep_protocol.names import COMMANDS_PARTITIONS, Flow, state_topic
from lockstep_protocol.offsets import DownstreamOffset, UpstreamOffset
from lockstep_protocol.rows.state_rows import GroupStatus, MirroredTopic
from tests.support.acls import acl, add, remove
from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    admin,
    commit_offset,
    committed_offset,
    create_topic,
    delete_records,
    delete_topic,
    produce,
    produce_transaction,
    read_topic,
)
from tests.support.control import events, last_row, read_so_far
from tests.support.eventually import wait_until
from tests.support.metrics import wait_for_all_declared, wait_for_value
from tests.support.offset_truth import FIRST, Copied
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.wire import join_share_group

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

    def __post_init__(self) -> None:
        self.source, self.target = f"s{self.mark}", f"t{self.mark}"
        self.flow = Flow(self.source, self.target)
        self.topic, self.group = f"orders-{self.mark}", f"billing-{self.mark}"
        self.remote = f"{self.source}.{self.topic}"
        self.checkpoints = f"{self.source}.checkpoints.internal"
        other, self.syncs_on = (self.target, self.a) if self.location == "source" else (self.source, self.b)
        self.syncs = f"mm2-offset-syncs.{other}.internal"
        for broker, name in ((self.a, self.topic), (self.b, self.remote)):
            create_topic(broker.bootstrap, name, partitions=2)
            produce(broker.bootstrap, name, [Record(value=b"x", partition=n % 2) for n in range(2200)])

    def file(self) -> Path:
        return two_cluster_file(
            self.folder,
            (self.source, self.a.bootstrap),
            (self.target, self.b.bootstrap),
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
        """The checkpoints topic as it lies on the target."""
        return read_so_far(self.b.bootstrap, self.checkpoints)

    def emitted(self, partition: int = 0) -> list[tuple[int, int]]:
        found = [decode_checkpoint(one.key, one.value) for one in self.written()]
        return [(one.upstream, one.downstream) for one in found if one.partition == partition]

    def on_target(self, partition: int = 0) -> int | None:
        return committed_offset(self.b.bootstrap, self.group, self.remote, partition)

    def row(self) -> GroupStatus | None:
        row = last_row(self.b.bootstrap, self.flow, f"group/{self.group}")
        return row if isinstance(row, GroupStatus) else None

    def events(self, kind: str) -> list[Event]:
        return events(self.b.bootstrap, self.flow, kind)


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Scene:
    one = Scene(tmp_path, broker_a, broker_b)
    create_topic(broker_a.bootstrap, one.syncs, configs={"cleanup.policy": "compact"})
    return one


def test_mm2_034_038_050_a_checkpoint_lies_on_the_target_byte_for_byte(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(150)
    began = time.time_ns() // 1_000_000
    with scene.service() as process:
        until(lambda: scene.emitted(), what="a checkpoint")
        (record,) = scene.written()
        assert (record.key, record.value) == encode_checkpoint(scene.checkpoint(150, 91))
        assert (record.partition, record.headers) == (0, ())
        assert record.timestamp_ms is not None
        assert began <= record.timestamp_ms <= time.time_ns() // 1_000_000
        row = until(scene.row, what="the group's row")
        assert (row.phase, row.positions) == ("translated", ((scene.remote, 0, 150, 91),))
        assert [event.subject for event in scene.events("GroupFound")] == [scene.group]
        assert process.stop() == 0


def test_mm2_166_lagging_group_is_at_the_exact_record_by_runs(scene: Scene) -> None:
    """Rows as the data plane writes them: a one-way flow whose source has a marker behind every 20 records, and a
    second partition without any."""
    source, target = f"{scene.topic}-tx", f"{scene.remote}-tx"
    for broker, name in ((scene.a, source), (scene.b, target)):
        create_topic(broker.bootstrap, name, partitions=2)
    for first in range(0, 100, 20):
        numbered = [Record(value=b"%d" % n, partition=0) for n in range(first, first + 20)]
        produce_transaction(scene.a.bootstrap, source, numbered)
    records = read_topic(scene.a.bootstrap, source)
    produce(scene.b.bootstrap, target, [Record(value=record.value, partition=0) for record in records])
    copied = Copied()
    copied.copies([(record.offset or 0, place, 1) for place, record in enumerate(records)])
    copied.passes_over(1)
    copied.writes()
    topic = MirroredTopic(
        source_topic=source, target_topic=target, source_topic_id="source", target_topic_id="target", partitions=2
    )
    rows = [replace(row, topic=source).encode() for row in (*copied.log, replace(FIRST, partition=1))]
    key, value = encode_offset_sync(OffsetSync(source, 0, UpstreamOffset(0), DownstreamOffset(0)))
    produce(scene.a.bootstrap, scene.syncs, [Record(key=key, value=value, partition=0)])
    commit(scene.a, scene.group, source, 0, records[47].offset or 0)
    commit(scene.a, scene.group, source, 1, 0)
    with scene.service() as process:
        process.hear("leading")
        produce(
            scene.b.bootstrap,
            state_topic(scene.flow),
            [Record(key=key, value=value, partition=0) for key, value in (topic.encode(), *rows)],
        )
        until(lambda: committed_offset(scene.b.bootstrap, scene.group, target, 0) == 47, what="the exact place")
        until(lambda: committed_offset(scene.b.bootstrap, scene.group, target, 1) == 0, what="the empty partition")
        row = until(lambda: (row := scene.row()) and not row.behind and row)
        assert (row.exact, row.behind, row.waiting) == (2, (), ())
        assert row.positions == ((target, 0, records[47].offset, 47), (target, 1, 0, 0))
    with Consuming(scene.b.bootstrap, scene.group, target) as consumer:
        assert consumer.next().value() == b"47", "nothing is read again, and nothing left out"


def test_a_group_that_moved_comes_back_at_the_very_record(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    """It was moved from B, where its topic is written, to A, where the flow in the opposite direction copies it to."""
    scene = Scene(tmp_path, broker_a, broker_b)
    there, copy = f"{scene.topic}-back", f"{scene.target}.{scene.topic}-back"
    opposite = Flow(scene.target, scene.source)
    scene.lines = (f"lockstep.checkpoint.opposite = {state_topic(opposite)}",)
    create_topic(scene.b.bootstrap, there)
    produce(scene.b.bootstrap, there, [Record(value=b"%d" % n) for n in range(30)])
    create_topic(scene.a.bootstrap, copy)
    produce(scene.a.bootstrap, copy, [Record(value=b"%d" % n) for n in range(10, 30)])
    copied = Copied(progress=replace(FIRST, upstream=9))
    copied.copies([(10, 0, 20)])
    copied.writes()
    topic = MirroredTopic(
        source_topic=there, target_topic=copy, source_topic_id="source", target_topic_id="target", partitions=1
    )
    rows = [topic, *(replace(row, topic=there) for row in copied.log)]
    commit(scene.a, scene.group, copy, 0, 7)
    with scene.service() as process:
        row = until(lambda: (row := scene.row()) and row.waiting != () and row)
        assert [(name, partition) for name, partition, _ in row.waiting] == [(there, 0)]
        assert "no flow from there to here" in row.waiting[0][2]
        create_topic(scene.a.bootstrap, state_topic(opposite), configs={"cleanup.policy": "compact"})
        records = [Record(key=key, value=value, partition=0) for key, value in (row.encode() for row in rows)]
        produce(scene.a.bootstrap, state_topic(opposite), records)
        until(lambda: committed_offset(scene.b.bootstrap, scene.group, there, 0) == 17, what="the exact place")
        row = until(lambda: (row := scene.row()) and row.exact > 0 and row)
        assert (row.exact, row.behind, row.waiting) == (1, (), ())
        assert process.status(str(scene.flow))["opposite"]["read"]
    with Consuming(scene.b.bootstrap, scene.group, there) as consumer:
        assert consumer.next().value() == b"17", "nothing is read again, and nothing left out"


def test_mm2_035_checkpoints_topic_without_groups_is_empty(scene: Scene) -> None:
    with scene.service() as process:
        process.hear("topic created", topic=scene.checkpoints)
        assert process.ready()
        wait_for_value(process, 2, "lockstep_rounds_total", flow=str(scene.flow), round="checkpoint emission")
        assert not any(process.status(str(scene.flow))["groups"].values())
    assert scene.written() == []


def test_mm2_173_checkpoints_follow_the_group_and_go_back_only_with_it(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90), (200, 180))
    scene.commit(150)
    with scene.service():
        until(lambda: scene.emitted() == [(150, 91)])
        scene.commit(200)
        until(lambda: scene.emitted() == [(150, 91), (200, 180)])
        scene.sync((300, 270))
        scene.commit(320)
        until(lambda: scene.emitted()[2:] == [(320, 271)])
        scene.commit(0)
        until(lambda: scene.emitted()[3:] == [(0, 0)])


@pytest.mark.long
def test_mm2_171_an_untranslatable_position_is_visible_until_a_sync_comes(scene: Scene) -> None:
    scene.commit(150)
    with scene.service():
        row = until(scene.row)
        assert (row.phase, row.reason) == ("waiting", f"{scene.topic}-0: no offset sync yet")
        scene.sync((150, 140))
        until(lambda: scene.emitted() == [(150, 140)])
        row = until(lambda: (found := scene.row()) and found.phase == "translated" and found)
        assert row.reason == ""


@pytest.mark.long
def test_a_missing_syncs_topic_is_created_and_used(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    scene = Scene(tmp_path, broker_a, broker_b)
    scene.commit(10)
    with scene.service() as process:
        process.hear("topic created", topic=scene.syncs)
        scene.sync((10, 9))
        until(lambda: scene.emitted() == [(10, 9)])


def test_mm2_108_110_170_offset_syncs_topic_may_be_on_the_target(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    scene = Scene(tmp_path, broker_a, broker_b, location="target")
    scene.commit(10)
    with scene.service() as process:
        process.hear("topic created", topic=scene.syncs)
        scene.sync((10, 9))
        until(lambda: scene.emitted() == [(10, 9)])
    of_the_source = admin(broker_a.bootstrap).list_topics(timeout=30.0).topics
    assert scene.syncs not in of_the_source


@pytest.mark.long
def test_a_re_created_syncs_topic_is_read_anew(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    with scene.service() as process:
        until(lambda: scene.emitted() == [(100, 90)])
        delete_topic(scene.a.bootstrap, scene.syncs)
        process.hear("offset syncs failing")
        until(lambda: process.status(str(scene.flow))["offset_syncs"]["read"], what="a new topic is followed")
        scene.sync((100, 500), (200, 600))
        scene.commit(200)
        until(lambda: scene.emitted()[-1] == (200, 600))
        process.hear("offset syncs recovered")


@pytest.mark.long
def test_checkpoints_are_written_again_to_a_re_created_topic(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    with scene.service() as process:
        until(lambda: scene.emitted() == [(100, 90)])
        delete_topic(scene.b.bootstrap, scene.checkpoints)
        process.hear("checkpoints topic failing")
        process.hear("checkpoints topic recovered")
        until(lambda: scene.emitted() == [(100, 90)])
        scene.sync((200, 180))
        scene.commit(200)
        until(lambda: scene.emitted() == [(100, 90), (200, 180)])


def test_a_group_appears_on_the_target_and_follows(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90), (200, 180))
    scene.commit(100)
    with scene.service() as process:
        process.hear("leading")
        until(lambda: scene.on_target() == 90)
        until(lambda: (row := scene.row()) and row.synced)
        scene.commit(200)
        until(lambda: scene.on_target() == 180)
        assert [event.subject for event in scene.events("GroupSynced")] == [scene.group]


@pytest.mark.long
def test_mm2_050_metadata_travels_with_the_offset(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    client = Consumer({"bootstrap.servers": scene.a.bootstrap, "group.id": scene.group, "enable.auto.commit": "false"})
    client.commit(offsets=[TopicPartition(scene.topic, 0, 100, metadata="from Änne")], asynchronous=False)
    client.close()
    with scene.service():
        until(lambda: scene.on_target() == 90)
        client = Consumer(
            {"bootstrap.servers": scene.b.bootstrap, "group.id": scene.group, "enable.auto.commit": "false"}
        )
        [found] = client.committed([TopicPartition(scene.remote, 0)], timeout=WITHIN)
        client.close()
        assert (found.offset, found.metadata) == (90, "from Änne")
        (record,) = scene.written()
        assert decode_checkpoint(record.key, record.value).metadata == "from Änne"


@pytest.mark.long
def test_a_new_group_is_on_the_target_within_a_few_intervals(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    with scene.service() as process:
        until(lambda: process.status(str(scene.flow))["offset_syncs"]["read"])
        scene.commit(100)
        began = time.monotonic()
        until(lambda: scene.on_target() == 90)
        assert time.monotonic() - began < 15.0  # 2 s of rounds; the rest is for a machine that has other things to do


def test_a_group_on_the_target_is_never_rewound(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    commit(scene.b, scene.group, scene.remote, 0, 500)
    with scene.service():
        until(lambda: scene.emitted() == [(100, 90)])
        scene.sync((100, 90), partition=1)
        scene.commit(100, partition=1)
        # Partition 1 of the same group is moved: the group was looked at, and partition 0 was left where it stands.
        until(lambda: scene.on_target(1) == 90)
        assert scene.on_target(0) == 500


@pytest.mark.long
def test_group_beyond_its_place_is_named_and_follows_if_set(scene: Scene) -> None:
    """Rewound on the source: kept, and set back once the file says so. Ahead on the target: left alone either way."""
    scene.sync((0, 0), (100, 90), (900, 890))
    scene.sync((0, 0), (500, 490), partition=1)
    scene.commit(900)
    scene.commit(500, partition=1)
    commit(scene.b, scene.group, scene.remote, 1, 990)
    topic = scene.remote
    with scene.service() as process:
        until(lambda: scene.on_target() == 890)
        until(lambda: (row := scene.row()) and row.ahead == ((topic, 1, 990, 490, "ahead-on-target"),))
        scene.commit(0)
        rewound = ((topic, 0, 890, 0, "rewound-on-source"), (topic, 1, 990, 490, "ahead-on-target"))
        until(lambda: (row := scene.row()) and tuple(sorted(row.ahead)) == rewound)
        row = scene.row()
        assert row is not None
        assert row.exact == 0
        held = process.status(str(scene.flow))
        assert held["held"] == {"in-use": 0, "refused": 0, "ahead-on-target": 1, "rewound-on-source": 1}
        assert "rewound on source" in held["left_alone"][scene.group]
        assert scene.on_target() == 890
    scene.lines = ("lockstep.groups.on.rewind = follow",)
    with scene.service():
        until(lambda: scene.on_target() == 0)
        until(lambda: (row := scene.row()) and row.ahead == ((topic, 1, 990, 490, "ahead-on-target"),))
        assert scene.on_target(1) == 990


@pytest.mark.long
def test_a_group_that_the_target_refuses_has_the_reason_in_its_row(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    join_share_group(scene.b.bootstrap, scene.group, scene.remote)
    with scene.service() as process:
        until(lambda: (row := scene.row()) and row.held == "refused")
        row = scene.row()
        assert row is not None
        assert "share group" in row.held_reason
        assert not row.synced
        assert process.status(str(scene.flow))["held"]["refused"] == 1


@pytest.mark.long
def test_a_share_group_of_the_source_is_named_as_not_replicated(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    share = f"share-{scene.mark}"
    join_share_group(scene.a.bootstrap, share, scene.topic)
    with scene.service() as process:
        said = process.hear("group not replicated", subject=share)
        assert said["level"] == "warning"
        until(lambda: process.status(str(scene.flow))["not_replicated"] == [share])
        until(lambda: scene.emitted() == [(100, 90)])


@pytest.mark.long
def test_a_group_with_members_on_the_target_is_left_alone(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    with reading(scene.b, scene.group, scene.remote) as member, scene.service() as process:
        process.hear("group left alone", group=scene.group, reason="it has members on the target")
        until(lambda: scene.emitted() == [(100, 90)])
        started = time.monotonic()
        while time.monotonic() - started < SETTLED:
            member.poll(0.2)
            assert scene.on_target() is None
        member.close()
        until(lambda: scene.on_target() == 90, what="the group is synced once it is empty")


def test_mm2_039_groups_of_the_consumer_protocol_are_groups_like_others(scene: Scene) -> None:
    """KIP-848: members on the source commit, members on the target are left alone, and an empty group is moved."""
    scene.sync((0, 0), (100, 90))
    with (
        reading(scene.a, scene.group, scene.topic, "consumer") as there,
        reading(scene.b, scene.group, scene.remote, "consumer") as here,
    ):
        there.commit(offsets=[TopicPartition(scene.topic, 0, 100)], asynchronous=False)
        with scene.service() as process:
            process.hear("group left alone", group=scene.group, reason="it has members on the target")
            until(lambda: scene.emitted() == [(100, 90)])
            assert scene.on_target() is None
            here.close()
            until(lambda: scene.on_target() == 90, what="the group is synced once it is empty")


@pytest.mark.long
def test_mm2_039_040_a_group_that_consumes_other_topics_gets_no_checkpoint(scene: Scene) -> None:
    """Both groups only commit: they have no protocol."""
    scene.sync((0, 0), (100, 90))
    create_topic(scene.a.bootstrap, other := f"payments-{scene.mark}")
    commit(scene.a, f"aside-{scene.mark}", other, 0, 1)
    scene.commit(100)
    client = admin(scene.a.bootstrap)
    listed = client.list_consumer_groups().result(WITHIN).valid
    simple = {one.group_id: one.is_simple_consumer_group for one in listed if one.group_id.endswith(scene.mark)}
    assert simple == {scene.group: True, f"aside-{scene.mark}": True}
    with scene.service():
        until(lambda: scene.emitted() == [(100, 90)])
        assert {decode_checkpoint(one.key, one.value).group for one in scene.written()} == {scene.group}


@pytest.mark.long
def test_mm2_026_checkpoint_starts_without_permission_to_read_checkpoints(tmp_path: Path, broker_a: Broker) -> None:
    strict = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker("strict", properties=strict) as target:
        scene = Scene(tmp_path, broker_a, target)
        create_topic(broker_a.bootstrap, scene.syncs)
        create_topic(target.bootstrap, scene.checkpoints, configs={"cleanup.policy": "compact"})
        key, value = encode_checkpoint(scene.checkpoint(1, 1, partition=1))
        produce(target.bootstrap, scene.checkpoints, [Record(key=key, value=value, partition=0)])
        mine = partial(acl, scene.checkpoints, principal="User:ANONYMOUS")
        add(target, mine("ALL"), mine("READ", "DENY"))
        scene.sync((0, 0), (50, 45), (100, 90))
        scene.commit(50)
        with scene.service() as process:
            said = process.hear("checkpoints topic failing", within=WITHIN)
            assert f"cluster {scene.target} does not permit READ on topic {scene.checkpoints}" in said["text"]
            # Nothing tells what was written before, so only the newest sync may be used, which is too late for it.
            row = until(scene.row)
            assert (row.phase, row.positions) == ("waiting", ())
            scene.commit(100)
            until(lambda: (found := scene.row()) and found.phase == "translated")
            assert process.ready()
        remove(target, mine("READ", "DENY"))
        until(lambda: scene.emitted() == [(100, 90)])


@pytest.mark.long
def test_checkpoint_without_permission_to_read_has_no_recovery_event(tmp_path: Path, broker_a: Broker) -> None:
    strict = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker("strict", properties=strict) as target:
        scene = Scene(tmp_path, broker_a, target, location="target")
        for topic in (scene.checkpoints, scene.syncs):
            create_topic(target.bootstrap, topic, configs={"cleanup.policy": "compact"})
            mine = partial(acl, topic, principal="User:ANONYMOUS")
            add(target, mine("ALL"), mine("READ", "DENY"))
        with scene.service() as process:
            names = "checkpoints topic", "offset syncs"
            for name in names:
                process.hear(f"{name} failing")
            time.sleep(SETTLED)  # each was tried again by then, after half a second, and one, and two
            assert [len(process.said(f"{name} failing")) for name in names] == [1, 1]
            assert not any(process.said(f"{name} recovered") for name in names)
            for topic in (scene.checkpoints, scene.syncs):
                remove(target, acl(topic, "READ", "DENY", principal="User:ANONYMOUS"))
            for name in names:
                process.hear(f"{name} recovered")


@pytest.mark.long
def test_mm2_057_checkpoints_are_not_written_before_they_are_read(scene: Scene) -> None:
    """Behind a checkpoint lies one of a later version, which cannot be read; then both are taken away."""
    create_topic(scene.b.bootstrap, scene.checkpoints, configs={"cleanup.policy": "compact,delete"})
    key, value = encode_checkpoint(scene.checkpoint(100, 90))
    before = [Record(key=key, value=each, partition=0) for each in (value, b"\0\1" + value[2:])]
    produce(scene.b.bootstrap, scene.checkpoints, before)
    scene.sync((0, 0), (100, 90), (200, 180))
    scene.commit(200)
    with scene.service() as process:
        assert process.wait() == 1
        assert "version 1" in process.text()
        assert [one.value for one in scene.written()] == [one.value for one in before]
        delete_records(scene.b.bootstrap, scene.checkpoints, before=len(before))
        process.start()
        until(lambda: scene.emitted() == [(200, 180)])


@pytest.mark.long
def test_group_in_trouble_does_not_stop_the_others(tmp_path: Path, broker_b: Broker) -> None:
    strict = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker("strict", properties=strict) as source:
        scene = Scene(tmp_path, source, broker_b)
        create_topic(source.bootstrap, scene.syncs)
        scene.sync((0, 0), (100, 90))
        scene.commit(100)
        barred = f"barred-{scene.mark}"
        commit(source, barred, scene.topic, 0, 100)
        client = admin(source.bootstrap)
        denied = AclBinding(
            ResourceType.GROUP,
            barred,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.DESCRIBE,
            AclPermissionType.DENY,
        )
        client.create_acls([denied])[denied].result(WITHIN)
        with scene.service() as process:
            failing = process.hear("group failing", within=WITHIN, subject=barred)
            assert f"cluster {scene.source} does not permit" in failing["reason"]
            assert barred in failing["reason"]
            until(lambda: scene.emitted() == [(100, 90)])
            row = until(lambda: last_row(broker_b.bootstrap, scene.flow, f"group/{barred}"))
            assert isinstance(row, GroupStatus)
            assert row.phase == "failing"


@pytest.mark.long
def test_mm2_172_kill_9_neither_loses_nor_repeats_a_checkpoint(scene: Scene) -> None:
    scene.sync(*((offset, offset) for offset in range(0, 1001, 10)))
    scene.commit(485)
    wanted = [(485, 481)]
    with scene.service() as process:
        until(lambda: scene.emitted() == wanted)
        # Between two of the syncs that the store of 0, 10 ... 1000 keeps, each time further on.
        for upstream, downstream in ((725, 721), (845, 841), (905, 901)):
            process.kill()
            scene.commit(upstream)
            process.start()
            wanted.append((upstream, downstream))
            until(partial(_equals, scene.emitted, wanted))


@pytest.mark.long
def test_mm2_056_checkpoints_do_not_go_back_after_compaction_of_syncs(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    """MirrorCheckpointTaskTest.testCheckpointsTaskRestartUsesExistingCheckpoints, with a cleaner that really runs."""
    scene = Scene(tmp_path, broker_a, broker_b)
    at_once = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    create_topic(broker_a.bootstrap, scene.syncs, configs=at_once)
    scene.sync(*((offset, offset) for offset in range(0, 1001, 10)))
    scene.commit(725)
    with scene.service() as process:
        until(lambda: scene.emitted() == [(725, 721)])
        process.kill()

        def thinned() -> bool:
            scene.sync((1000, 1000))  # rolls the segment, so that what lies before may be cleaned
            return len(read_so_far(broker_a.bootstrap, scene.syncs)) < 50

        until(thinned, every=0.5)
        process.start()
        scene.commit(730)
        until(lambda: (row := scene.row()) and "older than the oldest usable" in row.reason)
        scene.commit(1005)
        until(lambda: len(scene.emitted()) > 1)
    assert scene.emitted() == [(725, 721), (1005, 1001)]


@pytest.mark.long
def test_replicas_divide_the_groups_and_take_over(scene: Scene) -> None:
    scene.sync((0, 0), (100, 90), (200, 180))
    groups = [f"replica{number}-{scene.mark}" for number in range(6)]

    def everywhere(offset: int) -> None:
        for group in groups:
            commit(scene.a, group, scene.topic, 0, offset)

    def checkpoints(upstream: int) -> list[str]:
        found = [decode_checkpoint(one.key, one.value) for one in scene.written()]
        return sorted(one.group for one in found if one.upstream == upstream)

    everywhere(100)
    one = ServiceProcess("lockstep_checkpoint", scene.file(), str(scene.flow), instance="one")
    other = ServiceProcess("lockstep_checkpoint", scene.file(), str(scene.flow), instance="other")
    with one, other:
        for process in (one, other):
            until(partial(_has_a_share, process, str(scene.flow)))
        until(lambda: checkpoints(100) == groups)
        one.kill()
        everywhere(200)
        until(lambda: checkpoints(200) == groups)


@pytest.mark.long
def test_mm2_036_172_groups_are_moved_also_when_the_source_is_gone(tmp_path: Path, broker_b: Broker) -> None:
    """The site is lost, the service is started again on the other one, and the consumers are about to be."""
    with Broker("lost") as source:
        scene = Scene(tmp_path, source, broker_b, group_sync=False)
        create_topic(source.bootstrap, scene.syncs)
        scene.sync((0, 0), (100, 90))
        scene.commit(100)
        with scene.service():
            until(lambda: scene.emitted() == [(100, 90)])
            until(scene.row)
        assert scene.on_target() is None
    scene.group_sync = True
    with scene.service() as process:
        until(lambda: scene.on_target() == 90)
        process.hear("cluster unreachable", within=WITHIN, cluster=scene.source)
        assert process.ready()
    assert scene.emitted() == [(100, 90)], "nothing was written meanwhile"


@pytest.mark.long
def test_deleted_group_is_named(scene: Scene) -> None:
    scene.sync((0, 0))
    scene.commit(0)
    with scene.service():
        until(lambda: scene.emitted())
        deletion = admin(scene.a.bootstrap)
        deletion.delete_consumer_groups([scene.group])[scene.group].result(WITHIN)
        until(lambda: scene.events("GroupGone"))


def test_mm2_082_179_180_checkpoint_service_stays_small(scene: Scene) -> None:
    for partition in (0, 1):
        scene.sync((0, 0), partition=partition)
        scene.commit(0, partition=partition)
    with scene.service() as process:
        until(lambda: scene.emitted(1))
        assert psutil.Process(process.pid).memory_info().rss < 120 * 2**20
        page = wait_for_all_declared(process, "checkpoint", within=WITHIN)
        assert page["lockstep_checkpoints_emitted_total"] == [({"flow": str(scene.flow)}, 2)]
        of = {"source": scene.source, "target": scene.target, "group": scene.group, "topic": scene.remote}
        for suffix in ("", "_min", "_max", "_avg"):
            by_partition = page[f"kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms{suffix}"]
            assert [labels for labels, _ in by_partition] == [{**of, "partition": n} for n in "01"]
            assert all(0 <= latency < 1000 * WITHIN for _, latency in by_partition)


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
    """A member of the group that has its partitions and commits nothing."""
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


class Consuming:
    """A consumer that goes on where its group stands."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false"}
            | {"auto.offset.reset": "error"}
        )
        self._consumer.subscribe([topic])

    def __enter__(self) -> Consuming:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def next(self) -> Message:
        """The next record."""
        message = until(lambda: self._consumer.poll(0.2), what="a record")
        assert message.error() is None
        return message


def _equals(found: Callable[[], object], wanted: object) -> bool:
    return found() == wanted


def _has_a_share(process: ServiceProcess, flow: str) -> bool:
    return 0 < len(process.status(flow)["partitions"]) < COMMANDS_PARTITIONS
