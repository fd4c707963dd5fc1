"""Groups of the target that follow the source: when they are moved, and when they are left alone."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from lockstep_config import load
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.group_requests import GROUPS_AT_ONCE
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_ops.switch.switch_clusters import SwitchClusters
from lockstep_state.codecs.mm2_codec import decode_checkpoint
from tests.support.broker import Broker
from tests.support.checkpoint_scene import SETTLED, WITHIN, Scene, commit, reading, until
from tests.support.clusters import committed_offset, create_topic
from tests.support.wire import join_share_group

ANSWERED_S = 20.0
"""Far below the minute that a question to a silent cluster may take. A command takes a second."""

COMMITTED = "from Änne\0"


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Scene:
    return Scene.with_syncs(tmp_path, broker_a, broker_b)


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
    """Every character of it: librdkafka's clients commit a null character at its end."""
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    client = Consumer({"bootstrap.servers": scene.a.bootstrap, "group.id": scene.group, "enable.auto.commit": "false"})
    client.commit(offsets=[TopicPartition(scene.topic, 0, 100, metadata=COMMITTED.rstrip("\0"))], asynchronous=False)
    client.close()
    with scene.service():
        until(lambda: scene.on_target() == 90)
        target = Admin("B", {"bootstrap.servers": scene.b.bootstrap})
        offset = asyncio.run(target.group_offsets(scene.group))[scene.remote, 0]
        assert offset == GroupOffset(90, COMMITTED)
        (record,) = scene.written()
        assert decode_checkpoint(record.key, record.value).metadata == COMMITTED


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
        assert {word: count for word, count in held["held"].items() if count} == {
            "ahead-on-target": 1,
            "rewound-on-source": 1,
        }
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


@pytest.mark.parametrize(
    "end", [Broker.kill, pytest.param(Broker.suspend, marks=pytest.mark.long)], ids=["killed", "frozen"]
)
def test_failover_moves_groups_while_a_round_waits_for_the_source(
    tmp_path: Path, broker_b: Broker, end: Callable[[Broker], None]
) -> None:
    """More groups are asked about than requests may run at once, and more was copied since the source answered last."""
    with Broker("lost") as source:
        # Without looking for new groups, a round asks for offsets at once.
        scene = Scene(tmp_path, source, broker_b, location="target", lines=("refresh.groups.enabled = false",))
        create_topic(broker_b.bootstrap, scene.syncs, configs={"cleanup.policy": "compact"})
        scene.sync((0, 0), (100, 90))
        groups = [scene.group, *(f"other-{number}-{scene.mark}" for number in range(GROUPS_AT_ONCE))]
        for group in groups:
            commit(source, group, scene.topic, 0, 900)
        with scene.service() as process:
            until(lambda: {event.subject for event in scene.events("GroupSynced")} == set(groups))
            end(source)
            try:
                scene.sync((900, 890))
                time.sleep(SETTLED)  # rounds wait for the source by now
                settings = load(scene.file(), {}).flow(scene.flow)

                def moved() -> bool:
                    """The service may read the last sync later than the command comes."""
                    asyncio.run(SwitchClusters(settings, ANSWERED_S).sync_groups(source=False, rewind=False))
                    return {committed_offset(broker_b.bootstrap, group, scene.remote, 0) for group in groups} == {890}

                until(moved)
                assert process.ready()
            finally:
                source.resume()


@pytest.mark.long
def test_mm2_036_172_groups_are_moved_also_when_the_source_is_gone(tmp_path: Path, broker_b: Broker) -> None:
    """The site is lost, the service is started again on the other one, and the consumers are about to be."""
    with Broker("lost") as source:
        scene = Scene(tmp_path, source, broker_b, group_sync=False)
        create_topic(source.bootstrap, scene.syncs)
        scene.sync((0, 0), (100, 90))
        scene.commit(100)
        scene.commit(100, partition=1)  # without an offset sync: it has no place on the target
        with scene.service():
            until(lambda: scene.emitted() == [(100, 90)])
            until(lambda: (row := scene.row()) and row.positions and row.waiting)
        assert scene.on_target() is None
    before = scene.row()
    assert before is not None
    scene.group_sync = True
    with scene.service() as process:
        until(lambda: scene.on_target() == 90)
        process.hear("cluster unreachable", within=WITHIN, cluster=scene.source)
        assert process.ready()
        until(lambda: (row := scene.row()) and row.synced)
    after = scene.row()
    assert after is not None
    assert replace(after, at_ms=0, term=0) == replace(before, at_ms=0, term=0, synced=True), "what waits stays in it"
    assert scene.emitted() == [(100, 90)], "nothing was written meanwhile"
