"""Many partitions in which nothing happens: what they cost, and how soon a record that comes after all is mirrored."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from tests.support.eventually import NeverHappened, wait_until
from tools.bench.clusters import Clusters
from tools.bench.figures import MEBIBYTE, percentile
from tools.bench.latency import Lost, reading
from tools.bench.readings import Readings
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.wire import Connection, end_offsets

ALL_COPIED_WITHIN_S = 600.0
REST_S = 30.0
FIRSTS = 10
ARRIVES_WITHIN_S = 60.0
CHECK_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Topics of so many partitions each, with one record in every partition; looked at for ``period_s`` at rest."""

    clusters: Clusters
    topics: Sequence[str]
    partitions: int
    period_s: float


def idle(fleet: Fleet, say: Callable[[str], None], system: System, file: Path, log: Path) -> Readings:
    """Start a system, let it copy the one record of every partition, and look at it when it has nothing to do.

    Raises SystemEnded and Lost.
    """
    wanted = len(fleet.topics) * fleet.partitions
    with SystemRun(system, file, log) as run, Connection(fleet.clusters.target) as target:

        def copied() -> bool:
            run.check()
            return sum(sum(end_offsets(target, f"A.{each}", fleet.partitions)) for each in fleet.topics) >= wanted

        try:
            wait_until(copied, within=ALL_COPIED_WITHIN_S, every=CHECK_INTERVAL_S)
        except NeverHappened as never:
            raise SystemEnded(f"not every partition was copied within {ALL_COPIED_WITHIN_S:.0f} s") from never
        copied_s = run.elapsed()
        say(f"{wanted:,} partitions copied after {copied_s:.1f} s; at rest for {REST_S + fleet.period_s:.0f} s")
        time.sleep(REST_S)  # let it come to rest
        before, each_before, began = run.use(), run.seconds(), time.perf_counter()
        time.sleep(fleet.period_s)
        share = run.use().since(before).total / (time.perf_counter() - began)
        each_after, held = run.seconds(), run.resident()
        firsts = sorted(_firsts(fleet, run))
    return Readings(
        values={
            "idle_cpu_share": share,
            "idle_rss_mib": sum(size for _, size in held) / MEBIBYTE,
            "first_record_s": percentile(firsts, 0.5),
            "first_record_longest_s": firsts[-1],
            "all_copied_s": copied_s,
        },
        notes=[
            ", ".join(f"{name} {size / MEBIBYTE:.0f} MiB" for name, size in _largest_first(held)),
            ", ".join(f"{name} {used:.1%}" for name, used in _shares(each_before, each_after, fleet.period_s))
            + " of a core",
        ],
        log=log.name,
    )


def _largest_first(held: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    return sorted(held, key=lambda each: -each[1])


def _shares(
    before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]], period_s: float
) -> Sequence[tuple[str, float]]:
    """What part of a core each process has used, the greediest first."""
    used = [(name, (seconds - before[pid][1]) / period_s) for pid, (name, seconds) in after.items() if pid in before]
    return sorted(used, key=lambda each: -each[1])


def _firsts(fleet: Fleet, run: SystemRun) -> list[float]:
    """Seconds from production to arrival of one record in each of some partitions, one after the other."""
    draw, seconds = random.Random(1), []
    producer = Producer({"bootstrap.servers": fleet.clusters.source, "linger.ms": 0, "acks": "all"})
    for topic in draw.sample(fleet.topics, min(FIRSTS, len(fleet.topics))):
        partition, remote = draw.randrange(fleet.partitions), f"A.{topic}"
        producer.list_topics(topic, timeout=ARRIVES_WITHIN_S)  # who leads is known before the clock starts
        with reading(fleet.clusters.target, remote, fleet.partitions) as read:
            read.consumer.poll(1.0)  # its fetches wait at the broker by now
            began = time.monotonic()
            producer.produce(topic, b"at last", partition=partition)
            producer.poll(0)
            while (message := read.consumer.poll(0.1)) is None or message.error():
                run.check()
                producer.poll(0)
                if time.monotonic() - began > ARRIVES_WITHIN_S:
                    raise Lost(f"the record in {topic}-{partition} did not arrive within {ARRIVES_WITHIN_S:.0f} s")
            seconds.append(time.monotonic() - began)
        producer.flush(ARRIVES_WITHIN_S)
    return seconds
