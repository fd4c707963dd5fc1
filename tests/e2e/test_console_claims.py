"""Consoles that claim one switch, and are killed or lose a cluster meanwhile: exactly one goes on, and is exact."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lockstep_state.rows.state_rows import Switch
from tests.support.acting_console import ActingConsole
from tests.support.broker import Broker
from tests.support.console_switches import HeldScene, live_consoles, wait_row
from tests.support.eventually import wait_until
from tests.support.switch_scene import WITHIN, SwitchScene

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]

LONGER_THAN_SILENCE_S = 20.0
"""The seconds for which a cluster is frozen: a console takes a switch up after 15 s without a sign of life."""

HOOKS = ["before", "fence", "redirect", "after"]


def is_done(row: Switch) -> bool:
    return row.phase == "done"


def outcomes(scene: SwitchScene, console: ActingConsole, switch_id: str) -> list[Mapping[str, Any]]:
    """Return what a console says of a switch."""
    listed = console.get(scene.there, "/commands")["commands"]
    return [outcome for outcome in listed if switch_id in (outcome["id"], outcome["arguments"].get("switch"))]


def kill_in_each_hook(scene: HeldScene, consoles: list[ActingConsole]) -> None:
    """Kill the console that waits for a hook, once for each hook, and start it again."""
    by_name = {f"console-{number}": console for number, console in enumerate(consoles, start=1)}
    for hook in HOOKS:
        wait_until(scene.held.is_set, within=WITHIN, what=f"the hook {hook} is called")
        row = scene.last()
        assert row is not None
        console = by_name[row.console]
        console.kill()
        scene.held.clear()
        scene.free.set()
        console.start().wait_ready()


def test_switchover_whose_console_is_killed_in_each_hook_is_exact(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    scene = HeldScene(tmp_path, *brokers, *HOOKS)
    with scene.running(), live_consoles(scene) as consoles:
        scene.app.go_on()
        asked = consoles[0].post(scene.there, "/switches", {"verb": "switchover"}, user="alice")
        kill_in_each_hook(scene, consoles)
        done = wait_row(scene, is_done, "the switchover is done")
        assert (done.id, done.by, done.lost, done.late) == (asked["id"], "alice", 0, 0)
        assert list(dict.fromkeys(scene.hooks())) == HOOKS
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}


def test_of_two_consoles_that_take_a_switch_up_at_once_exactly_one_goes_on(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    scene = HeldScene(tmp_path, *brokers, "fence")
    with scene.running(), live_consoles(scene, 3) as consoles:
        scene.app.go_on()
        asked = consoles[0].post(scene.there, "/switches", {"verb": "switchover"}, user="alice")
        wait_until(scene.held.is_set, within=WITHIN, what="the hook fence is called")
        consoles[0].kill()
        wait_row(scene, lambda row: row.console not in ("", "console-1"), "another console claims the switch")
        scene.free.set()
        done = wait_row(scene, is_done, "the switchover is done")
        assert (done.id, done.by, done.lost, done.late) == (asked["id"], "alice", 0, 0)
        assert done.console in ("console-2", "console-3")
        for console in consoles[1:]:
            known = console.outcome(scene.there, asked)
            assert (known["phase"], known["by"]) == ("done", "alice"), "each console knows it by its id"
        said = {name: outcomes(scene, console, asked["id"]) for name, console in zip("23", consoles[1:], strict=True)}
        carried = [name for name, listed in said.items() for outcome in listed if "switch" in outcome]
        assert carried == [done.console.removeprefix("console-")], said
        assert all(outcome["phase"] in ("done", "failed") for listed in said.values() for outcome in listed), said
        assert list(dict.fromkeys(scene.hooks())) == HOOKS
        assert scene.hooks().count("redirect") == 1
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}


def test_of_two_operators_who_continue_a_switch_at_once_one_goes_on(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    scene = SwitchScene(tmp_path, *brokers)
    scene.refused_hooks = {"redirect"}
    with scene.running(), live_consoles(scene) as consoles:
        scene.app.go_on()
        asked = consoles[0].post(scene.there, "/switches", {"verb": "switchover"}, user="alice")
        failed = consoles[0].outcome(scene.there, asked, within=WITHIN)
        assert failed["phase"] == "failed", failed
        row = scene.last()
        assert row is not None
        assert row.console == "", "a switch whose step has failed is taken up by nobody"
        scene.refused_hooks = set()

        def go_on(console: ActingConsole, user: str) -> Mapping[str, Any]:
            path = f"/switches/{asked['id']}/continue"
            return console.outcome(scene.there, console.post(scene.there, path, {}, user=user), within=WITHIN)

        with ThreadPoolExecutor(2) as both:
            ended = list(both.map(go_on, consoles, ("bob", "carol")))
        phases = sorted(outcome["phase"] for outcome in ended)
        assert phases in (["done", "done"], ["done", "failed"]), ended
        assert all("goes on with" in outcome["sentence"] for outcome in ended if outcome["phase"] == "failed"), ended
        done = wait_row(scene, is_done, "the switchover is done")
        assert (done.by, done.lost, done.late) == ("alice", 0, 0)
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}


def wait_unrefused(scene: SwitchScene, console: ActingConsole, asked: Mapping[str, Any]) -> None:
    """Wait until a console says that nothing speaks against a switch."""

    def is_unrefused() -> bool:
        plan = console.post(scene.there, "/switches", {**asked, "dry_run": True}, code=200)
        return plan.get("refusals") == []

    wait_until(is_unrefused, within=WITHIN, every=1.0, what=f"nothing speaks against the {asked['verb']}")


def kill_while_frozen(scene: HeldScene, console: ActingConsole, cluster: Broker) -> None:
    """Kill the console that waits for a hook, and let the other one find the cluster frozen when it would take up."""
    cluster.suspend()
    console.kill()
    scene.free.set()
    time.sleep(LONGER_THAN_SILENCE_S)
    cluster.resume()


def test_failover_and_failback_of_consoles_that_are_killed_while_a_cluster_is_away(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    """Two faults at once: A is dead, and B is frozen when the console is killed that carries the failover out."""
    a, b = brokers
    scene = HeldScene(tmp_path, a, b, "fence")
    with scene.running(), live_consoles(scene) as consoles:
        first, second = consoles
        scene.app.go_on()
        scene.app.stop_when_read()
        scene.wait_written_down()
        scene.wait_translated()
        a.kill()
        dry = first.post(scene.there, "/switches", {"verb": "switchover", "dry_run": True}, code=200)
        assert dry.get("unknown") or dry["refusals"], dry

        failover = {"verb": "failover"}
        wait_unrefused(scene, first, failover)
        asked = first.post(scene.there, "/switches", failover, user="alice")
        wait_until(scene.held.is_set, within=WITHIN, what="the hook fence is called")
        kill_while_frozen(scene, first, b)
        done = wait_row(scene, lambda row: row.id == asked["id"] and is_done(row), "the failover is done")
        assert (done.by, done.console, done.lost) == ("alice", "console-2", 0)
        scene.app.go_on()

        scene.held.clear()
        scene.held_hooks.add("fence")
        a.start()
        first.start().wait_ready()
        back = {"verb": "failback", "allow": ["soon"]}
        wait_unrefused(scene, second, back)
        asked = second.post(scene.there, "/switches", back, user="bob")
        wait_until(scene.held.is_set, within=WITHIN, what="the hook fence is called for the way back")
        kill_while_frozen(scene, second, a)
        returned = wait_row(
            scene, lambda row: row.id == asked["id"] and is_done(row), "the failback is done", scene.flow_back
        )
        assert (returned.by, returned.console, returned.lost, returned.late) == ("bob", "console-1", 0, 0)
        scene.app.go_on()
        scene.app.stop_when_read()
        assert scene.app.read_twice == {}
