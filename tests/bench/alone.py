"""The parts with an absolute figure to reach, which are measured for Lockstep alone, but for offset syncs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.bench import control_plane
from tests.bench.arriving import new_topics, ten_topics
from tests.bench.catching_up import Backlog, NoRoom, catch_up, room_for
from tests.bench.figures import Failed, Scalar
from tests.bench.idle import Fleet, idle
from tests.bench.latency import Course
from tests.bench.load import load
from tests.bench.orders import Orders
from tests.bench.readings import Readings, ReadingsPart
from tests.bench.stage import PARTITIONS, Stage
from tests.bench.systems import System

__all__ = ["ALONE"]

IDLE, CATCH_UP, NEW_TOPIC, TEN_TOPICS = "idle_2000", "catch_up", "new_topic", "ten_topics"
IDLE_TOPICS, IDLE_PARTITIONS, IDLE_PERIOD_S = 20, 100, 60.0
BUSY_PER_S = 4_000
TOPICS, GROUPS, SYNCS = "topics_10000", "groups_1000", "syncs_1000000"
MANY_TOPICS, MANY_GROUPS, GROUP_PARTITIONS, MANY_SYNCS = 10_000, 1_000, 10, 1_000_000
SYNCED_TOPICS = 1_000
EMIT_S = 2.0


def _idle(stage: Stage) -> ReadingsPart:
    names = [f"idle-{number:02d}" for number in range(IDLE_TOPICS)]
    stage.say(f"{IDLE}: {IDLE_TOPICS} topics of {IDLE_PARTITIONS} partitions, a record in each")
    stage.clusters.begin_anew(keep=[])
    for name in names:
        stage.clusters.create(stage.clusters.source, name, IDLE_PARTITIONS)
        load(
            stage.clusters.source,
            name,
            records=IDLE_PARTITIONS,
            partitions=IDLE_PARTITIONS,
            codec="none",
            batch_bytes=stage.batch_bytes,
        )
    fleet = Fleet(clusters=stage.clusters, topics=names, partitions=IDLE_PARTITIONS, period_s=IDLE_PERIOD_S)
    before = partial(stage.clusters.begin_anew, names)
    systems = stage.each(IDLE, "idle-.*", "none", partial(idle, fleet, stage.say), before=before, systems=stage.ours)
    return ReadingsPart(name=IDLE, facts={"partitions": IDLE_TOPICS * IDLE_PARTITIONS}, systems=systems)


def _catch_up(stage: Stage) -> ReadingsPart:
    topic, size = "orders-catch-up", stage.backlog_bytes
    records = size // len(Orders.drawn().key(0) + Orders.drawn().value(0))
    facts: dict[str, Scalar] = {"bytes": size, "records": records, "partitions": PARTITIONS, "codec": "none"}
    stage.fresh(topic)  # what is left of earlier parts is in the way of this one
    try:
        room_for(size)
    except NoRoom as none:
        failed = Failed(reason=str(none))
        return ReadingsPart(name=CATCH_UP, facts=facts, systems={system.name: failed for system in stage.ours})
    stage.say(f"{CATCH_UP}: loading {size / 1e9:.1f} GB, {records:,} records")
    loaded = load(
        stage.clusters.source,
        topic,
        records=records,
        partitions=PARTITIONS,
        codec="none",
        batch_bytes=stage.batch_bytes,
    )
    backlog = Backlog(clusters=stage.clusters, topic=topic, partitions=PARTITIONS, loaded=loaded)
    before = partial(stage.clusters.begin_anew, [topic])
    systems = stage.each(CATCH_UP, topic, "none", partial(catch_up, backlog), before=before, systems=stage.ours)
    return ReadingsPart(name=CATCH_UP, facts=facts, systems=systems)


def _new_topic(stage: Stage) -> ReadingsPart:
    first = "new-before"
    measure = partial(new_topics, stage.clusters, PARTITIONS, first)
    before = partial(stage.fresh_with_records, first)
    systems = stage.each(NEW_TOPIC, "new-.*", "none", measure, before=before, systems=stage.ours)
    return ReadingsPart(name=NEW_TOPIC, facts={"partitions": PARTITIONS}, systems=systems)


def _ten_topics(stage: Stage) -> ReadingsPart:
    course = Course(
        source=stage.clusters.source,
        target=stage.clusters.target,
        topic="busy",
        partitions=PARTITIONS,
        per_s=BUSY_PER_S,
        warm_up_s=0.0,
        measured_s=0.0,
    )
    stage.warm(course)
    measure = partial(ten_topics, course, stage.clusters)
    before = partial(stage.fresh, course.topic)
    systems = stage.each(TEN_TOPICS, "busy, added-.*", "none", measure, before=before, systems=stage.ours)
    facts: dict[str, Scalar] = {"per_s": BUSY_PER_S, "partitions": PARTITIONS}
    return ReadingsPart(name=TEN_TOPICS, facts=facts, systems=systems)


def _topics(stage: Stage) -> ReadingsPart:
    names = [f"many-{number:05d}" for number in range(MANY_TOPICS)]
    stage.clusters.begin_anew(keep=[])
    stage.say(f"{TOPICS}: creating {MANY_TOPICS:,} topics of one partition on the source")
    control_plane.create_topics(stage.clusters.source, names)
    measure = partial(control_plane.topics, MANY_TOPICS)
    systems = stage.each(TOPICS, "many-.*", "none", measure, before=lambda: None, systems=stage.ours)
    stage.clusters.begin_anew(keep=[])
    return ReadingsPart(name=TOPICS, facts={"topics": MANY_TOPICS}, systems=systems)


def _groups(stage: Stage) -> ReadingsPart:
    topic, clusters = "orders-groups", stage.clusters
    stage.clusters.begin_anew(keep=[])
    for bootstrap, name in ((clusters.source, topic), (clusters.target, f"A.{topic}")):
        clusters.create(bootstrap, name, GROUP_PARTITIONS)
        load(bootstrap, name, records=5_000, partitions=GROUP_PARTITIONS, codec="none", batch_bytes=stage.batch_bytes)
    clusters.create(clusters.source, "mm2-offset-syncs.B.internal", 1, {"cleanup.policy": "compact"})
    control_plane.write_each_partition(clusters.source, "mm2-offset-syncs.B.internal", topic, GROUP_PARTITIONS)
    of = control_plane.Groups(clusters=clusters, topic=topic, partitions=GROUP_PARTITIONS, number=MANY_GROUPS)
    stage.say(f"{GROUPS}: {MANY_GROUPS:,} groups commit {GROUP_PARTITIONS} offsets each")
    control_plane.commit_all(of, 1)
    settings = {"emit.checkpoints.interval.seconds": str(int(EMIT_S)), "sync.group.offsets.enabled": "false"}
    measure = partial(control_plane.groups, of)
    systems = stage.each(GROUPS, topic, "none", measure, before=lambda: None, systems=stage.ours, settings=settings)
    stage.clusters.begin_anew(keep=[])
    facts: dict[str, Scalar] = {"groups": MANY_GROUPS, "partitions": GROUP_PARTITIONS}
    return ReadingsPart(name=GROUPS, facts=facts, systems=systems)


def _syncs(stage: Stage) -> ReadingsPart:
    topic, clusters = "mm2-offset-syncs.B.internal", stage.clusters
    names = [f"orders-{number:04d}" for number in range(SYNCED_TOPICS)]

    def before() -> None:
        stage.clusters.begin_anew(keep=[topic, names[0]])

    stage.clusters.begin_anew(keep=[])
    clusters.create(clusters.source, names[0], 1)
    clusters.create(clusters.source, topic, 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"})
    stage.say(f"{SYNCS}: writing {MANY_SYNCS:,} offset syncs of {SYNCED_TOPICS:,} partitions")
    control_plane.write_syncs(clusters.source, topic, names, MANY_SYNCS)
    of = control_plane.Groups(clusters=clusters, topic=names[0], partitions=1, number=1)

    def measure(system: System, file: Path, log: Path) -> Readings:
        control_plane.commit_all(of, 1)  # MM2 reads no offset syncs while it knows of no group
        return control_plane.syncs(system, file, log)

    systems = stage.each(SYNCS, "orders-.*", "none", measure, before=before)
    facts: dict[str, Scalar] = {"syncs": MANY_SYNCS, "partitions": SYNCED_TOPICS}
    return ReadingsPart(name=SYNCS, facts=facts, systems=systems)


ALONE = {
    IDLE: _idle,
    CATCH_UP: _catch_up,
    NEW_TOPIC: _new_topic,
    TEN_TOPICS: _ten_topics,
    TOPICS: _topics,
    GROUPS: _groups,
    SYNCS: _syncs,
}
"""Each part by its name."""
