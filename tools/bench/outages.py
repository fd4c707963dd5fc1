"""Parts in which something is killed or frozen: `kills` of a system under way, and `away` for clusters."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.faults.deployment import one_broker_each
from tests.faults.killing import killed_and_started_while_paced
from tests.faults.striking import PACED
from tests.faults.suite import strike
from tests.support.broker import Broker
from tests.support.clusters import Record, commit_offset, create_topic, end_offsets, produce
from tests.support.systems import System, SystemEnded, SystemRun, called, with_processes
from tests.support.tree_usage import TreeAccount, sample
from tools.bench.clusters import two_brokers
from tools.bench.results import OURS, TUNED, Readings, Scalar
from tools.bench.stage import Measured, Stage, Trial

KILLS, AWAY = "kills", "away"
SEES_TOPICS = {"refresh.topics.interval.seconds": "5"}
"""The topic is made after MM2 has started, which looks for new ones every ten minutes."""
SETTLED_S = 20.0
"""Of a copy in which records are doubled: it is as long as the source before all is in it, so what tells is that it
has stopped to grow."""

TOPICS, PARTITIONS, GROUPS = 10, 4, 5
COPIED_WITHIN_S = 180.0
AFTER_S = 10.0
"""From the outage to when it is looked at: whoever has a question under way is told of it."""
PERIOD_S = 30.0
OUTAGES: Mapping[str, tuple[str, Callable[[Broker], object], Callable[[Broker], object]]] = {
    "source": ("A", Broker.kill, Broker.start),
    "target": ("B", Broker.kill, Broker.start),
    "both": ("AB", Broker.kill, Broker.start),
    "source_silent": ("A", Broker.suspend, Broker.resume),
}
"""Which clusters are away, and how they go and come back."""


def killed(systems: Sequence[System]) -> Sequence[System]:
    """Return the systems that are killed: MM2 as shipped copies no 100,000 records a second everywhere."""
    return [system for system in systems if system.name in (OURS, TUNED)]


def _kills(stage: Stage) -> Measured:
    """Kill each system at the same moments, on clusters of its own."""
    facts: dict[str, Scalar] = {"per_s": PACED.rate, "seed": stage.seed}
    systems = {}
    for system in killed(stage.systems):
        log = stage.log(KILLS, system)
        systems[system.name] = stage.attempt(KILLS, system.name, partial(_struck, stage, system, log), log)
    return facts, systems


def _struck(stage: Stage, system: System, log: Path) -> Readings:
    """Strike a running system, and count its records. Raises SystemEnded if it did not come back."""
    is_lockstep = system.name == OURS
    fault = PACED if is_lockstep else replace(PACED, strike=killed_and_started_while_paced)
    with (
        TemporaryDirectory(prefix=f"lockstep-{KILLS}-", dir=stage.work) as folder,
        one_broker_each(Path(folder), log, system, **({} if is_lockstep else SEES_TOPICS)) as deployment,
    ):
        if not is_lockstep:
            deployment.settled_s = SETTLED_S
        outcome = strike(deployment, fault, stage.seed, stage.say)
    count = outcome.count
    if outcome.failed:
        raise SystemEnded(f"{outcome.failed}; of {count.records} {count.lost} lost, {count.doubled} doubled")
    values = {name: getattr(count, name) for name in ("lost", "doubled", "displaced", "records")}
    return Readings(values={**values, "kills": outcome.times})


def _away(stage: Stage) -> Measured:
    """Kill and freeze brokers of its own. Each service has a process of its own."""
    systems = {}
    for system in stage.ours:
        with two_brokers() as (a, b):
            own = replace(stage, clusters=replace(stage.clusters, source=a.bootstrap, target=b.bootstrap))
            trial = own.trial(AWAY, with_processes(system), "away-.*", "none", {})
            systems[system.name] = stage.attempt(AWAY, system.name, partial(_measured, stage, a, b, trial), trial.log)
    return {"topics": TOPICS, "groups": GROUPS}, systems


def _measured(stage: Stage, a: Broker, b: Broker, trial: Trial) -> Readings:
    """Let clusters go and come back. Raises SystemEnded if what is written after an outage is not copied."""
    values: dict[str, float] = {}
    notes: list[str] = []
    topics = [create_topic(a.bootstrap, f"away-{number}", partitions=PARTITIONS) for number in range(TOPICS)]
    with trial.running() as run:
        _wait_copied(run, a, b, topics)
        for number in range(GROUPS):
            commit_offset(a.bootstrap, f"group-{number}", topics[number], 0, 1)
        for name, (aliases, go, come) in OUTAGES.items():
            brokers = [broker for alias, broker in (("A", a), ("B", b)) if alias in aliases]
            for broker in brokers:
                go(broker)
            stage.say(f"{AWAY}: {name}, looked at for {PERIOD_S:.0f} s")
            time.sleep(AFTER_S)
            shares = _shares(run)
            for broker in brokers:
                come(broker)
            began = time.monotonic()
            _wait_copied(run, a, b, topics)
            values |= {f"{name}_cpu_share": shares[0][1], f"{name}_copies_after_s": time.monotonic() - began}
            notes.append(f"{name}: " + ", ".join(f"{process} {share:.1%}" for process, share in shares) + " of a core")
    return Readings(values=values, notes=notes)


def _shares(run: SystemRun) -> Sequence[tuple[str, float]]:
    """Return the share of a core that each service uses with all that it has started, the greediest first."""
    services = {child: TreeAccount() for child in psutil.Process(run.pid).children()}
    before = {child: account.add(sample(child)).total for child, account in services.items()}
    names = {child: called(child.cmdline()) for child in services}
    ends_at = (began := time.monotonic()) + PERIOD_S
    used: dict[str, float] = {}
    while time.monotonic() < ends_at:
        run.sleep(1.0)
        for child, account in services.items():
            used[names[child]] = account.add(sample(child)).total - before[child]
    if ended := [names[child] for child in services if not child.is_running()]:
        raise SystemEnded(f"{', '.join(ended)} ended while a cluster was away")
    seconds = time.monotonic() - began
    return sorted(((name, cpu_s / seconds) for name, cpu_s in used.items()), key=lambda share: -share[1])


def _wait_copied(run: SystemRun, source: Broker, target: Broker, topics: Sequence[str]) -> None:
    """Write a record more into each partition, and wait until it is on the target."""
    for topic in topics:
        produce(source.bootstrap, topic, [Record(value=b"x", partition=number) for number in range(PARTITIONS)])
    wanted = {topic: end_offsets(source.bootstrap, topic) for topic in topics}
    run.wait(
        lambda: all(end_offsets(target.bootstrap, f"A.{topic}") == wanted[topic] for topic in topics),
        within=COPIED_WITHIN_S,
        every=0.5,
        otherwise="not all was copied",
    )


MEASURES = {KILLS: _kills, AWAY: _away}
