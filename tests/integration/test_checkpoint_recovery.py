"""The checkpoint service without a permission, killed, with several replicas, and after topics were lost."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from lockstep_state.codecs.mm2_codec import decode_checkpoint, encode_checkpoint
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.acls import GUARDS, acl, add, remove
from tests.support.broker import Broker
from tests.support.checkpoint_scene import SETTLED, WITHIN, Scene, commit, until
from tests.support.clusters import Record, admin, create_topic, delete_records, produce
from tests.support.control import last_row, read_so_far
from tests.support.metrics import wait_for_all_declared
from tests.support.services import ServiceProcess


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Scene:
    return Scene.with_syncs(tmp_path, broker_a, broker_b)


@pytest.mark.long
def test_mm2_026_checkpoint_starts_without_permission_to_read_checkpoints(tmp_path: Path, broker_a: Broker) -> None:
    with Broker("strict", properties=GUARDS) as target:
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
    with Broker("strict", properties=GUARDS) as target:
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
        assert [record.value for record in scene.written()] == [record.value for record in before]
        delete_records(scene.b.bootstrap, scene.checkpoints, before=len(before))
        process.start()
        until(lambda: scene.emitted() == [(200, 180)])


@pytest.mark.long
def test_group_in_trouble_does_not_stop_the_others(tmp_path: Path, broker_b: Broker) -> None:
    with Broker("strict", properties=GUARDS) as source:
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
        # Each group once: a replica that gives its groups away may have had their checkpoints on their way.
        checkpoints = [decode_checkpoint(record.key, record.value) for record in scene.written()]
        return sorted({checkpoint.group for checkpoint in checkpoints if checkpoint.upstream == upstream})

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
        common = {"source": scene.source, "target": scene.target, "group": scene.group, "topic": scene.remote}
        for suffix in ("", "_min", "_max", "_avg"):
            by_partition = page[f"kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms{suffix}"]
            assert [labels for labels, _ in by_partition] == [{**common, "partition": n} for n in "01"]
            assert all(0 <= latency < 1000 * WITHIN for _, latency in by_partition)


def _equals(found: Callable[[], object], wanted: object) -> bool:
    return found() == wanted


def _has_a_share(process: ServiceProcess, flow: str) -> bool:
    return 0 < len(process.status(flow)["partitions"]) < COMMANDS_PARTITIONS
