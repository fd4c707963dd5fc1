"""Takes a flow over from MM2 where it left off: the facts become a plan, or reasons against one. Pure.

MM2 keeps the offset of the last record copied of each source partition in Connect's topic of offsets on the target. It
is under the name of its source connector (`mm2-behaviour.md` §1.7). The data plane begins there if it has no rows of
its own yet. It reads the flow's own place: `offset.storage.topic` under `lockstep.progress.connector`. If that is MM2's
place too, nothing has to be written. Else the offsets are written once more, in our place.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from lockstep_ops.formatting import shorten
from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.takeover.migration import MigrationPlan, MigrationState, named
from lockstep_ops.takeover.offset_location import OffsetLocation, still_runs
from lockstep_ops.takeover.passed_over import as_counts
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Handover


def flush_note(every: timedelta, origin: str) -> str:
    """Return a note about what MM2 writes down late.

    `every` is the file's `offset.flush.interval.ms`, which Connect's workers do not read.
    """
    theirs = f"{every.total_seconds():g} s in the file"
    if origin == "connect":
        theirs = "of the Connect workers, 60 s by default"
    return (
        f"MirrorMaker 2 writes its progress every offset.flush.interval.ms ({theirs}) and at a clean stop. If it was "
        "killed, records that it copied after it wrote last are copied again, as many as it copies in that time; with "
        "exactly.once.source.support none are"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverState(MigrationState):
    """The state of the flow and of MM2, with the topics of both clusters."""

    own: OffsetLocation
    """The place of the flow's own progress. Its `group` does not matter."""
    strangers: frozenset[tuple[str, str]] = frozenset()
    """Every other (connector, cluster) in MM2's topic."""
    ours: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offsets in the flow's own place."""
    selected: Mapping[str, str] = field(default_factory=dict)
    """Source topics that the file selects, with their remote names."""
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """All source partitions of the selected topics, with where their logs begin."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    remote: frozenset[str] = frozenset()
    """Topics that the target has."""
    groups: int = 0
    """Consumer groups with checkpoints."""
    reset: str = "earliest"
    """`auto.offset.reset`."""
    flush_every: timedelta = timedelta(seconds=60)
    """`offset.flush.interval.ms` of the file."""


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The position at which a partition goes on.

    It goes on behind `offset`, or at the start of a first copy if that is None. `to_copy` is how many records there are
    from that position on, by their offsets. `gone` is how many offsets from it on the source has no more.
    """

    partition: int
    offset: int | None
    to_copy: int
    gone: int = 0


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A source topic and its partitions. With `there` its remote topic exists."""

    topic: str
    remote: str
    there: bool
    partitions: tuple[PartitionPlan, ...]

    @property
    def to_copy(self) -> int:
        return sum(one.to_copy for one in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverPlan(MigrationPlan):
    """The plan of taking over. `writes` go to the flow's own place."""

    found: TakeoverState
    topics: tuple[TopicPlan, ...]
    alters: tuple[tuple[TopicPartition, int], ...]
    """Offsets to alter by a command, of partitions of which the flow has rows. Rows count more than its place."""
    resume: bool
    """An operator stopped the source connector: it has to be resumed."""

    @property
    def own_is_theirs(self) -> bool:
        """Return whether the flow keeps its progress in the same place as MM2."""
        return self.found.own.is_same(self.found.place)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        place, own = self.found.place, self.found.own
        return {
            "flow": str(self.found.flow),
            "from": {"origin": place.origin, "topic": place.topic, "connector": place.connector},
            "group": place.group,
            "kept_in": {"topic": own.topic, "connector": own.connector},
            "topics": [
                {
                    "topic": one.topic,
                    "remote": one.remote,
                    "remote_exists": one.there,
                    "partitions": [asdict(p) for p in one.partitions],
                }
                for one in self.topics
            ],
            "writes": len(self.writes),
            "alters": len(self.alters),
            "groups_with_checkpoints": self.found.groups,
            "unreadable": as_counts(self.found.unread),
            "refusals": list(map(reason_as_json, self.refusals)),
            "notes": list(self.notes),
        }


def plan_takeover(found: TakeoverState) -> TakeoverPlan:
    """Return what there is to do, and what speaks against it.

    A plan that was carried out has nothing left to write.
    """
    theirs = found.theirs or {}
    partitions = sorted(found.begins)
    topics = tuple(_topics(found, theirs, partitions))
    wanted = DesiredStateView(found.rows, found.states).connector(Connector.SOURCE)
    rows = found.progress()
    alters = tuple((tp, offset) for tp, offset in _went_on(found, theirs).items() if tp in rows)
    to_write = {} if found.own.is_same(found.place) else theirs
    writes = tuple((tp, offset) for tp, offset in sorted(to_write.items()) if found.ours.get(tp) != offset)
    return TakeoverPlan(
        found=found,
        topics=topics,
        writes=writes,
        alters=alters,
        row=found.handover("taken-over", len(theirs)),
        resume=wanted is not DesiredPhase.RUNNING,
        refusals=tuple(_refusals(found, theirs, alters, wanted)),
        notes=tuple(_notes(found, theirs, topics)),
    )


def _topics(
    found: TakeoverState, theirs: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
) -> Iterator[TopicPlan]:
    by_topic: dict[str, list[PartitionPlan]] = {name: [] for name in sorted(found.selected)}
    for topic, number in partitions:
        begin, end = found.begins[topic, number], found.ends.get((topic, number), 0)
        offset = theirs.get((topic, number))
        anew = begin if found.reset == "earliest" else end
        first = anew if offset is None else offset + 1
        plan = PartitionPlan(number, offset, max(0, end - max(first, begin)), max(0, begin - first))
        by_topic.setdefault(topic, []).append(plan)
    for topic, plans in by_topic.items():
        remote = found.selected.get(topic, "")
        yield TopicPlan(topic, remote, remote in found.remote, tuple(plans))


def _mine(found: TakeoverState) -> dict[TopicPartition, int]:
    """Return the offsets behind which the flow would go on by itself. -1 is the beginning."""
    return {**found.ours, **{tp: row.upstream for tp, row in found.progress().items()}}


def _went_on(found: TakeoverState, theirs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the offsets to which MM2 has copied on since the flow was handed back to it."""
    row = found.rows.get("handover/progress")
    if not isinstance(row, Handover) or row.phase != "handed-back":
        return {}
    mine = _mine(found)
    return {tp: offset for tp, offset in sorted(theirs.items()) if tp in mine and mine[tp] < offset}


def _refusals(
    found: TakeoverState,
    theirs: Mapping[TopicPartition, int],
    alters: Collection[tuple[TopicPartition, int]],
    wanted: DesiredPhase,
) -> Iterator[Reason]:
    place, target = found.place, found.flow.target
    if found.members:
        yield still_runs(place, target, found.members)
    if found.theirs is None:
        yield RefusalCode.OFFSETS_TOPIC_MISSING.to_reason(topic=place.topic, cluster=target)
    elif not theirs:
        others = ", ".join(f"{connector} of cluster '{cluster}'" for connector, cluster in sorted(found.strangers))
        code = RefusalCode.OFFSETS_OF_OTHERS if others else RefusalCode.OFFSETS_ABSENT
        details = {"topic": place.topic, "cluster": target, "connector": place.connector, "alias": found.cluster}
        yield code.to_reason(**details, others=others)
    mine, went_on = _mine(found), _went_on(found, theirs)
    if differ := [tp for tp, offset in sorted(theirs.items()) if mine.get(tp, offset) != offset and tp not in went_on]:
        here, there = mine[differ[0]], theirs[differ[0]]
        yield RefusalCode.PROGRESS_DIFFERS.to_reason(partitions=named(differ), here=here, theirs=there)
    if alters and (wanted is not DesiredPhase.STOPPED or not found.replicas):
        yield RefusalCode.COPIED_AFTER_HAND_BACK.to_reason(count=len(alters))
    rows = found.progress()
    if unread := [tp for tp, _ in alters if not rows[tp].has_end]:
        yield RefusalCode.OWN_END_UNREAD.to_reason(partitions=named(unread), cluster=target)
    if not alters and found.replicas and wanted is not DesiredPhase.STOPPED:
        yield RefusalCode.DATA_PLANE_RUNS.to_reason(replicas=found.replicas)


def _notes(found: TakeoverState, theirs: Mapping[TopicPartition, int], topics: Iterable[TopicPlan]) -> Iterator[str]:
    yield flush_note(found.flush_every, found.place.origin)
    yield from map(str, found.unread)
    every = [(topic.topic, one) for topic in topics for one in topic.partitions]
    if anew := [(topic, one.partition) for topic, one in every if one.offset is None]:
        yield (
            f"without an offset, so they begin at the {found.reset} record (lockstep.start.timestamp, "
            f"auto.offset.reset): {named(anew)}"
        )
    if gone := [(topic, one.partition) for topic, one in every if one.gone]:
        yield (
            f"the source has lost records that were not copied yet (retention): {named(gone)}. lockstep.on.gap "
            "decides, by default they halt"
        )
    if beyond := [
        (t, one.partition)
        for t, one in every
        if one.offset is not None and one.offset >= found.ends.get((t, one.partition), 0)
    ]:
        yield f"the source ends before the offset (truncated, or created anew): {named(beyond)}. They will halt"
    missing = [
        topic.topic for topic in topics if not topic.there and any(one.offset is not None for one in topic.partitions)
    ]
    if missing:
        yield (
            "the remote topic is gone although records were copied; it is created empty, and what was in it is not "
            f"copied again: {shorten(missing)}"
        )
    if left := sorted({topic for topic, _ in theirs} - found.selected.keys()):
        yield f"MirrorMaker 2 copied these too, and the file does not select them, or they are gone: {shorten(left)}"
