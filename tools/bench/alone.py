"""The parts with an absolute figure to reach, which are measured for Lockstep alone."""

from functools import partial

from tools.bench.arriving import new_topics, ten_topics, ten_topics_unmirrored
from tools.bench.catching_up import Backlog, NoRoom, catch_up, room_for
from tools.bench.control import Many, many_groups, many_syncs, many_topics
from tools.bench.idle import Fleet, idle
from tools.bench.latency import Course
from tools.bench.load import load
from tools.bench.orders import Orders
from tools.bench.outcome import Failed, Scalar
from tools.bench.readings import Readings, ReadingsPart
from tools.bench.stage import PARTITIONS, Stage

IDLE, CATCH_UP, NEW_TOPIC, TEN_TOPICS = "idle_2000", "catch_up", "new_topic", "ten_topics"
IDLE_TOPICS, IDLE_PARTITIONS, IDLE_PERIOD_S = 20, 100, 60.0
CONTROL_PLANE = "control_plane"
BUSY_PER_S = 1_000


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
    before = partial(stage.fresh, course.topic)
    before()
    unmirrored = stage.attempt(TEN_TOPICS, "no mirror", "", partial(ten_topics_unmirrored, course, stage.clusters))
    measure = partial(ten_topics, course, stage.clusters)
    systems = stage.each(TEN_TOPICS, "busy, added-.*", "none", measure, before=before, systems=stage.ours)
    facts: dict[str, Scalar] = {"per_s": BUSY_PER_S, "partitions": PARTITIONS}
    return ReadingsPart(name=TEN_TOPICS, facts=facts, systems={**systems, "floor": unmirrored})


def _control_plane(stage: Stage) -> ReadingsPart:
    """Each of the three on clean clusters; what is read of them is one table. Topics last: so many take minutes to
    delete."""
    many = Many(clusters=stage.clusters)
    found: dict[str, Readings | Failed] = {}
    for what, measure in (("groups", many_groups), ("syncs", many_syncs), ("topics", many_topics)):
        stage.say(f"{CONTROL_PLANE}: {what}")
        before = partial(stage.clusters.begin_anew, [])
        systems = stage.each(CONTROL_PLANE, "none", "none", partial(measure, many), before=before, systems=stage.ours)
        for name, read in systems.items():
            known = found.get(name, read)
            if isinstance(known, Readings) and isinstance(read, Readings):
                read = Readings(values={**known.values, **read.values}, log=read.log)
            found[name] = known if isinstance(known, Failed) else read
    facts: dict[str, Scalar] = {"topics": many.topics, "groups": many.groups, "syncs": many.syncs}
    return ReadingsPart(name=CONTROL_PLANE, facts=facts, systems=found)


ALONE = {
    IDLE: _idle,
    CATCH_UP: _catch_up,
    NEW_TOPIC: _new_topic,
    TEN_TOPICS: _ten_topics,
    CONTROL_PLANE: _control_plane,
}
"""Each part by its name."""
