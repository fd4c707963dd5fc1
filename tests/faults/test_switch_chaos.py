"""Failovers at random moments: the source is dead or frozen, parts die before and during the command, which dies too.
An independent reader of both logs and of the group holds the evidence against what happened. SEED gives others, ROUNDS
more of them."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pytest

from tests.faults.test_switch_kills import Begun
from tests.support.broker import Broker, two_brokers
from tests.support.clusters import read_topic
from tests.support.eventually import wait_until
from tests.support.failover_kills import IN_FLIGHT_MS, KILLS, doubled_records, unsaid_loss, was_killed
from tests.support.switch_scene import WITHIN, SwitchScene

LOSES = ("--allow-data-loss", "100000", "--timeout", "60", "--allow-stale-groups", "--allow-left-groups")
FAULTS: Mapping[str, Callable[[Broker], None]] = {"dead": Broker.kill, "frozen": Broker.suspend}
KEPT_RUNNING_S = 12.0
"""Within so much time from its begin a failover has gone through most of its steps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens in one round. Moments are seconds after the command has begun; those below 0 come before it."""

    fault: str
    identity: bool
    kills: tuple[tuple[float, str], ...]
    command_dies_s: float | None
    working_s: float
    """How long the application works on A before."""

    @classmethod
    def drawn(cls, dice: random.Random) -> Self:
        """Draw a round."""
        names = [name for name in KILLS if name != "nothing"]
        kills = [(dice.uniform(-2.0, KEPT_RUNNING_S), dice.choice(names)) for _ in range(dice.choice((1, 1, 2)))]
        return cls(
            fault=dice.choice([*FAULTS]),
            identity=dice.random() < 0.5,
            kills=tuple(sorted(kills)),
            command_dies_s=dice.uniform(1.0, KEPT_RUNNING_S) if dice.random() < 0.4 else None,
            working_s=dice.uniform(0.0, 8.0),
        )


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_failover_at_a_random_moment_hides_no_loss(tmp_path: Path) -> None:
    seed, rounds = int(os.environ.get("SEED") or random.randrange(10**6)), int(os.environ.get("ROUNDS") or 4)
    dice = random.Random(seed)
    for number in range(rounds):
        plan = Plan.drawn(dice)
        print(f"SEED={seed} round {number}: {plan}", flush=True)  # noqa: T201 - pytest shows it with the failure
        folder = tmp_path / f"round{number}"
        folder.mkdir()
        with two_brokers() as (a, b):
            _fail_over(SwitchScene(folder, a, b, identity=plan.identity, hooks=False), plan)


def _fail_over(scene: SwitchScene, plan: Plan) -> None:
    with scene.running():
        scene.app.go_on()
        time.sleep(plan.working_s)
        FAULTS[plan.fault](scene.a)
        read_on_a = Counter(scene.app.read)
        scene.app.abandon()
        done = _ended(scene, plan)
        print({key: done[key] for key in ("seconds", "lost", "lost_unknown_partitions", "source_known_until")})  # noqa: T201
        print(done["groups"])  # noqa: T201
        scene.wait_released()
        scene.a.start() if plan.fault == "dead" else scene.a.resume()
        assert (unsaid_loss(scene, done), doubled_records(scene)) == (0, 0), done
        _compare_group(scene, done, read_on_a)


def _ended(scene: SwitchScene, plan: Plan) -> dict[str, Any]:
    """The evidence of the failover, which is continued where its command has died or given up."""
    before = [kill for kill in plan.kills if kill[0] <= 0]
    for _, name in before:
        KILLS[name](scene)
    began = time.monotonic()
    ending = threading.Event()

    def strike() -> None:
        for moment, name in plan.kills[len(before) :]:
            ending.wait(max(0.0, began + moment - time.monotonic()))
            while not (ending.wait(0.1) or was_killed(name, scene)):
                pass  # it starts again, and is killed then

    striking = threading.Thread(target=strike)
    with Begun(scene, "failover", *LOSES) as command:
        striking.start()
        if plan.command_dies_s is not None:
            ending_at = began + plan.command_dies_s
            wait_until(
                lambda: time.monotonic() > ending_at or command.poll() is not None, within=WITHIN, what="it is time"
            )
            command.kill()
        printed, _ = command.communicate(timeout=300)
    ending.set()
    striking.join()
    last = scene.last()
    if last is None or last.id == command.after:  # it died before its first row
        return scene.switch("failover", *LOSES)
    done = scene.continue_last("failover", *LOSES)
    assert done["phase"] == "done", (printed, done)
    return done


def _compare_group(scene: SwitchScene, done: Mapping[str, Any], read_on_a: Counter[str]) -> None:
    """No record on B is skipped, and no more are read again than the evidence says: of those that were read on A before
    the moment up to which the group's position is known."""
    (group,) = [group for group in done["groups"] if group["group"] == scene.app.group]
    topics = [scene.copy_of(topic) for topic in scene.topics]
    on_b = {
        (record.value or b"").decode(): record.timestamp_ms or 0
        for topic in topics
        for record in read_topic(scene.b.bootstrap, topic)
    }
    scene.app.start(scene.b.bootstrap, topics)
    try:
        wait_until(lambda: on_b.keys() <= scene.app.read.keys(), within=WITHIN, what="no record of B is skipped")
    finally:
        scene.app.stop()
    again = [value for value, count in scene.app.read.items() if count > 1 and value in on_b]
    if group["state"] in ("unknown", "waiting"):
        return
    known_ms = datetime.fromisoformat(group["known_until"]).timestamp() * 1_000 - IN_FLIGHT_MS
    unsaid = [value for value in again if value in read_on_a and on_b[value] <= known_ms]
    print(f"group {group['state']}: {len(again)} read again, {len(unsaid)} of them before {group['known_until']}")  # noqa: T201
    assert len(unsaid) <= group["read_again"], (group, len(again), len(unsaid))
