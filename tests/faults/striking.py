"""The faults: each strikes a deployment under traffic, some times over, and returns how often.

What is random is drawn from the dice given, so that a seed gives the same strikes at the same moments; what the
processes make of them is their own.
"""

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product

import psutil

from tests.faults.cutting import CUTS
from tests.faults.deployment import Deployment
from tests.faults.killing import MOVES, killed, killed_while_paced
from tests.faults.scene import Scene
from tests.support.broker import Broker
from tests.support.clusters import admin, set_configs
from tests.support.eventually import wait_until
from tests.support.proxy import Proxy

REFUSED_WITHIN = 30.0
ADMIN_S = 30.0
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Fault:
    """``rate``: records per second while it strikes."""

    name: str
    strike: Callable[[Scene], int]
    rate: int = 5_000


def short(scene: Scene) -> int:
    """A little of everything that takes little time, in random order; then a kill, which takes longest to recover
    from."""
    source, target = _before(scene.there.source), _before(scene.there.target)
    strikes: list[Callable[[], int]] = [
        lambda: cut(scene, target, 2),
        lambda: stalled(scene, scene.dice.choice((source, target)), 2.0),
        lambda: suspended(scene, "slot", (2.0,)),
    ]
    scene.dice.shuffle(strikes)
    return sum(strike() for strike in strikes) + killed(scene, [scene.dice.choice(("driver", "JVM", "slot"))], 1)


def broker_restarted(scene: Scene, broker: Broker) -> int:
    """In order, and by kill -9."""
    scene.say(f"{broker.alias} restarts")
    broker.restart()
    scene.goes_on()
    time.sleep(scene.dice.uniform(0.0, 3.0))
    scene.say(f"kill -9 {broker.alias}")
    broker.kill()
    broker.start()
    scene.goes_on()
    return 2


def target_and_copier_killed(scene: Scene, times: int) -> int:
    """The target by kill -9, and a driver, JVM or slot while it is down and while it comes back."""
    target, kinds = scene.there.target, ("driver", "JVM", "slot")
    for _ in range(times):
        time.sleep(scene.dice.uniform(0.0, 3.0))
        scene.say(f"kill -9 {target.alias}")
        target.kill()
        time.sleep(scene.dice.uniform(0.0, 0.5))
        scene.kill(scene.dice.choice(kinds))
        target.start()
        if scene.dice.random() < 0.5:
            time.sleep(scene.dice.uniform(0.0, 4.0))
            scene.kill(scene.dice.choice(kinds))
        scene.goes_on()
    return times


def broker_away(scene: Scene, broker: Broker, seconds: float) -> int:
    """Down for so long that whoever tries again has come to wait his longest."""
    scene.say(f"{broker.alias} is away for {seconds:g} s")
    broker.stop()
    time.sleep(seconds)
    broker.start()
    scene.goes_on()
    return 1


def broker_back_by_turns(scene: Scene, broker: Broker, seconds: float, times: int) -> int:
    """Away for so long, then there and gone by turns: whoever has only just found it loses it once more."""
    proxy = _before(broker)
    scene.say(f"{broker.alias} is away for {seconds:g} s, and then {times} times for one more")
    proxy.refuse()
    time.sleep(seconds)
    for _ in range(times):
        proxy.heal()
        time.sleep(scene.dice.uniform(0.1, 1.5))
        proxy.refuse()
        time.sleep(1.0)
    proxy.heal()
    scene.goes_on()
    return 1 + times


def cut(scene: Scene, proxy: Proxy, times: int) -> int:
    """Connections reset with requests in flight: appended or not, nobody knows."""
    for turn in range(times):
        time.sleep(scene.dice.uniform(0.0, 2.0))
        CUTS[turn % len(CUTS)](proxy, scene.dice)
        scene.goes_on()
    return times


def struck_afar(scene: Scene, proxy: Proxy, way_s: float, times: int) -> int:
    """Each request and each answer takes so long on its way, so that many batches of a partition are in flight; then
    connections are cut, and slots killed."""
    scene.say(f"a round trip takes {2e3 * way_s:g} ms")
    proxy.delay(requests=way_s, answers=way_s)
    proxy.cut()  # who is connected knows a shorter way
    scene.goes_on()
    return cut(scene, proxy, times) + killed(scene, ["slot"], times // 2)


def stalled(scene: Scene, proxy: Proxy, seconds: float) -> int:
    """Connections stay open and nothing passes, then all that was held arrives."""
    scene.say(f"nothing passes for {seconds:g} s")
    proxy.hold()
    time.sleep(seconds)
    proxy.heal()
    scene.goes_on()
    return 1


def refused_writes(scene: Scene, seconds: float) -> int:
    """The remote topic wants all three replicas and one broker is away: each append is answered NOT_ENOUGH_REPLICAS.

    For a target of three brokers: no topic can want more replicas than it has.
    """
    there, remote = scene.there, f"A.{scene.topic}"
    away = scene.dice.choice(there.targets)
    away.stop()
    scene.goes_on()  # with new leaders, which know their ends only once they may append
    set_configs(there.target_bootstrap, remote, {"min.insync.replicas": "3"})
    ends_read: list[Mapping[int, int] | None] = [None]

    def refuses() -> bool:
        ends_read.append(there.ends(scene.topic))
        return ends_read[-1] is not None and ends_read[-1] == ends_read[-2]

    wait_until(refuses, within=REFUSED_WITHIN, every=1.0, what=f"{remote} takes no records")
    scene.say(f"{away.alias} is away, the target refuses writes for {seconds:g} s")
    time.sleep(seconds)
    assert there.ends(scene.topic) == ends_read[-1], "the target took records although it should refuse them"
    set_configs(there.target_bootstrap, remote, {"min.insync.replicas": "2"})
    scene.goes_on()
    away.start()
    _in_sync(there)
    scene.goes_on()
    return 1


def full_disk(scene: Scene) -> int:
    """The target's broker can no longer write to any file, as on a full disk: it ends itself. Then there is room."""
    broker = scene.there.target
    scene.say("no room on the target's disk")
    _, hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (0, hard))
    wait_until(lambda: not broker.running, within=120, what="the broker ends for want of room")
    broker.start()
    scene.goes_on()
    return 1


def suspended(scene: Scene, kind: str, seconds: Sequence[float]) -> int:
    """SIGSTOP, and SIGCONT so many seconds later, for one process of that kind."""
    for each in seconds:
        victim = scene.there.victim(kind, scene.dice.choice)
        scene.say(f"SIGSTOP {kind} {victim.pid} for {each:g} s")
        with _woken([victim]):
            victim.suspend()
            time.sleep(each)
        scene.goes_on()
    return len(seconds)


def broker_suspended(scene: Scene, broker: Broker, seconds: float) -> int:
    """SIGSTOP and SIGCONT for a broker: its connections stay open."""
    scene.say(f"SIGSTOP {broker.alias} for {seconds:g} s")
    broker.suspend()
    try:
        time.sleep(seconds)
    finally:
        broker.resume()
    scene.goes_on()
    return 1


def all_suspended(scene: Scene, seconds: Sequence[float]) -> int:
    """SIGSTOP and SIGCONT for both clusters and all of Lockstep at once, as when a virtual machine is paused; each time
    also while a driver that was killed starts anew."""
    for starts, each in product((False, True), seconds):
        if starts:
            scene.kill("driver")
            time.sleep(scene.dice.uniform(0.0, 8.0))
        victims = scene.there.everything()
        scene.say(f"SIGSTOP all {len(victims)} processes for {each:g} s" + (", the driver starts" if starts else ""))
        with _woken(victims):
            for victim in victims:
                with suppress(psutil.NoSuchProcess):
                    victim.suspend()
            time.sleep(each)
        scene.goes_on()
    return 2 * len(seconds)


def clock_jumped(scene: Scene, jumps: Sequence[float], seconds: float) -> int:
    """The time of day of every process of the run is set anew, by so many hours from the brokers' each time, and stays
    so for ``seconds``; then it is right again."""
    clock = scene.there.clock
    assert clock is not None, "needs Linux and a C compiler as cc"
    for hours in (*jumps, 0.0):
        scene.say(f"the time of day is {hours:+g} h off")
        clock.set(round(hours * HOUR_S))
        scene.goes_on()
        time.sleep(seconds)
        scene.goes_on()
    return len(jumps) + 1


def rolling_restart(scene: Scene) -> int:
    """Each broker of the target in order, the next once all replicas are in sync again; then one by kill -9."""
    for broker in scene.there.targets:
        scene.say(f"{broker.alias} restarts")
        broker.restart()
        _in_sync(scene.there)
        scene.goes_on()
    victim = scene.dice.choice(scene.there.targets)
    scene.say(f"kill -9 {victim.alias}")
    victim.kill()
    scene.goes_on()
    victim.start()
    _in_sync(scene.there)
    scene.goes_on()
    return len(scene.there.targets) + 1


@contextmanager
def _woken(victims: Sequence[psutil.Process]) -> Iterator[None]:
    """Whichever of these is frozen within goes on behind it."""
    try:
        yield
    finally:
        for victim in victims:
            with suppress(psutil.NoSuchProcess):  # who froze too long may have been ended
                victim.resume()


def _in_sync(there: Deployment) -> None:
    client = admin(there.target_bootstrap)

    def all_of_them() -> bool:
        topics = client.list_topics(timeout=ADMIN_S).topics.values()
        return all(len(one.isrs) == len(one.replicas) for topic in topics for one in topic.partitions.values())

    wait_until(all_of_them, within=120, every=0.25, what="every replica of the target in sync")


def _before(broker: Broker) -> Proxy:
    assert broker.proxy is not None, f"{broker.alias} has no proxy"
    return broker.proxy


PACED = Fault("kill -9 at 100,000 records/s", killed_while_paced, 100_000)

FAULTS: Sequence[Fault] = (
    Fault("kill -9 of driver, JVM, Python daemon and slot", lambda scene: killed(scene, MOVES, 5)),
    PACED,
    Fault("kill -9 of control services", lambda scene: killed(scene, ["control services"], 4)),
    Fault("source broker restarts", lambda scene: broker_restarted(scene, scene.there.source)),
    Fault("target broker restarts", lambda scene: broker_restarted(scene, scene.there.target)),
    Fault("source broker away for 70 s", lambda scene: broker_away(scene, scene.there.source, 70.0)),
    Fault("target broker away for 70 s", lambda scene: broker_away(scene, scene.there.target, 70.0)),
    Fault("source broker back by turns", lambda scene: broker_back_by_turns(scene, scene.there.source, 40.0, 6)),
    Fault("target broker back by turns", lambda scene: broker_back_by_turns(scene, scene.there.target, 40.0, 6)),
    Fault("connections to the source cut", lambda scene: cut(scene, _before(scene.there.source), 6)),
    Fault("connections to the target cut", lambda scene: cut(scene, _before(scene.there.target), 6)),
    Fault("connections to the source stalled 30 s", lambda scene: stalled(scene, _before(scene.there.source), 30.0)),
    Fault("connections to the target stalled 30 s", lambda scene: stalled(scene, _before(scene.there.target), 30.0)),
    Fault("far target: cuts, kill -9 of slots", lambda scene: struck_afar(scene, _before(scene.there.target), 0.04, 8)),
    Fault("target disk full", full_disk),
    Fault("slot frozen", lambda scene: suspended(scene, "slot", (5.0, 30.0))),
    Fault("JVM frozen", lambda scene: suspended(scene, "JVM", (5.0, 30.0))),
    Fault("driver frozen", lambda scene: suspended(scene, "driver", (5.0, 30.0))),
    Fault("source broker frozen", lambda scene: broker_suspended(scene, scene.there.source, 15.0)),
    Fault("target broker frozen", lambda scene: broker_suspended(scene, scene.there.target, 15.0)),
    Fault("all frozen", lambda scene: all_suspended(scene, (5.0, 15.0, 150.0))),
    # Half an hour is what brokers take of a record's timestamp, two days is not; and longer than a slot may be silent.
    Fault("clock jumps", lambda scene: clock_jumped(scene, (0.5, -1.0, 48.0), 40.0)),
)
"""On clusters of one broker each."""

THREE_BROKERS: Sequence[Fault] = (
    Fault("target refuses writes", lambda scene: refused_writes(scene, 20.0)),
    Fault("rolling restart of the target", rolling_restart),
)
"""On a target of three brokers."""

IN_TRANSACTIONS: Sequence[Fault] = (
    Fault("in transactions: kill -9 of driver, JVM, Python daemon and slot", lambda scene: killed(scene, MOVES, 3)),
    Fault("in transactions: kill -9 at 100,000 records/s", killed_while_paced, 100_000),
    Fault("in transactions: connections to the target cut", lambda scene: cut(scene, _before(scene.there.target), 10)),
    Fault("in transactions: target restarted", lambda scene: broker_restarted(scene, scene.there.target)),
    Fault(
        "in transactions: kill -9 of the target with driver, JVM or slot",
        lambda scene: target_and_copier_killed(scene, 5),
    ),
    Fault("in transactions: slot frozen", lambda scene: suspended(scene, "slot", (5.0, 30.0))),
)
"""On clusters of one broker each, with records and progress in transactions."""

SHORT = Fault("short form: cuts, a stall, a frozen slot, kill -9 of driver, JVM or slot", short)
"""What `make test` has time for."""
