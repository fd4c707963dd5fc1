"""Applications move to the other cluster and come back, under traffic: each record is read once, wherever it is."""

from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import GroupStatus
from tests.support.broker import Broker
from tests.support.clusters import commit_offset, committed_offset
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.switch_scene import WITHIN, SwitchScene

pytestmark = pytest.mark.long


def nothing_lost_or_doubled(scene: SwitchScene) -> None:
    scene.app.stop_when_read()
    assert scene.app.read_twice == {}


@pytest.mark.parametrize("names", ["prefixed", "identity", "renamed"])
def test_applications_switch_three_times_and_lose_nothing(
    tmp_path: Path, brokers: tuple[Broker, Broker], names: str
) -> None:
    scene = SwitchScene(tmp_path, *brokers, identity=names != "prefixed", renames=names == "renamed")
    with scene.running():
        scene.app.go_on()
        there = scene.switch("switchover")
        assert (there["phase"], there["lost"], there["late"]) == ("done", 0, 0), there
        assert scene.hooks() == ["before", "fence", "redirect", "after"]
        assert [group["state"] for group in there["groups"]] == ["exact"], there["groups"]
        scene.app.go_on()
        scene.wait_followed(scene.flow_back)
        back = scene.switch("failback", "--allow-soon")
        assert (back["phase"], back["lost"], back["late"]) == ("done", 0, 0), back
        scene.app.go_on()
        again = scene.switch("switchover", "--allow-soon")
        assert again["phase"] == "done", again
        scene.app.go_on()
        nothing_lost_or_doubled(scene)


def test_second_switch_within_ten_minutes_is_refused(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    scene = SwitchScene(tmp_path, *brokers)
    with scene.running():
        dry = scene.switch("switchover", "--dry-run")
        assert dry["refusals"] == []
        assert scene.last() is None, "a look changes nothing"
        drill = scene.switch("switchover", "--drill")
        assert (drill["phase"], drill["drill"], scene.hooks()) == ("done", True, [])
        scene.app.go_on()
        assert scene.switch("switchover")["phase"] == "done"
        refused = scene.switch("failback", code=1)
        assert "a second one within ten minutes is refused without --allow-soon" in refused["said"]
        assert scene.continue_last("switchover")["phase"] == "done", "it says so, and does nothing"
        again = scene.switch("switchover", "--continue", code=1)
        assert "nothing to continue" in again["said"]
        assert "is done" in scene.switch("switchover", "--abort", code=1)["said"]
        nothing_lost_or_doubled(scene)


def test_failing_fence_aborts_with_nothing_changed(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    scene = SwitchScene(tmp_path, *brokers)
    with scene.running():
        scene.refused_hooks = {"before"}
        failed = scene.switch("switchover", code=1)
        assert failed["phase"] == "aborted"
        assert scene.hooks() == ["before", "after"]
        scene.app.check()


def test_switch_of_one_topic_pauses_it_alone_and_rewinds_groups(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    """Without hooks, while the application goes on: up to a cutoff, and with a group that went back on the source."""
    scene = SwitchScene(tmp_path, *brokers, hooks=False)
    a, b = (broker.bootstrap for broker in brokers)
    moved, other = scene.topics
    copy, group = f"{scene.there.source}.{moved}", f"{scene.mark}-reports"
    with scene.running():
        scene.app.go_on()
        commit_offset(a, group, moved, 0, 40)
        wait_until(lambda: committed_offset(b, group, copy, 0) == 40, within=WITHIN, what="the group is moved")
        commit_offset(a, group, moved, 0, 10)
        scene.app.stop_when_read()
        scene.start_on(scene.there.source)
        wait_until(lambda: rewound(scene, group), within=WITHIN, every=0.5, what="the rewind is seen")
        unknown = scene.switch("switchover", "--topic", "nowhere", code=2)
        assert "no topic called nowhere is mirrored" in unknown["said"]
        refused = scene.switch("switchover", "--topic", moved, "--cutoff", "now", code=1)
        assert f"group {group} would skip records" in refused["said"]
        assert scene.last() is None
        done = scene.switch("switchover", "--topic", moved, "--cutoff", "now", "--rewind-groups")
        assert (done["phase"], [topic["topic"] for topic in done["topics"]]) == ("done", [moved]), done
        assert committed_offset(b, group, copy, 0) == 10
        assert {row.phase for row in scene.flow_there.progress(moved).values()} == {"paused"}
        scene.flow_there.wait_for_more(other)
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}
        fail_back(scene, moved)


def fail_back(scene: SwitchScene, topic: str) -> None:
    """One topic, with what came to the source behind the cutoff. Nothing else of either flow is paused or stopped."""
    leave = scene.switch("failback", "--topic", topic, "--allow-soon", "--diverged", "leave", code=2)
    assert "leave out --topic" in leave["said"]
    back = scene.switch("failback", "--topic", topic, "--allow-soon", "--diverged", "copy")
    assert (back["phase"], [topic["topic"] for topic in back["topics"]]) == ("done", [topic]), back
    scene.flow_there.wait_copied(topic)
    for flow, phase in ((scene.flow_there, "copying"), (scene.flow_back, "paused")):
        wait_until(lambda: phases(flow, topic) == {phase}, within=WITHIN, every=0.5, what=f"{topic} is {phase}")  # noqa: B023
        assert {phases(flow, other) == {"copying"} for other in scene.topics if other != topic} == {True}


def phases(flow: MirroredFlow, topic: str) -> set[str]:
    return {row.phase for row in flow.progress(topic).values()}


def rewound(scene: SwitchScene, group: str) -> bool:
    return any(row.ahead for row in scene.flow_there.rows(GroupStatus) if row.group == group)
