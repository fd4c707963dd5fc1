"""Applications that move to the other cluster while they work: planned, and after the source was killed."""

import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic

from tests.support.broker import Broker
from tests.support.clusters import admin
from tests.support.eventually import NeverHappened, wait_until
from tests.support.mm2 import properties
from tools.bench.applications import Applications, Count
from tools.bench.brokers import two_brokers
from tools.bench.figures import OURS
from tools.bench.outcome import Scalar
from tools.bench.readings import Readings, ReadingsPart
from tools.bench.stage import Stage
from tools.bench.systems import System, SystemEnded, SystemRun

SWITCHOVER = "switchover"
TOPICS, PARTITIONS, GROUPS, PER_S = 20, 8, 50, 1_000
TWO_TOPICS = 10
"""As many of the groups read two topics; the others read one."""
READY_WITHIN_S, ENDED_WITHIN_S, READ_WITHIN_S = 240.0, 180.0, 120.0
TRAFFIC_S, AFTER_S, STILL_S = 20.0, 10.0, 5.0
GROUPS_EVERY_S = 5
ADMIN_S = 60.0
FLOW = "A->B"
HOOKS = ("before", "fence", "redirect", "after")


@dataclass(frozen=True, slots=True)
class Switched:
    """`body`: what the command prints. `began_at`: before its process was started (`time.time`)."""

    body: Mapping[str, Any]
    began_at: float


def switchover(stage: Stage) -> ReadingsPart:
    """Lockstep alone, on brokers of its own, which are new for each way: one of them is killed."""
    systems = {
        system.name: stage.attempt(
            SWITCHOVER, system.name, f"{SWITCHOVER}-{system.name}.log", partial(_both, stage, system)
        )
        for system in stage.ours
        if system.name == OURS
    }
    facts: dict[str, Scalar] = {"topics": TOPICS, "partitions": PARTITIONS, "groups": GROUPS, "per_s": PER_S}
    return ReadingsPart(name=SWITCHOVER, facts=facts, systems=systems)


def topics_of_groups(topics: Sequence[str], groups: int, with_two: int) -> Mapping[str, Sequence[str]]:
    """The topics that each group reads, by its name; the last ones read two."""
    return {
        f"billing-{number:02d}": [
            topics[number % len(topics)],
            *([topics[(number + 7) % len(topics)]] if number >= groups - with_two else []),
        ]
        for number in range(groups)
    }


def seconds_by_group(way: str, began_at: float, firsts: Sequence[float]) -> Mapping[str, float]:
    """From the start of the command until the first group, half of the groups, and all of them have read a record."""
    seconds = sorted(each - began_at for each in firsts)
    return {
        f"{way}_first_s": seconds[0],
        f"{way}_median_s": statistics.median_high(seconds),
        f"{way}_last_s": seconds[-1],
    }


def steps_text(body: Mapping[str, Any], began_at: float) -> str:
    """What each step took, in order; the process until the first step has begun comes first."""
    steps = [step for step in body["steps"] if step["began"]]
    started_s = datetime.fromisoformat(steps[0]["began"]).timestamp() - began_at
    ended_s = datetime.fromisoformat(body["ended"]).timestamp() - began_at
    named = [f"start of the process {started_s:.2f}", *(f"{step['step']} {step['seconds']:.2f}" for step in steps)]
    return f"{', '.join(named)}; ended after {ended_s:.2f}"


def permitted_loss(refusals: Sequence[str]) -> int:
    """How many records a failover wants to be permitted to lose. Raises SystemEnded where it is refused for something
    else."""
    permitted = 0
    for refusal in refusals:
        match = re.search(r"--allow-data-loss (\d+)", refusal)
        if match is None:
            raise SystemEnded(f"the failover is refused: {refusal}")
        permitted = int(match[1])
    return permitted


def known_until(body: Mapping[str, Any]) -> float:
    """Up to when the failover knew all that the source had accepted, by what its steps say (`time.time`). Raises
    SystemEnded where they say nothing."""
    for step in body["steps"]:
        if match := re.search(r"accepted after (\S+) ", step["text"]):
            return datetime.fromisoformat(match[1]).timestamp()
    raise SystemEnded("the failover does not say up to when it knew the source")


class HookServer:
    """`answer` is called with the body of each call, before the caller has its answer."""

    def __init__(self) -> None:
        self.answer: Callable[[Mapping[str, str]], None] = lambda call: None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hooks.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def hook_server() -> Iterator[HookServer]:
    hooks = HookServer()
    serving = threading.Thread(target=hooks.server.serve_forever, daemon=True)
    serving.start()
    try:
        yield hooks
    finally:
        hooks.server.shutdown()
        hooks.server.server_close()


class SwitchedApplications:
    """Two clusters, Lockstep for both flows, the applications on A, and the hooks that move them."""

    def __init__(self, a: Broker, b: Broker, file: Path, run: SystemRun, applications: Applications) -> None:
        self.a, self.b = a, b
        self.run = run
        self.applications = applications
        self._file = file
        self.source_is_gone = False

    def kill_source(self) -> None:
        self.a.kill()
        self.source_is_gone = True

    def start_on(self, alias: str) -> None:
        broker, other = (self.a, "B") if alias == "A" else (self.b, "A")
        self.applications.start(broker.bootstrap, lambda topic: (topic, f"{other}.{topic}"))

    def call_hook(self, call: Mapping[str, str]) -> None:
        """What the operator's gateway does."""
        if call["hook"] == "fence":
            if self.source_is_gone:
                self.applications.abandon()
            else:
                self.applications.stop()
        elif call["hook"] == "redirect":
            self.start_on(call["target"])

    def switch(self, verb: str, *arguments: str) -> Switched:
        """Raises SystemEnded unless it ends with exit code 0."""
        code, body, said, began_at = self._ask(verb, *arguments)
        if code != 0:
            raise SystemEnded(f"lockstep {verb} ended with exit code {code}: {said.strip()}")
        return Switched(body, began_at)

    def refusals(self, verb: str) -> Sequence[str]:
        """What speaks against it now."""
        code, body, said, _ = self._ask(verb, "--dry-run")
        if not body:
            return [f"exit code {code}: {said.strip()}"]
        return [refusal["text"] for refusal in body.get("refusals", [])]

    def wait_ready(self) -> None:
        """Raises SystemEnded."""
        last: Sequence[str] = []

        def is_ready() -> bool:
            nonlocal last
            self.run.check()
            self.applications.check()
            last = self.refusals("switchover")
            return not last

        try:
            wait_until(is_ready, within=READY_WITHIN_S, every=3.0)
        except NeverHappened as never:
            raise SystemEnded(f"{FLOW} is not ready within {READY_WITHIN_S:.0f} s: {'; '.join(last)}") from never

    def wait_all_read(self) -> Sequence[float]:
        """Until each group has read a record since the applications were started last. When each did."""
        groups = self.applications.groups.values()
        try:
            wait_until(lambda: all(group.first_at for group in groups), within=READ_WITHIN_S, every=0.05)
        except NeverHappened as never:
            waiting = [name for name, group in self.applications.groups.items() if not group.first_at]
            raise SystemEnded(f"{len(waiting)} groups read nothing on the target, {waiting[0]} for one") from never
        return [group.first_at for group in groups]

    def settled_count(self) -> tuple[Count, int]:
        """Once the writer has ended and the readers read no more: what has become of the records, and how many there
        were. Raises Lost."""
        applications = self.applications
        applications.stop_writing()
        before, lost = -1, applications.count().lost
        while lost and lost != before:
            time.sleep(STILL_S)
            before, lost = lost, applications.count().lost
        applications.stop()
        return applications.count(), sum(map(len, applications.written.values()))

    def _ask(self, verb: str, *arguments: str) -> tuple[int, Mapping[str, Any], str, float]:
        given = (
            () if "--dry-run" in arguments else ("--yes", "--evidence", str(self._file.with_name(f"{verb}-evidence")))
        )
        command = [sys.executable, "-m", "lockstep_cli", verb, str(self._file), "--flow", FLOW, "--output", "json"]
        began_at = time.time()
        ran = subprocess.run(
            [*command, *given, *arguments], capture_output=True, text=True, timeout=ENDED_WITHIN_S, check=False
        )
        return ran.returncode, json.loads(ran.stdout) if ran.stdout else {}, ran.stderr, began_at


def _both(stage: Stage, system: System) -> Readings:
    """Raises SystemEnded and Lost."""
    log = stage.logs() / f"{SWITCHOVER}-{system.name}.log"
    found = [way(stage, system, log) for way in (_planned, _unplanned)]
    return Readings(
        values={key: value for one in found for key, value in one.values.items()},
        notes=[note for one in found for note in one.notes],
        log=log.name,
    )


def _planned(stage: Stage, system: System, log: Path) -> Readings:
    with _switched(stage, system, log, "planned") as scene:
        there = scene.switch("switchover")
        firsts = scene.wait_all_read()
        time.sleep(AFTER_S)
        counted, records = scene.settled_count()
    values = {
        **seconds_by_group("planned", there.began_at, firsts),
        "planned_lost": counted.lost,
        "planned_again": counted.again,
        "planned_records": records,
    }
    return Readings(values=values, notes=[f"planned, s: {steps_text(there.body, there.began_at)}"])


def _unplanned(stage: Stage, system: System, log: Path) -> Readings:
    with _switched(stage, system, log, "unplanned") as scene:
        scene.kill_source()
        killed_at = time.time()
        permitted = permitted_loss(scene.refusals("failover"))
        there = scene.switch("failover", "--allow-data-loss", str(permitted))
        firsts = scene.wait_all_read()
        time.sleep(AFTER_S)
        counted, records = scene.settled_count()
    values = {
        **seconds_by_group("unplanned", there.began_at, firsts),
        "unplanned_from_kill_s": min(firsts) - killed_at,
        "unplanned_said": there.body["lost"],
        "unplanned_lost": counted.lost,
        "unplanned_lost_known": scene.applications.lost_before(known_until(there.body)),
        "unplanned_again": counted.again,
        "unplanned_records": records,
    }
    return Readings(values=values, notes=[f"unplanned, s: {steps_text(there.body, there.began_at)}"])


@contextmanager
def _switched(stage: Stage, system: System, log: Path, way: str) -> Iterator[SwitchedApplications]:
    """Ready for a switch, with the applications at work on A. Raises SystemEnded and Lost."""
    topics = [f"orders-{number:02d}" for number in range(TOPICS)]
    groups = topics_of_groups(topics, GROUPS, TWO_TOPICS)
    file = stage.work / f"{SWITCHOVER}-{way}.properties"
    with (
        two_brokers() as (a, b),
        Applications(topics, partitions=PARTITIONS, groups=groups, per_s=PER_S) as applications,
        hook_server() as hooks,
    ):
        for broker in (a, b):
            _create(broker.bootstrap, topics)
        settings = {
            **system.settings("none"),
            "B->A.enabled": "true",
            "B->A.topics": "orders-.*",
            "groups": "billing-.*",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": str(GROUPS_EVERY_S),
            "emit.checkpoints.interval.seconds": str(GROUPS_EVERY_S),
            **{f"lockstep.switch.hook.{hook}": hooks.address for hook in HOOKS},
        }
        file.write_text(properties(a.bootstrap, b.bootstrap, "orders-.*", settings))
        with SystemRun(system, file, log) as run:
            scene = SwitchedApplications(a, b, file, run, applications)
            hooks.answer = scene.call_hook
            scene.start_on("A")
            stage.say(f"{SWITCHOVER}: {way}, until {FLOW} is ready")
            scene.wait_ready()
            time.sleep(TRAFFIC_S)
            scene.wait_ready()
            stage.say(f"{SWITCHOVER}: {way}")
            yield scene


def _create(bootstrap: str, topics: Sequence[str]) -> None:
    client = admin(bootstrap)
    new = [NewTopic(topic, PARTITIONS, 1) for topic in topics]
    for future in client.create_topics(new, request_timeout=ADMIN_S).values():
        future.result(ADMIN_S)
