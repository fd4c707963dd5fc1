"""The checkpoint service as a process between two real clusters (`mm2-behaviour.md` §3, §1.3, §1.4)."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from lockstep_state.codecs.mm2_codec import OffsetSync, decode_checkpoint, encode_checkpoint, encode_offset_sync
from lockstep_state.names import Flow, state_topic
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.broker import Broker
from tests.support.checkpoint_scene import WITHIN, Scene, commit, reading, until
from tests.support.clusters import (
    Record,
    admin,
    committed_offset,
    create_topic,
    delete_topic,
    produce,
    produce_transaction,
    read_topic,
)
from tests.support.metrics import wait_for_value
from tests.support.offset_truth import FIRST, Copied


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Scene:
    return Scene.with_syncs(tmp_path, broker_a, broker_b)


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
        process.hear("control topic created", topic=scene.checkpoints)
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
        assert (row.phase, row.reason) == ("waiting", f"{scene.remote}-0: no offset sync yet")
        scene.sync((150, 140))
        until(lambda: scene.emitted() == [(150, 140)])
        row = until(lambda: (found := scene.row()) and found.phase == "translated" and found)
        assert row.reason == ""


@pytest.mark.long
def test_offset_beyond_the_source_log_waits_until_it_is_within(scene: Scene) -> None:
    scene.sync((0, 0), (1000, 1000))
    scene.commit(10**12)
    with scene.service():
        row = until(lambda: (row := scene.row()) and row.causes != () and row)
        assert row.phase == "waiting"
        reason = ReasonCode.BEYOND_SOURCE_END.to_reason(offset=10**12, end=1100)
        assert row.causes == ((scene.remote, 0, reason),)
        assert scene.emitted() == []
        assert scene.on_target() is None
        scene.commit(1001)
        until(lambda: scene.on_target() == 1001, what="the place on the target")
        assert scene.emitted() == [(1001, 1001)]


def test_a_missing_syncs_topic_is_created_and_used(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    scene = Scene(tmp_path, broker_a, broker_b)
    scene.commit(10)
    with scene.service() as process:
        process.hear("control topic created", topic=scene.syncs)
        scene.sync((10, 9))
        until(lambda: scene.emitted() == [(10, 9)])


def test_mm2_108_110_170_offset_syncs_topic_may_be_on_the_target(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    scene = Scene(tmp_path, broker_a, broker_b, location="target")
    scene.commit(10)
    with scene.service() as process:
        process.hear("control topic created", topic=scene.syncs)
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
    simple = {group.group_id: group.is_simple_consumer_group for group in listed if group.group_id.endswith(scene.mark)}
    assert simple == {scene.group: True, f"aside-{scene.mark}": True}
    with scene.service():
        until(lambda: scene.emitted() == [(100, 90)])
        assert {decode_checkpoint(record.key, record.value).group for record in scene.written()} == {scene.group}


class Consuming:
    """A consumer that goes on where its group stands."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false"}
            | {"auto.offset.reset": "error"}
        )
        self._consumer.subscribe([topic])

    def __enter__(self) -> "Consuming":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def next(self) -> Message:
        """The next record."""
        message = until(lambda: self._consumer.poll(0.2), what="a record")
        assert message.error() is None
        return message
