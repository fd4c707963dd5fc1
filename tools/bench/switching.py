"""Applications that move to the other cluster while they work: planned, and after the source was killed."""

import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.application import Application
from tests.support.broker import Broker
from tests.support.eventually import NeverHappened, wait_until
from tests.support.switch_scene import SwitchScene
from tests.support.systems import SystemEnded, SystemRun
from tools.bench.clusters import two_brokers
from tools.bench.results import Readings
from tools.bench.stage import Measured, Stage, Trial

SWITCHOVER = "switchover"
TOPICS, PARTITIONS, GROUPS, PER_S = 20, 8, 50, 1_000
TWO_TOPICS = 10
"""As many of the groups read two topics; the others read one."""
READY_WITHIN_S, READ_WITHIN_S = 240.0, 120.0
TRAFFIC_S, AFTER_S, STILL_S = 20.0, 10.0, 5.0
CONSUMER = {
    "fetch.wait.max.ms": "100",
    "fetch.min.bytes": "65536",  # so that fifty readers do not ask for each record
    "socket.timeout.ms": "10000",
    "topic.metadata.refresh.interval.ms": "5000",
}


def topics_of_groups(topics: Sequence[str], groups: int, with_two: int) -> Mapping[str, Sequence[str]]:
    """Return the topics that each group reads, by its name; the last ones read two."""
    return {
        f"{topics[0].partition('-')[0]}-billing-{number:02d}": [
            topics[number % len(topics)],
            *([topics[(number + 7) % len(topics)]] if number >= groups - with_two else []),
        ]
        for number in range(groups)
    }


def seconds_by_group(way: str, began_at: float, firsts: Sequence[float]) -> Mapping[str, float]:
    """Return after how many seconds the first group, half of the groups, and all of them have read a record."""
    seconds = sorted(first - began_at for first in firsts)
    return {
        f"{way}_first_s": seconds[0],
        f"{way}_median_s": statistics.median_high(seconds),
        f"{way}_last_s": seconds[-1],
    }


def steps_text(body: Mapping[str, Any], began_at: float) -> str:
    """Return what each step took, in order; the process until the first step has begun comes first."""
    steps = [step for step in body["steps"] if step["began"]]
    started_s = datetime.fromisoformat(steps[0]["began"]).timestamp() - began_at
    ended_s = datetime.fromisoformat(body["ended"]).timestamp() - began_at
    named = [f"start of the process {started_s:.2f}", *(f"{step['step']} {step['seconds']:.2f}" for step in steps)]
    return f"{', '.join(named)}; ended after {ended_s:.2f}"


def permitted_loss(refusals: Sequence[str]) -> int:
    """Return how many records a failover wants to be permitted to lose. Raises SystemEnded where it is refused for
    something else."""
    permitted = 0
    for refusal in refusals:
        match = re.search(r"--allow-data-loss (\d+)", refusal)
        if match is None:
            raise SystemEnded(f"the failover is refused: {refusal}")
        permitted = int(match[1])
    return permitted


def known_until(body: Mapping[str, Any]) -> float:
    """Return up to when the failover knew all that the source had accepted, as its steps say (`time.time`). Raises
    SystemEnded where they say nothing."""
    for step in body["steps"]:
        if match := re.search(r"accepted after (\S+) ", step["text"]):
            return datetime.fromisoformat(match[1]).timestamp()
    raise SystemEnded("the failover does not say up to when it knew the source")


class BenchScene(SwitchScene):
    """Two clusters, Lockstep for both flows, fifty groups on A, and the hooks that move them."""

    def __init__(self, folder: Path, a: Broker, b: Broker) -> None:
        super().__init__(folder, a, b, "tasks.max = 2", topics=TOPICS, application=self._application)
        self.source_is_gone = False

    def _application(self, topics: Sequence[str]) -> Application:
        groups = topics_of_groups(topics, GROUPS, TWO_TOPICS)
        return Application("", topics, partitions=PARTITIONS, rate=PER_S, groups=groups, settings=CONSUMER)

    def fence(self) -> None:
        """End the applications; those of a dead cluster are not waited for."""
        if self.source_is_gone:
            self.app.abandon()
        else:
            self.app.stop()

    def kill_source(self) -> None:
        self.a.kill()
        self.source_is_gone = True

    def wait_ready(self, run: SystemRun) -> None:
        """Wait until nothing speaks against a switchover. Raises SystemEnded."""
        last: Sequence[str] = ["it was not asked"]

        def is_ready() -> bool:
            nonlocal last
            self.app.check()
            last = self.dry_run("switchover")
            return not last

        try:
            run.wait(is_ready, within=READY_WITHIN_S, every=3.0, otherwise="not ready")
        except SystemEnded as ended:
            raise SystemEnded(f"{ended}: {'; '.join(last)}") from ended

    def wait_all_read(self) -> Sequence[float]:
        """Return when each group has read its first record since the applications were started last."""
        groups = self.app.groups
        try:
            wait_until(lambda: all(group.first_read_at for group in groups), within=READ_WITHIN_S)
        except NeverHappened as never:
            waiting = [group.name for group in groups if not group.first_read_at]
            raise SystemEnded(f"{len(waiting)} groups read nothing on the target, {waiting[0]} for one") from never
        return [group.first_read_at for group in groups]

    def wait_settled(self) -> None:
        """Wait until the writer has ended and the readers read no more."""
        time.sleep(AFTER_S)
        self.app.stop_writing()
        before, lost = -1, len(self.app.unread)
        while lost and lost != before:
            time.sleep(STILL_S)
            before, lost = lost, len(self.app.unread)
        self.app.stop()


@contextmanager
def _switched(stage: Stage, trial: Trial, way: str) -> Iterator[BenchScene]:
    """Yield a scene that is ready for a switch, with the applications at work on A. Raises SystemEnded and Lost."""
    folder = stage.work / way
    folder.mkdir()
    with two_brokers() as (a, b):
        scene = BenchScene(folder, a, b)
        with scene.app, scene.hooks_served(PARTITIONS), SystemRun(trial.system, scene.file, trial.log) as run:
            scene.start_on(scene.there.source)
            stage.say(f"{SWITCHOVER}: {way}, until {scene.there} is ready")
            scene.wait_ready(run)
            run.sleep(TRAFFIC_S)
            scene.wait_ready(run)
            stage.say(f"{SWITCHOVER}: {way}")
            try:
                yield scene
            finally:
                scene.app.abandon()


def _figures(way: str, scene: BenchScene, began_at: float, body: Mapping[str, Any]) -> Readings:
    firsts = scene.wait_all_read()
    scene.wait_settled()
    values = {
        **seconds_by_group(way, began_at, firsts),
        f"{way}_lost": len(scene.app.unread),
        f"{way}_again": scene.app.read_again,
        f"{way}_records": len(scene.app.written),
    }
    return Readings(values=values, notes=[f"{way}, s: {steps_text(body, began_at)}"])


def switchover(stage: Stage, trial: Trial) -> Readings:
    """Measure a planned switch, then one on new brokers whose source is killed. Raises SystemEnded and Lost."""
    with _switched(stage, trial, "planned") as scene:
        began_at = time.time()
        planned = _figures("planned", scene, began_at, scene.switch("switchover"))
    with _switched(stage, trial, "unplanned") as scene:
        scene.kill_source()
        killed_at = time.time()
        permitted = permitted_loss(scene.dry_run("failover"))
        began_at = time.time()
        body = scene.switch("failover", "--allow-data-loss", str(permitted))
        unplanned = _figures("unplanned", scene, began_at, body)
        known_s = known_until(body)
        written = scene.app.written
        values = {
            "unplanned_from_kill_s": unplanned.values["unplanned_first_s"] + began_at - killed_at,
            "unplanned_said": body["lost"],
            "unplanned_lost_known": sum(written[value] < known_s for value in scene.app.unread),
        }
    return Readings(values={**planned.values, **unplanned.values, **values}, notes=[*planned.notes, *unplanned.notes])


def _switchover(stage: Stage) -> Measured:
    """Switch on new brokers each way: one of them is killed."""
    systems = stage.each(SWITCHOVER, "none", partial(switchover, stage), systems=stage.ours)
    return {"topics": TOPICS, "partitions": PARTITIONS, "groups": GROUPS, "per_s": PER_S}, systems


MEASURES = {SWITCHOVER: _switchover}
