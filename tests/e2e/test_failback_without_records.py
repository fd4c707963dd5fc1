"""A failback from a cluster on which nobody has written: there is nothing to copy back, and consumers go on exactly."""

from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import GroupStatus, Switch
from tests.support.broker import Broker
from tests.support.clusters import Record, commit_offset, committed_offset, produce
from tests.support.eventually import wait_until
from tests.support.runs import LockstepRun
from tests.support.switch_scene import WITHIN, SwitchScene

pytestmark = pytest.mark.long

READ_ON_A, READ_ON_B, RECORDS = 40, 70, 100
WAITS = ("--timeout", "120")


def test_failback_of_consumers_alone_moves_groups_and_turns_the_flows(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    a, b = brokers
    scene = SwitchScene(tmp_path, a, b, topics=1, hooks=False)
    (topic,), group = scene.topics, scene.app.group
    copy = scene.copy_of(topic)
    with scene.hooks_served(1, on_both=False):
        produce(a.bootstrap, topic, [Record(value=b"%d" % n) for n in range(RECORDS)])
        commit_offset(a.bootstrap, group, topic, 0, READ_ON_A)
        scene.run = LockstepRun(scene.file)
        try:
            scene.flow_there.wait_written_down(topic, within=WITHIN)
            wait_until(
                lambda: [row for row in scene.flow_there.rows(GroupStatus) if row.group == group and row.synced],
                within=WITHIN,
                every=0.5,
                what="the group is moved",
            )
            assert scene.switch("switchover", *WAITS)["phase"] == "done"
            assert committed_offset(b.bootstrap, group, copy, 0) == READ_ON_A
            commit_offset(b.bootstrap, group, copy, 0, READ_ON_B)
            wait_until(lambda: scene.flow_back.rows(GroupStatus), within=WITHIN, every=0.5, what="the way back sees it")
            back = scene.switch("failback", "--allow-soon", *WAITS)
            assert back["phase"] == "done", back
            assert "nothing was written there that could come back" in back["said"]
            assert committed_offset(a.bootstrap, group, topic, 0) == READ_ON_B
            produce(a.bootstrap, topic, [Record(value=b"later")])
            scene.flow_there.wait_copied(topic)
            assert [row.verb for row in scene.flow_back.rows(Switch)] == ["failback"]
        finally:
            scene.run.kill()
