"""What each service costs while a cluster does not answer: the source, the target, both."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import psutil

from tests.support.broker import Broker
from tests.support.clusters import Record, commit_offset, create_topic, end_offsets, produce
from tests.support.eventually import NeverHappened, wait_until
from tests.support.mm2 import properties
from tools.bench.brokers import two_brokers
from tools.bench.figures import OURS
from tools.bench.readings import Readings, ReadingsPart
from tools.bench.stage import Stage
from tools.bench.systems import System, SystemEnded, SystemRun, called, with_processes
from tools.bench.usage import TreeAccount, sample

AWAY = "away"
TOPICS, PARTITIONS, GROUPS = 10, 4, 5
COPIED_WITHIN_S = 180.0
AFTER_S = 10.0
"""From the outage to when it is looked at: whoever has a question under way is told of it."""
PERIOD_S = 30.0
CHECK_INTERVAL_S = 0.5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outage:
    """What is away, and how it goes and comes back."""

    brokers: Sequence[Broker]
    go: Callable[[Broker], None]
    come: Callable[[Broker], object]


def away(stage: Stage) -> ReadingsPart:
    """Brokers of its own, for they are killed and frozen."""
    systems = {
        system.name: stage.attempt(AWAY, system.name, f"{AWAY}-{system.name}.log", partial(_measured, stage, system))
        for system in stage.systems
        if system.name == OURS
    }
    return ReadingsPart(name=AWAY, facts={"topics": TOPICS, "groups": GROUPS}, systems=systems)


def greediest(used: Mapping[str, float], seconds: float) -> Sequence[tuple[str, float]]:
    """The share of a core that each service has used in so many seconds, the greediest first."""
    return sorted(((name, each / seconds) for name, each in used.items()), key=lambda each: -each[1])


def _measured(stage: Stage, system: System) -> Readings:
    """Each service has a process of its own. Raises SystemEnded where what is written after an outage is not copied."""
    file, log = stage.work / f"{AWAY}.properties", stage.logs() / f"{AWAY}-{system.name}.log"
    values: dict[str, float] = {}
    notes: list[str] = []
    with two_brokers() as (a, b):
        topics = [create_topic(a.bootstrap, f"away-{number}", partitions=PARTITIONS) for number in range(TOPICS)]
        outages = {
            "source": Outage([a], Broker.kill, Broker.start),
            "target": Outage([b], Broker.kill, Broker.start),
            "both": Outage([a, b], Broker.kill, Broker.start),
            "source_silent": Outage([a], Broker.suspend, Broker.resume),
        }
        file.write_text(properties(a.bootstrap, b.bootstrap, "away-.*", system.settings("none")))
        with SystemRun(with_processes(system), file, log) as run:
            _copied(run, a, b, topics)
            for number in range(GROUPS):
                commit_offset(a.bootstrap, f"group-{number}", topics[number], 0, 1)
            for name, outage in outages.items():
                for broker in outage.brokers:
                    outage.go(broker)
                stage.say(f"{AWAY}: {name}, looked at for {PERIOD_S:.0f} s")
                time.sleep(AFTER_S)
                shares = _checked_at(run)
                for broker in outage.brokers:
                    outage.come(broker)
                began = time.monotonic()
                _copied(run, a, b, topics)
                values |= {f"{name}_cpu_share": shares[0][1], f"{name}_copies_after_s": time.monotonic() - began}
                notes.append(
                    f"{name}: " + ", ".join(f"{process} {share:.1%}" for process, share in shares) + " of a core"
                )
    return Readings(values=values, notes=notes, log=log.name)


def _checked_at(run: SystemRun) -> Sequence[tuple[str, float]]:
    """Each service with all that it has started: the data plane with Spark."""
    services = {child: TreeAccount() for child in psutil.Process(run.pid).children()}
    before = {child: account.add(sample(child)).total for child, account in services.items()}
    names = {child: called(child.cmdline()) for child in services}
    ends_at = (began := time.monotonic()) + PERIOD_S
    used: dict[str, float] = {}
    while time.monotonic() < ends_at:
        time.sleep(1.0)
        run.check()
        for child, account in services.items():
            used[names[child]] = account.add(sample(child)).total - before[child]
    ended = [names[child] for child in services if not child.is_running()]
    if ended:
        raise SystemEnded(f"{', '.join(ended)} ended while a cluster was away")
    return greediest(used, time.monotonic() - began)


def _copied(run: SystemRun, source: Broker, target: Broker, topics: Sequence[str]) -> None:
    """A record more in each partition, and it is on the target."""
    for topic in topics:
        produce(source.bootstrap, topic, [Record(value=b"x", partition=number) for number in range(PARTITIONS)])
    wanted = {topic: end_offsets(source.bootstrap, topic) for topic in topics}

    def copied() -> bool:
        run.check()
        return all(end_offsets(target.bootstrap, f"A.{topic}") == wanted[topic] for topic in topics)

    try:
        wait_until(copied, within=COPIED_WITHIN_S, every=CHECK_INTERVAL_S)
    except NeverHappened as never:
        raise SystemEnded(f"not all was copied within {COPIED_WITHIN_S:.0f} s") from never
