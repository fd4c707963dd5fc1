"""Topics that are created while a system runs: how soon each is mirrored, and whether the others notice."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

from tests.support.clusters import Record, produce
from tests.support.eventually import NeverHappened, wait_until
from tests.support.systems import SystemEnded
from tools.bench.latency import Course, course_of, read_until, reading, warm, writing
from tools.bench.results import Readings, percentile
from tools.bench.stage import PARTITIONS, Measured, Stage, Trial
from tools.bench.wire import end_offsets

NEW_TOPIC, TEN_TOPICS = "new_topic", "ten_topics"
MIRRORED_WITHIN_S = 120.0
TIMES, PAUSE_S = 10, 5.0
WARM_UP_S, MINUTE_S = 20.0, 60.0
TOGETHER, BUSY_PER_S = 10, 1_000


def longest_gap(arrived: Sequence[float], began: float, ended: float) -> float:
    """Return the longest time without an arrival between ``began`` and ``ended``, both edges included.

    ``arrived`` is in ascending order; arrivals outside are passed over.
    """
    within = [moment for moment in arrived if began <= moment <= ended]
    return max(after - before for before, after in pairwise([began, *within, ended]))


def gaps(arrived: Sequence[Sequence[float]], began: float, added: float, ended: float) -> Mapping[str, float]:
    """Return the longest gap of any partition before and from the moment when topics were added."""
    before = max(longest_gap(moments, began, added) for moments in arrived)
    after = max(longest_gap(moments, added, ended) for moments in arrived)
    return {
        "longest_gap_before_ms": before * 1e3,
        "longest_gap_ms": after * 1e3,
        "longest_gap_over_before_ms": (after - before) * 1e3,
        "gap_ratio": after / before,
    }


def _has_record(stage: Stage, topic: str) -> bool:
    return sum(end_offsets(stage.clusters.target, f"A.{topic}", PARTITIONS)) > 0


def _create_with_record(stage: Stage, topic: str) -> None:
    stage.clusters.create(stage.clusters.source, topic, PARTITIONS)
    produce(stage.clusters.source, topic, [Record(value=b"first", partition=0)], settings={"linger.ms": "0"})


def new_topics(stage: Stage, first: str, trial: Trial) -> Readings:
    """Create a topic with one record, some times over, and wait for it on the target.

    From just before the topic is created. Raises SystemEnded.
    """
    draw, seconds = random.Random(1), []
    with trial.copying(stage.clusters.target, f"A.{first}") as (run, *_):
        for turn in range(TIMES):
            run.sleep(PAUSE_S + draw.uniform(0.0, PAUSE_S))  # the system's own rhythm must not decide
            began, name = time.monotonic(), f"new-{turn}"
            _create_with_record(stage, name)
            copied = partial(_has_record, stage, name)
            run.wait(copied, within=MIRRORED_WITHIN_S, every=0.005, otherwise=f"nothing of {name} was copied")
            seconds.append(time.monotonic() - began)
    ordered = sorted(seconds)
    return Readings(
        values={"median_s": percentile(ordered, 0.5), "longest_s": ordered[-1], "shortest_s": ordered[0]},
        notes=["each, s: " + ", ".join(f"{duration:.2f}" for duration in seconds)],
    )


def ten_topics(stage: Stage, course: Course, trial: Trial) -> Readings:
    """Create ten topics at once under the course. Read its partitions' arrivals before and from then on.

    Raises SystemEnded and Lost.
    """
    remote = f"A.{course.topic}"

    def wait_mirrored(names: Sequence[str]) -> None:
        try:
            wait_until(lambda: all(_has_record(stage, name) for name in names), within=MIRRORED_WITHIN_S)
        except NeverHappened as never:
            raise SystemEnded(f"the topics were not all copied within {MIRRORED_WITHIN_S:.0f} s") from never

    with writing(course) as writer, trial.copying(course.clusters.target, remote) as (run, *_):
        writer.per_s = course.per_s
        return _two_minutes(stage, course.clusters.target, remote, wait_mirrored, run.check)


def ten_topics_unmirrored(stage: Stage, course: Course) -> Readings:
    """Measure it without a mirror: ten topics are created on both clusters, for that is what any mirror has to do.

    Raises Lost.
    """

    def create_on_target(names: Sequence[str]) -> None:
        for name in names:
            stage.clusters.create(stage.clusters.target, f"A.{name}", PARTITIONS)

    with writing(course) as writer:
        writer.per_s = course.per_s
        return _two_minutes(stage, course.clusters.source, course.topic, create_on_target, lambda: None)


def _two_minutes(
    stage: Stage, bootstrap: str, topic: str, mirror: Callable[[Sequence[str]], None], check: Callable[[], None]
) -> Readings:
    """Return the longest gaps of a reader in the minute before topics are created, and from then on.

    `mirror` returns when each new topic is on the target.
    """

    def add() -> float:
        names = [f"added-{number}" for number in range(TOGETHER)]
        for name in names:
            _create_with_record(stage, name)
        mirror(names)
        return time.monotonic()

    with reading(bootstrap, topic, PARTITIONS) as consumer, ThreadPoolExecutor(1) as beside:
        arrived: list[list[float]] = [[] for _ in range(PARTITIONS)]

        def read(until: float) -> None:
            read_until(consumer, until, check, lambda message, ns: arrived[message.partition() or 0].append(ns / 1e9))

        read(time.monotonic() + WARM_UP_S)
        began = time.monotonic()
        read(began + MINUTE_S)
        added = time.monotonic()
        adding = beside.submit(add)
        read(added + MINUTE_S)
        ended = time.monotonic()
        duration_s = adding.result() - added
    return Readings(values={**gaps(arrived, began, added, ended), "all_mirrored_s": duration_s})


def _new_topic(stage: Stage) -> Measured:
    first = "new-before"
    before = partial(stage.fresh, first, records=PARTITIONS)
    measure = partial(new_topics, stage, first)
    return {"partitions": PARTITIONS}, stage.each(NEW_TOPIC, "new-.*", measure, before=before, systems=stage.ours)


def _ten_topics(stage: Stage) -> Measured:
    course = course_of(stage, "busy", BUSY_PER_S)
    warm(stage, course)
    before = partial(stage.fresh, course.topic)
    before()
    unmirrored = stage.attempt(TEN_TOPICS, "no mirror", partial(ten_topics_unmirrored, stage, course))
    measure = partial(ten_topics, stage, course)
    systems = stage.each(TEN_TOPICS, "busy, added-.*", measure, before=before, systems=stage.ours)
    return {"per_s": BUSY_PER_S, "partitions": PARTITIONS}, {**systems, "floor": unmirrored}


MEASURES = {NEW_TOPIC: _new_topic, TEN_TOPICS: _ten_topics}
