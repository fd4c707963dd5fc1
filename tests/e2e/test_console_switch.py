"""A drill and a switchover from the console, which is killed in the middle: another console goes on, and is exact."""

from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.console_switches import HeldScene, live_consoles, wait_row
from tests.support.eventually import wait_until
from tests.support.switch_scene import WITHIN

pytestmark = pytest.mark.long


def test_drill_and_switchover_go_on_in_another_console(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    scene = HeldScene(tmp_path, *brokers, "fence")
    with scene.running(), live_consoles(scene) as (first, second):
        scene.app.go_on()
        dry = first.post(scene.there, "/switches", {"verb": "switchover", "dry_run": True}, code=200)
        assert (dry["refusals"], dry["dry_run"]) == ([], True), dry
        assert next(step["step"] for step in dry["steps"]) == "check"
        assert "No record is lost." in dry["loses"]
        assert scene.last() is None, "a look changes nothing"

        asked = first.post(scene.there, "/switches", {"verb": "switchover", "drill": True}, user="alice")
        begun = wait_row(scene, lambda row: row.id == asked["id"], "the drill has begun")
        first.kill()
        assert begun.console == "console-1"
        drill = wait_row(scene, lambda row: row.phase == "done", "the drill is done")
        assert (drill.id, drill.by, drill.drill, drill.console) == (asked["id"], "alice", True, "console-2")
        assert scene.hooks() == []
        scene.app.go_on()

        first.start()
        first.wait_ready()
        asked = second.post(scene.there, "/switches", {"verb": "switchover"}, user="bob")
        wait_until(scene.held.is_set, within=WITHIN, what="the hook fence is called")
        second.kill()
        scene.free.set()
        done = wait_row(scene, lambda row: row.id == asked["id"] and row.phase == "done", "the switchover is done")
        assert (done.by, done.console, done.lost, done.late) == ("bob", "console-1", 0, 0)
        assert scene.hooks() == ["before", "fence", "fence", "redirect", "after"], "a hook may be called again"
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}
        again = first.post(scene.there, "/switches", {"verb": "switchover"}, user="bob")
        refused = first.outcome(scene.there, again)
        assert refused["phase"] == "refused", refused
        assert refused["refusals"], "there are codes for programs"
