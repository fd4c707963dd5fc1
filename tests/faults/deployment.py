"""Everything that a fault may strike: two clusters behind proxies, and `lockstep run` between them.

Nothing here starts a part of Lockstep again after it was struck: that it comes back by itself is what is looked at.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import KafkaException

from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import create_topic, end_offsets, wait_for_brokers
from tests.support.eventually import wait_until
from tests.support.mirror import ports_of
from tests.support.proxy import Proxy
from tests.support.shifted_clock import ShiftedClock, can_shift
from tests.support.systems import SYSTEMS, System, SystemRun

PARTITIONS = 4
LOCKSTEP = SYSTEMS["lockstep"]
CODEC = "lz4"  # of what is written
GOES_ON_WITHIN = 240.0  # a service that crashed often is started again after 30 s, and Spark takes 12
CAUGHT_UP_WITHIN = 300.0
SETTLED_S = 3.0
IN_TRANSACTIONS_SETTLED_S = 15.0
VICTIM_WITHIN = 90.0
STEP_S = 0.1

THREE = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
}
"""What each broker of a cluster of three is told."""
FACTORS = (
    *("replication.factor", "checkpoints.topic.replication.factor", "heartbeats.topic.replication.factor"),
    *("offset.storage.replication.factor", "status.storage.replication.factor", "config.storage.replication.factor"),
)


@dataclass
class Deployment:
    """Both clusters and the run between them, for topics whose names begin with ``fault-``.

    ``longest_s`` is the longest time that anything took to go on since it was last set to zero.
    """

    source: Broker
    targets: Sequence[Broker]
    run: SystemRun
    folder: Path
    longest_s: float = field(default=0.0)
    settled_s: float = SETTLED_S
    """How long a copy must not have grown to be complete. In transactions its offsets do not say so: markers count."""
    clock: ShiftedClock | None = None
    """The time of day of all processes of the run; None where it cannot be moved."""

    @property
    def target(self) -> Broker:
        """The target's only broker, or its first."""
        return self.targets[0]

    @property
    def target_bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.targets)

    def create(self, topic: str) -> None:
        create_topic(self.source.bootstrap, topic, partitions=PARTITIONS)

    def ends(self, topic: str) -> Mapping[int, int] | None:
        """Where each partition of the copy ends; None while the target cannot say."""
        return _ends(self.target_bootstrap, f"A.{topic}")

    def goes_on(self, topic: str) -> float:
        """Returns when every partition of the copy has grown from now on: the seconds until then. Raises
        NeverHappened."""
        began = time.monotonic()
        before = wait_until(lambda: self._alive(self.ends(topic)), within=GOES_ON_WITHIN, what=f"{topic} on the target")

        def grown() -> bool:
            now = self._alive(self.ends(topic))
            return now is not None and all(now.get(each, 0) > end for each, end in before.items())

        wait_until(grown, within=GOES_ON_WITHIN, every=STEP_S, what=f"the copy of {topic} goes on")
        lasted = time.monotonic() - began
        self.longest_s = max(self.longest_s, lasted)
        return lasted

    def caught_up(self, topic: str) -> None:
        """Returns when the copy is at least as long as the source and has not grown for some seconds: what is late has
        come in. Raises NeverHappened."""
        wanted = _ends(self.source.bootstrap, topic)
        assert wanted, f"{topic} is not on the source"
        seen: list[tuple[float, Mapping[int, int]]] = []

        def settled() -> bool:
            now = self._alive(self.ends(topic))
            if now is None or any(now.get(each, 0) < end for each, end in wanted.items()):
                return False
            if not seen or seen[-1][1] != now:
                seen.append((time.monotonic(), now))
            return time.monotonic() - seen[-1][0] >= self.settled_s

        wait_until(settled, within=CAUGHT_UP_WITHIN, every=STEP_S, what=f"{topic} is copied to {wanted}")

    def heal(self) -> None:
        """What a fault left broken around the run is whole again: brokers run, everything passes, clocks are right."""
        if self.clock is not None:
            self.clock.set(0)
        for broker in (self.source, *self.targets):
            if broker.proxy:
                broker.proxy.heal()
            if broker.running:
                broker.resume()
            else:
                broker.start()

    def victim(self, kind: str, pick: Callable[[Sequence[psutil.Process]], psutil.Process]) -> psutil.Process:
        """A process of that kind (`VICTIMS`), as soon as there is one. Raises NeverHappened."""

        def found() -> psutil.Process | None:
            there = VICTIMS[kind](self)
            return pick(there) if there else None

        return wait_until(found, within=VICTIM_WITHIN, every=STEP_S, what=f"a {kind} to strike")

    def processes(self, *words: str) -> list[psutil.Process]:
        """Processes of the run whose command line contains one of the words; without words, all.

        By session, which each service leads: what the death of a parent left alone belongs to it too.
        """
        sessions = {_session(child) for child in psutil.Process(self.run.pid).children()} - {None}
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
                named = not words or any(each in process.cmdline() for each in words)
                if named and _session(process) in sessions:
                    found.append(process)
        return found

    def everything(self) -> list[psutil.Process]:
        """Both clusters, and all of the run."""
        here = [psutil.Process(pid) for pid in (self.run.pid, *(broker.pid for broker in (self.source, *self.targets)))]
        return [*here, *self.processes()]

    def slots(self) -> list[psutil.Process]:
        """Spark's Python workers that hold connections to the clusters: those which slots run in."""
        ports = {port for broker in (self.source, *self.targets) for port in _ports(broker)}
        workers = self.processes("lockstep_data_plane.spark.pyspark_daemon")
        return [worker for worker in workers if ports & set(ports_of(worker).values())]

    def _alive(self, ends: Mapping[int, int] | None) -> Mapping[int, int] | None:
        self.run.check()
        return ends


def _drivers(there: Deployment) -> list[psutil.Process]:
    return there.processes("lockstep_data_plane")


def _jvms(there: Deployment) -> list[psutil.Process]:
    found = []
    for driver in _drivers(there):
        with suppress(psutil.NoSuchProcess):
            found += [child for child in driver.children() if child.name() == "java"]
    return found


def _daemons(there: Deployment) -> list[psutil.Process]:
    """Spark's Python daemon itself, not the workers it forked, whose command lines are the same.

    Once it was killed its workers copy on, and Spark starts another only for the next task: until then, a worker.
    """
    jvms = {jvm.pid for jvm in _jvms(there)}
    daemons = [each for each in there.processes("lockstep_data_plane.spark.pyspark_daemon") if each.ppid() in jvms]
    return daemons or there.slots()


def _others(there: Deployment) -> list[psutil.Process]:
    return there.processes("lockstep_runtime.service.shared_process")


VICTIMS: Mapping[str, Callable[[Deployment], list[psutil.Process]]] = {
    "driver": _drivers,
    "JVM": _jvms,
    "Python daemon": _daemons,
    "slot": Deployment.slots,
    "control services": _others,
}


@contextmanager
def in_transactions(folder: Path, log: Path) -> Iterator[Deployment]:
    """As `one_broker_each`, with `exactly.once.source.support=enabled`."""
    with one_broker_each(folder, log, LOCKSTEP, **{"B.exactly.once.source.support": "enabled"}) as there:
        there.settled_s = IN_TRANSACTIONS_SETTLED_S
        yield there


@contextmanager
def one_broker_each(folder: Path, log: Path, system: System = LOCKSTEP, **more: str) -> Iterator[Deployment]:
    """Clusters of one broker, both behind proxies. `more` goes into the file."""
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy()) for _ in "AB"]
        a, b = (Broker(alias, behind=proxy) for alias, proxy in zip("AB", proxies, strict=True))
        stack.enter_context(started(a, b))
        all_settings = {**system.settings(CODEC), **more}
        file = _file(folder, proxies[0].bootstrap, proxies[1].bootstrap, 1, all_settings)
        clock = ShiftedClock(folder) if can_shift() else None
        environment = None if clock is None else {**os.environ, **clock.environment()}
        run = stack.enter_context(SystemRun(system, file, log, environment))
        yield Deployment(a, [b], run, folder, clock=clock)


@contextmanager
def three_broker_target(folder: Path, log: Path) -> Iterator[Deployment]:
    """A source of one broker, a target of three; no proxies."""
    with ExitStack() as stack:
        a, quorum = Broker("A"), Quorum.with_nodes(3)
        targets = [Broker(f"B{node}", properties=THREE, quorum=quorum, node=node) for node in quorum.controllers]
        stack.enter_context(started(a, *targets))
        bootstrap = ",".join(broker.bootstrap for broker in targets)
        wait_for_brokers(bootstrap, len(targets))
        file = _file(folder, a.bootstrap, bootstrap, 3, LOCKSTEP.settings(CODEC))
        run = stack.enter_context(SystemRun(LOCKSTEP, file, log))
        yield Deployment(a, targets, run, folder)


def _file(folder: Path, source: str, target: str, factor: int, more: Mapping[str, str]) -> Path:
    file = folder / "mm2.properties"
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": source,
        "B.bootstrap.servers": target,
        "A->B.enabled": "true",
        "A->B.topics": "fault-.*",
        "B->A.enabled": "false",
        "offset-syncs.topic.replication.factor": "1",
        **dict.fromkeys(FACTORS, str(factor)),
        **more,
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return file


def _session(process: psutil.Process) -> int | None:
    """None for a process that has ended."""
    try:
        return os.getsid(process.pid) if process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.NoSuchProcess, ProcessLookupError):
        return None


def _ports(broker: Broker) -> list[int]:
    return [broker.port, broker.proxy.port] if broker.proxy else [broker.port]


def _ends(bootstrap: str, topic: str) -> Mapping[int, int] | None:
    try:
        return end_offsets(bootstrap, topic) or None
    except KafkaException:
        return None
