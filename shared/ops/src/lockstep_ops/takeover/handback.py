"""Handing a flow back to MirrorMaker 2: the last progress as offsets in its place. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep_ops.formatting import count_text
from lockstep_ops.services import DATA_PLANE
from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.takeover.migration import FlowState, MigrationPlan, MigrationState, named
from lockstep_ops.takeover.offset_location import still_runs
from lockstep_ops.takeover.passed_over import as_counts
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_runtime.util.auto_restart import is_spent
from lockstep_state.commands.command_vocabulary import Connector, Scope
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Detail, Reason
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Restarts, Row, SlotStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack(MigrationPlan):
    """The plan of handing back. `writes` are the offsets that are not in MM2's place yet."""

    held: MigrationState
    offsets: tuple[tuple[TopicPartition, int], ...]
    """The offsets behind which MM2 goes on."""

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON values. `offsets` has the shape of Connect's REST API."""
        place, cluster = self.held.place, self.held.cluster
        return {
            "flow": str(self.held.flow),
            "to": {"origin": place.origin, "topic": place.topic, "connector": place.connector},
            "group": place.group,
            "offsets": [
                {"partition": {"cluster": cluster, "partition": p, "topic": t}, "offset": {"offset": offset}}
                for (t, p), offset in self.offsets
            ],
            "writes": len(self.writes),
            "refusals": list(map(reason_as_json, self.refusals)),
            "notes": list(self.notes),
            "unreadable": as_counts(self.held.unread),
        }


def plan_hand_back(held: MigrationState, *, stops_first: bool = False) -> HandBack:
    """Return what there is to write, and what speaks against it.

    A plan that was carried out has nothing left to write.

    Args:
        held: The state of the flow and of MM2.
        stops_first: Whether this is a look beforehand: the flow will be stopped and drain before anything is written.
    """
    rows = held.progress()
    gone = [tp for tp, row in sorted(rows.items()) if _is_gone(held.rows, row)]
    unread = _unread(held, rows, gone)
    left = {*gone, *unread.left}
    offsets = [(tp, row.upstream) for tp, row in sorted(rows.items()) if row.upstream >= 0 and tp not in left]
    return HandBack(
        held=held,
        offsets=tuple(offsets),
        writes=tuple((tp, offset) for tp, offset in offsets if (held.theirs or {}).get(tp) != offset),
        row=held.handover("handed-back", len(offsets)),
        refusals=tuple(_refusals(held, dict(offsets), NO_REASON if stops_first else _moves(held, unread))),
        notes=(*map(str, held.unread), *_notes(rows, gone, unread)),
    )


def _is_gone(rows: Mapping[str, Row], row: PartitionProgress) -> bool:
    """Return whether the row is about a topic that was deleted, or created again since."""
    topic = rows.get(MirroredTopic(source_topic=row.topic, target_topic="").key())
    if not isinstance(topic, MirroredTopic):
        return False
    ids = topic.source_topic_id, row.source_topic_id
    return topic.phase == "deleted" or (all(ids) and len(set(ids)) == 2)


@dataclass(frozen=True, slots=True)
class _Unread:
    """Partitions whose end in the target's log no row has: their slot was killed, or they are being copied."""

    awaited: tuple[TopicPartition, ...] = ()
    """Partitions whose end a data plane still reads and writes down, although it is to be stopped."""
    unknown: tuple[PartitionProgress, ...] = ()
    """Partitions whose end nobody reads until an operator decides."""
    left: tuple[TopicPartition, ...] = ()
    """Partitions of topics that the file does not select any more, so that they are not read."""


def _unread(
    held: FlowState, rows: Mapping[TopicPartition, PartitionProgress], gone: Collection[TopicPartition]
) -> _Unread:
    awaited, unknown, left = [], [], []
    for tp, row in sorted(rows.items()):
        if row.has_end or tp in gone:
            continue
        topic = held.rows.get(MirroredTopic(source_topic=row.topic, target_topic="").key())
        phase = topic.phase if isinstance(topic, MirroredTopic) else "mirrored"
        if phase in ("excluded", "left-out"):
            left.append(tp)
        elif row.phase == "halted" or row.needs_source or phase != "mirrored":
            unknown.append(row)
        else:
            awaited.append(tp)
    return _Unread(tuple(awaited), tuple(unknown), tuple(left))


def not_drained(held: FlowState) -> Reason:
    """Return why the rows may not be final yet.

    It is `NO_REASON` if they are, or if waiting would not help. They are final when every slot has ended, and has
    written down what the target's log says.
    """
    rows = held.progress()
    cause = _awaited(held, _unread(held, rows, [tp for tp, row in rows.items() if _is_gone(held.rows, row)]))
    return NO_REASON if cause and _failed(held) else cause


def _awaited(held: FlowState, unread: _Unread) -> Reason:
    stopped = DesiredStateView(held.rows, held.states).connector(Connector.SOURCE) is DesiredPhase.STOPPED
    if held.replicas and not stopped:
        return RefusalCode.FLOW_RUNS.to_reason()
    slots = sorted(row.slot for row in held.rows.values() if isinstance(row, SlotStatus) and row.phase != "released")
    then = "" if stopped else ", and lockstep stop"
    if slots:
        which = f"slot{'s' if len(slots) > 1 else ''} {', '.join(map(str, slots))}"
        code = RefusalCode.SLOTS_DRAINING if held.replicas else RefusalCode.SLOTS_ENDED
        return code.to_reason(slots=which, then=then)
    if not unread.awaited:
        return NO_REASON
    code = RefusalCode.END_AWAITED if held.replicas else RefusalCode.END_UNREAD
    return code.to_reason(partitions=named(unread.awaited), cluster=held.flow.target, then=then)


def _failed(held: FlowState) -> Reason:
    """Return what has failed too often in a stopped data plane, so that waiting does not help, else NO_REASON."""
    now, source = DesiredStateView(held.rows, held.states), Scope.for_connector(Connector.SOURCE)
    if not held.replicas or now.connector(Connector.SOURCE) is not DesiredPhase.STOPPED:
        return NO_REASON
    for row in held.rows.values():
        if not isinstance(row, Restarts) or row.owner != DATA_PLANE:
            continue
        scopes = [source] if row.subject == "service" else [source, Scope.parse(row.subject)]
        if is_spent(row, now.restarts(*scopes)):
            return RefusalCode.END_NOT_SOUGHT.because(row.cause, scope=str(scopes[-1]))
    return NO_REASON


def _moves(held: MigrationState, unread: _Unread) -> Reason:
    """Return why the rows are not final, or NO_REASON if they are."""
    if cause := _awaited(held, unread):
        return _failed(held) or cause
    if not unread.unknown:
        return NO_REASON
    first = unread.unknown[0]
    partitions, flow = named((row.topic, row.partition) for row in unread.unknown), held.flow
    if first.cause:
        return RefusalCode.END_IN_DOUBT.because(first.cause, partitions=partitions)
    if not first.needs_source:
        return RefusalCode.END_OF_UNMIRRORED.to_reason(partitions=partitions)
    beyond: dict[str, Detail] = {"count": first.beyond, "partition": f"{first.topic}-{first.partition}"}
    where = {"partitions": partitions, "cluster": flow.target, "source": flow.source}
    return RefusalCode.SOURCE_KNOWS_END.to_reason(**beyond, **where)


def _refusals(held: MigrationState, offsets: Mapping[TopicPartition, int], moves: Reason) -> Iterator[Reason]:
    place, target = held.place, held.flow.target
    if held.members:
        yield still_runs(place, target, held.members)
    if moves:
        yield moves
    elif not offsets:
        yield (RefusalCode.NOTHING_TO_HAND_BACK if held.progress() else RefusalCode.NOTHING_WRITTEN).to_reason()
    if held.theirs is None:
        yield RefusalCode.OFFSETS_TOPIC_TO_MAKE.to_reason(topic=place.topic, cluster=target)
    theirs = held.theirs or {}
    if further := [tp for tp, offset in offsets.items() if theirs.get(tp, offset) > offset]:
        there, here = theirs[further[0]], offsets[further[0]]
        yield RefusalCode.MIRROR_MAKER_AHEAD.to_reason(
            place=str(place), partitions=named(further), theirs=there, here=here
        )


def _notes(
    rows: Mapping[TopicPartition, PartitionProgress], gone: Sequence[TopicPartition], unread: _Unread
) -> Iterator[str]:
    if gone:
        yield f"left out, for their topics were deleted or created anew: {named(gone)}"
    if unread.left:
        yield (
            "left out, because the file leaves out their topics, and where their copies end was not read: "
            f"{named(unread.left)}"
        )
    if halted := [tp for tp, row in sorted(rows.items()) if (row.phase == "halted" or row.cause) and tp not in gone]:
        yield (
            f"{count_text(len(halted), 'partition')} halted here ({named(halted)}). MirrorMaker 2 does not look for "
            "what is missing: it goes on from wherever the source has records"
        )
