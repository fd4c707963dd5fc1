"""Topics that are created while a system runs: how soon each is mirrored, and whether the others notice."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.support.eventually import NeverHappened, wait_until
from tools.bench.clusters import Clusters
from tools.bench.figures import percentile
from tools.bench.latency import Course, Lost, reading, writing
from tools.bench.readings import Readings
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.wire import Connection, end_offsets

FIRST_RECORD_WITHIN_S = 240.0
MIRRORED_WITHIN_S = 120.0
CHECK_INTERVAL_S = 0.005
TIMES = 10
PAUSE_S = 5.0
WARM_UP_S = 20.0
MINUTE_S = 60.0
TOGETHER = 10


def longest_gap(arrived: Sequence[float], began: float, ended: float) -> float:
    """The longest time without an arrival between ``began`` and ``ended``, both edges included.

    ``arrived`` is in ascending order; arrivals outside are passed over.
    """
    within = [each for each in arrived if began <= each <= ended]
    return max(after - before for before, after in pairwise([began, *within, ended]))


def gaps(arrived: Sequence[Sequence[float]], began: float, added: float, ended: float) -> Mapping[str, float]:
    """The longest gap of any partition before and from the moment when topics were added."""
    before = max(longest_gap(each, began, added) for each in arrived)
    after = max(longest_gap(each, added, ended) for each in arrived)
    return {
        "longest_gap_before_ms": before * 1e3,
        "longest_gap_ms": after * 1e3,
        "longest_gap_over_before_ms": (after - before) * 1e3,
        "gap_ratio": after / before,
    }


def new_topics(clusters: Clusters, partitions: int, first: str, system: System, file: Path, log: Path) -> Readings:
    """Create a topic with one record, some times over, and wait for it on the target.

    From just before the topic is created. Raises SystemEnded.
    """
    draw, seconds = random.Random(1), []
    with SystemRun(system, file, log) as run, Connection(clusters.target) as target:
        _wait_mirrored(run, target, first, partitions, FIRST_RECORD_WITHIN_S, 0.1)
        for turn in range(TIMES):
            time.sleep(PAUSE_S + draw.uniform(0.0, PAUSE_S))  # the system's own rhythm must not decide
            began = time.monotonic()
            _create_with_record(clusters, f"new-{turn}", partitions)
            _wait_mirrored(run, target, f"new-{turn}", partitions, MIRRORED_WITHIN_S, CHECK_INTERVAL_S)
            seconds.append(time.monotonic() - began)
    ordered = sorted(seconds)
    return Readings(
        values={"median_s": percentile(ordered, 0.5), "longest_s": ordered[-1], "shortest_s": ordered[0]},
        notes=["each, s: " + ", ".join(f"{each:.2f}" for each in seconds)],
        log=log.name,
    )


def ten_topics(course: Course, clusters: Clusters, system: System, file: Path, log: Path) -> Readings:
    """Ten topics at once while the course is under way; its partitions' arrivals before and from then on.

    Raises SystemEnded and Lost.
    """
    remote = f"A.{course.topic}"
    with SystemRun(system, file, log) as run, writing(course) as writer, Connection(course.target) as target:
        _wait_mirrored(run, target, course.topic, course.partitions, FIRST_RECORD_WITHIN_S, 0.1)
        writer.at_full_rate()
        values = _two_minutes(course, course.target, remote, partial(_add, clusters, course.partitions), run.check)
    return Readings(values=values, log=log.name)


def ten_topics_unmirrored(course: Course, clusters: Clusters) -> Readings:
    """The same without a mirror: writer and reader on the source, and ten topics created on both clusters, for that is
    what any mirror has to do. Raises Lost."""

    def add() -> float:
        for number in range(TOGETHER):
            _create_with_record(clusters, f"added-{number}", course.partitions)
            clusters.create(clusters.target, f"A.added-{number}", course.partitions)
        return time.monotonic()

    with writing(course) as writer:
        writer.at_full_rate()
        return Readings(values=_two_minutes(course, course.source, course.topic, add, lambda: None))


def _two_minutes(
    course: Course, reads: str, topic: str, add: Callable[[], float], check: Callable[[], None]
) -> Mapping[str, float]:
    """The longest gaps of a reader there in the minute before ``add`` is called, and from then on."""
    with reading(reads, topic, course.partitions) as read, ThreadPoolExecutor(1) as beside:
        arrived: list[list[float]] = [[] for _ in range(course.partitions)]
        _read_arrivals(read.consumer, arrived, time.monotonic() + WARM_UP_S, check)
        for each in arrived:
            each.clear()
        began = time.monotonic()
        _read_arrivals(read.consumer, arrived, began + MINUTE_S, check)
        added = time.monotonic()
        adding = beside.submit(add)
        _read_arrivals(read.consumer, arrived, added + MINUTE_S, check)
        ended = time.monotonic()
        duration_s = adding.result() - added
    return {**gaps(arrived, began, added, ended), "all_mirrored_s": duration_s}


def _add(clusters: Clusters, partitions: int) -> float:
    """Create the topics and wait until each has its record on the target; when that was, by the monotonic clock."""
    names = [f"added-{number}" for number in range(TOGETHER)]
    for name in names:
        _create_with_record(clusters, name, partitions)
    with Connection(clusters.target) as target:
        for name in names:
            _wait_mirrored(None, target, name, partitions, MIRRORED_WITHIN_S, 0.05)
    return time.monotonic()


def _create_with_record(clusters: Clusters, topic: str, partitions: int) -> None:
    clusters.create(clusters.source, topic, partitions)
    producer = Producer({"bootstrap.servers": clusters.source, "linger.ms": 0, "acks": "all"})
    producer.produce(topic, b"first", partition=0)
    if producer.flush(MIRRORED_WITHIN_S):
        raise Lost(f"the first record of {topic} was not taken")


def _wait_mirrored(
    run: SystemRun | None, target: Connection, topic: str, partitions: int, within_s: float, every_s: float
) -> None:
    def mirrored() -> bool:
        if run is not None:
            run.check()
        return sum(end_offsets(target, f"A.{topic}", partitions)) > 0

    try:
        wait_until(mirrored, within=within_s, every=every_s)
    except NeverHappened as never:
        raise SystemEnded(f"nothing of {topic} was copied within {within_s:.0f} s") from never


def _read_arrivals(consumer: Any, arrived: Sequence[list[float]], until: float, check: Callable[[], None]) -> None:
    checked = time.monotonic()
    while (now := time.monotonic()) < until:
        message = consumer.poll(min(0.1, until - now))
        if message is not None:
            if message.error():
                raise Lost(f"the reader: {message.error()}")
            arrived[message.partition()].append(time.monotonic())
        if now - checked > 1:
            check()
            checked = now
