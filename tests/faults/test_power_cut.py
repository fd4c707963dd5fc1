"""A power cut takes the source, the target's broker and all of Lockstep, and only the source stays away. A reader of
both logs and of the group holds against it what the failover says."""

from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.clusters import committed_offset, read_topic
from tests.support.failover_kills import LOSES, doubled_records, unsaid_loss
from tests.support.switch_scene import PARTITIONS, SwitchScene

pytestmark = pytest.mark.long


def skips_nothing(scene: SwitchScene) -> None:
    """Check by the values that the group has read: on B it stands in no partition behind one that it has not."""
    for topic in scene.topics:
        log = read_topic(scene.b.bootstrap, scene.copy_of(topic))
        for number in range(PARTITIONS):
            at = committed_offset(scene.b.bootstrap, scene.app.group, scene.copy_of(topic), number) or 0
            before = [record.value or b"" for record in log if record.partition == number and (record.offset or 0) < at]
            unread = [value for value in before if value.decode() not in scene.app.read]
            assert not unread, (topic, number, at, unread[:3])


def test_failover_after_everything_but_the_source_came_back_loses_what_it_says(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, hooks=False)
    with scene.running():
        scene.app.go_on()
        a.kill()
        b.kill()
        scene.run.kill()
        scene.app.abandon()
        b.start()
        scene.restart()
        looked = scene.dry_run("failover", *LOSES)
        done = scene.switch("failover", *LOSES)
        assert done["phase"] == "done", (looked, done)
        scene.wait_released()
        skips_nothing(scene)
        a.start()
        assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done
