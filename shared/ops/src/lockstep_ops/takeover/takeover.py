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

from lockstep_ops.formatting import name_partitions, shorten
from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.takeover.migration import MigrationPlan, MigrationState
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
    interval = f"{every.total_seconds():g} s in the file"
    if origin == "connect":
        interval = "of the Connect workers, 60 s by default"
    return (
        f"MirrorMaker 2 writes its progress every offset.flush.interval.ms ({interval}) and at a clean stop. If it was "
        "killed, records that it copied after it wrote last are copied again, as many as it copies in that time; with "
        "exactly.once.source.support none are"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverState(MigrationState):
    """The state of the flow and of MM2, with the topics of both clusters."""

    own: OffsetLocation
    """The place of the flow's own progress. Its `group` does not matter."""
    other_sources: frozenset[tuple[str, str]] = frozenset()
    """Every other (connector, cluster) in MM2's topic."""
    own_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offsets in the flow's own place."""
    selected: Mapping[str, str] = field(default_factory=dict)
    """Source topics that the file selects, with their remote names."""
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """All source partitions of the selected topics, with where their logs begin."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    target_topics: frozenset[str] = frozenset()
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
    """A source topic and its partitions. With `remote_exists` its remote topic exists."""

    topic: str
    remote: str
    remote_exists: bool
    partitions: tuple[PartitionPlan, ...]

    @property
    def to_copy(self) -> int:
        return sum(partition.to_copy for partition in self.partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverPlan(MigrationPlan):
    """The plan of taking over. `writes` go to the flow's own place."""

    state: TakeoverState
    topics: tuple[TopicPlan, ...]
    alters: tuple[tuple[TopicPartition, int], ...]
    """Offsets to alter by a command, of partitions of which the flow has rows. Rows count more than its place."""
    resume: bool
    """An operator stopped the source connector: it has to be resumed."""

    @property
    def shares_mm2_location(self) -> bool:
        """Return whether the flow keeps its progress in the same place as MM2."""
        return self.state.own.is_same(self.state.location)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        location, own = self.state.location, self.state.own
        return {
            "flow": str(self.state.flow),
            "from": {"origin": location.origin, "topic": location.topic, "connector": location.connector},
            "group": location.group,
            "kept_in": {"topic": own.topic, "connector": own.connector},
            "topics": [
                {
                    "topic": topic.topic,
                    "remote": topic.remote,
                    "remote_exists": topic.remote_exists,
                    "partitions": [asdict(partition) for partition in topic.partitions],
                }
                for topic in self.topics
            ],
            "writes": len(self.writes),
            "alters": len(self.alters),
            "groups_with_checkpoints": self.state.groups,
            "unreadable": as_counts(self.state.unread),
            "refusals": list(map(reason_as_json, self.refusals)),
            "notes": list(self.notes),
        }


def plan_takeover(state: TakeoverState) -> TakeoverPlan:
    """Return what there is to do, and what speaks against it.

    A plan that was carried out has nothing left to write.
    """
    mm2_offsets = state.mm2_offsets or {}
    partitions = sorted(state.begins)
    topics = tuple(_topics(state, mm2_offsets, partitions))
    wanted = DesiredStateView(state.rows, state.states).connector(Connector.SOURCE)
    rows = state.progress()
    alters = tuple((tp, offset) for tp, offset in _copied_since_hand_back(state, mm2_offsets).items() if tp in rows)
    to_write = {} if state.own.is_same(state.location) else mm2_offsets
    writes = tuple((tp, offset) for tp, offset in sorted(to_write.items()) if state.own_offsets.get(tp) != offset)
    return TakeoverPlan(
        state=state,
        topics=topics,
        writes=writes,
        alters=alters,
        row=state.handover("taken-over", len(mm2_offsets)),
        resume=wanted is not DesiredPhase.RUNNING,
        refusals=tuple(_refusals(state, mm2_offsets, alters, wanted)),
        notes=tuple(_notes(state, mm2_offsets, topics)),
    )


def _topics(
    state: TakeoverState, mm2_offsets: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
) -> Iterator[TopicPlan]:
    by_topic: dict[str, list[PartitionPlan]] = {name: [] for name in sorted(state.selected)}
    for topic, number in partitions:
        begin, end = state.begins[topic, number], state.ends.get((topic, number), 0)
        offset = mm2_offsets.get((topic, number))
        start = begin if state.reset == "earliest" else end
        next_offset = start if offset is None else offset + 1
        plan = PartitionPlan(number, offset, max(0, end - max(next_offset, begin)), max(0, begin - next_offset))
        by_topic.setdefault(topic, []).append(plan)
    for topic, plans in by_topic.items():
        remote = state.selected.get(topic, "")
        yield TopicPlan(topic, remote, remote in state.target_topics, tuple(plans))


def _own_positions(state: TakeoverState) -> dict[TopicPartition, int]:
    """Return the offsets behind which the flow would go on by itself. -1 is the beginning."""
    return {**state.own_offsets, **{tp: row.upstream for tp, row in state.progress().items()}}


def _copied_since_hand_back(
    state: TakeoverState, mm2_offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the offsets to which MM2 has copied on since the flow was handed back to it."""
    row = state.rows.get("handover/progress")
    if not isinstance(row, Handover) or row.phase != "handed-back":
        return {}
    own_offsets = _own_positions(state)
    return {tp: offset for tp, offset in sorted(mm2_offsets.items()) if tp in own_offsets and own_offsets[tp] < offset}


def _refusals(
    state: TakeoverState,
    mm2_offsets: Mapping[TopicPartition, int],
    alters: Collection[tuple[TopicPartition, int]],
    wanted: DesiredPhase,
) -> Iterator[Reason]:
    location, target = state.location, state.flow.target
    if state.members:
        yield still_runs(location, target, state.members)
    if state.mm2_offsets is None:
        yield RefusalCode.OFFSETS_TOPIC_MISSING.to_reason(topic=location.topic, cluster=target)
    elif not mm2_offsets:
        others = ", ".join(f"{connector} of cluster '{cluster}'" for connector, cluster in sorted(state.other_sources))
        code = RefusalCode.OFFSETS_OF_OTHERS if others else RefusalCode.OFFSETS_ABSENT
        details = {"topic": location.topic, "cluster": target, "connector": location.connector, "alias": state.cluster}
        yield code.to_reason(**details, others=others)
    own_offsets, since_hand_back = _own_positions(state), _copied_since_hand_back(state, mm2_offsets)
    if differing := [
        tp
        for tp, offset in sorted(mm2_offsets.items())
        if own_offsets.get(tp, offset) != offset and tp not in since_hand_back
    ]:
        own_offset, mm2_offset = own_offsets[differing[0]], mm2_offsets[differing[0]]
        yield RefusalCode.PROGRESS_DIFFERS.to_reason(
            partitions=name_partitions(differing), here=own_offset, theirs=mm2_offset
        )
    if alters and (wanted is not DesiredPhase.STOPPED or not state.replicas):
        yield RefusalCode.COPIED_AFTER_HAND_BACK.to_reason(count=len(alters))
    rows = state.progress()
    if unread := [tp for tp, _ in alters if not rows[tp].has_end]:
        yield RefusalCode.OWN_END_UNREAD.to_reason(partitions=name_partitions(unread), cluster=target)
    if not alters and state.replicas and wanted is not DesiredPhase.STOPPED:
        yield RefusalCode.DATA_PLANE_RUNS.to_reason(replicas=state.replicas)


def _notes(
    state: TakeoverState, mm2_offsets: Mapping[TopicPartition, int], topics: Iterable[TopicPlan]
) -> Iterator[str]:
    yield flush_note(state.flush_every, state.location.origin)
    yield from map(str, state.unread)
    plans = {(topic.topic, plan.partition): plan for topic in topics for plan in topic.partitions}
    if without_offset := [tp for tp, plan in plans.items() if plan.offset is None]:
        yield (
            f"without an offset, so they begin at the {state.reset} record (lockstep.start.timestamp, "
            f"auto.offset.reset): {name_partitions(without_offset)}"
        )
    if gone := [tp for tp, plan in plans.items() if plan.gone]:
        yield (
            f"the source has lost records that were not copied yet (retention): {name_partitions(gone)}. "
            "lockstep.on.gap decides, by default they halt"
        )
    if beyond := [tp for tp, plan in plans.items() if plan.offset is not None and plan.offset >= state.ends.get(tp, 0)]:
        yield (
            f"the source ends before the offset (truncated, or created anew): {name_partitions(beyond)}. They will halt"
        )
    copied = {topic for (topic, _), plan in plans.items() if plan.offset is not None}
    if missing := [topic.topic for topic in topics if not topic.remote_exists and topic.topic in copied]:
        yield (
            "the remote topic is gone although records were copied; it is created empty, and what was in it is not "
            f"copied again: {shorten(missing)}"
        )
    if unselected := sorted({topic for topic, _ in mm2_offsets} - state.selected.keys()):
        yield (
            "MirrorMaker 2 copied these too, and the file does not select them, or they are gone: "
            f"{shorten(unselected)}"
        )
