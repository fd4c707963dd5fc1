"""Handing a flow back to MirrorMaker 2: the last progress as offsets in its place. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep_ops.formatting import count_text, name_partitions
from lockstep_ops.services import DATA_PLANE
from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.takeover.migration import FlowState, MigrationPlan, MigrationState
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

    state: MigrationState
    offsets: tuple[tuple[TopicPartition, int], ...]
    """The offsets behind which MM2 goes on."""

    def as_json(self) -> dict[str, Any]:
        """Return the plan as JSON values. `offsets` has the shape of Connect's REST API."""
        location, cluster = self.state.location, self.state.cluster
        return {
            "flow": str(self.state.flow),
            "to": {"origin": location.origin, "topic": location.topic, "connector": location.connector},
            "group": location.group,
            "offsets": [
                {"partition": {"cluster": cluster, "partition": p, "topic": t}, "offset": {"offset": offset}}
                for (t, p), offset in self.offsets
            ],
            "writes": len(self.writes),
            "refusals": list(map(reason_as_json, self.refusals)),
            "notes": list(self.notes),
            "unreadable": as_counts(self.state.unread),
        }


def plan_hand_back(state: MigrationState, *, stops_first: bool = False) -> HandBack:
    """Return what there is to write, and what speaks against it.

    A plan that was carried out has nothing left to write.

    Args:
        state: The state of the flow and of MM2.
        stops_first: Whether this is a look beforehand: the flow will be stopped and drain before anything is written.
    """
    rows = state.progress()
    gone = [tp for tp, row in sorted(rows.items()) if _is_gone(state.rows, row)]
    unread = _unread(state, rows, gone)
    omitted = {*gone, *unread.unselected}
    offsets = [(tp, row.upstream) for tp, row in sorted(rows.items()) if row.upstream >= 0 and tp not in omitted]
    return HandBack(
        state=state,
        offsets=tuple(offsets),
        writes=tuple((tp, offset) for tp, offset in offsets if (state.mm2_offsets or {}).get(tp) != offset),
        row=state.handover("handed-back", len(offsets)),
        refusals=tuple(_refusals(state, dict(offsets), NO_REASON if stops_first else _not_final(state, unread))),
        notes=(*map(str, state.unread), *_notes(rows, gone, unread)),
    )


def _is_gone(rows: Mapping[str, Row], row: PartitionProgress) -> bool:
    """Return whether the row is about a topic that was deleted, or created again since."""
    topic = rows.get(MirroredTopic.key_of(row.topic))
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
    unselected: tuple[TopicPartition, ...] = ()
    """Partitions of topics that the file does not select any more, so that they are not read."""


def _unread(
    state: FlowState, rows: Mapping[TopicPartition, PartitionProgress], gone: Collection[TopicPartition]
) -> _Unread:
    awaited, unknown, unselected = [], [], []
    for tp, row in sorted(rows.items()):
        if row.has_end or tp in gone:
            continue
        topic = state.rows.get(MirroredTopic.key_of(row.topic))
        phase = topic.phase if isinstance(topic, MirroredTopic) else "mirrored"
        if phase in ("excluded", "left-out"):
            unselected.append(tp)
        elif row.phase == "halted" or row.needs_source or phase != "mirrored":
            unknown.append(row)
        else:
            awaited.append(tp)
    return _Unread(tuple(awaited), tuple(unknown), tuple(unselected))


def not_drained(state: FlowState) -> Reason:
    """Return why the rows may not be final yet.

    It is `NO_REASON` if they are, or if waiting would not help. They are final when every slot has ended, and has
    written down what the target's log says.
    """
    rows = state.progress()
    cause = _wait_reason(state, _unread(state, rows, [tp for tp, row in rows.items() if _is_gone(state.rows, row)]))
    return NO_REASON if cause and _failure_reason(state) else cause


def _wait_reason(state: FlowState, unread: _Unread) -> Reason:
    stopped = DesiredStateView(state.rows, state.states).connector(Connector.SOURCE) is DesiredPhase.STOPPED
    if state.replicas and not stopped:
        return RefusalCode.FLOW_RUNS.to_reason()
    slots = sorted(row.slot for row in state.rows.values() if isinstance(row, SlotStatus) and row.phase != "released")
    next_step = "" if stopped else ", and lockstep stop"
    if slots:
        named_slots = f"slot{'s' if len(slots) > 1 else ''} {', '.join(map(str, slots))}"
        code = RefusalCode.SLOTS_DRAINING if state.replicas else RefusalCode.SLOTS_ENDED
        return code.to_reason(slots=named_slots, then=next_step)
    if not unread.awaited:
        return NO_REASON
    code = RefusalCode.END_AWAITED if state.replicas else RefusalCode.END_UNREAD
    return code.to_reason(partitions=name_partitions(unread.awaited), cluster=state.flow.target, then=next_step)


def _failure_reason(state: FlowState) -> Reason:
    """Return what has failed too often in a stopped data plane, so that waiting does not help, else NO_REASON."""
    desired, source = DesiredStateView(state.rows, state.states), Scope.for_connector(Connector.SOURCE)
    if not state.replicas or desired.connector(Connector.SOURCE) is not DesiredPhase.STOPPED:
        return NO_REASON
    for row in state.rows.values():
        if not isinstance(row, Restarts) or row.owner != DATA_PLANE:
            continue
        scopes = [source] if row.subject == "service" else [source, Scope.parse(row.subject)]
        if is_spent(row, desired.restarts(*scopes)):
            return RefusalCode.END_NOT_SOUGHT.because(row.cause, scope=str(scopes[-1]))
    return NO_REASON


def _not_final(state: MigrationState, unread: _Unread) -> Reason:
    """Return why the rows are not final, or NO_REASON if they are."""
    if cause := _wait_reason(state, unread):
        return _failure_reason(state) or cause
    if not unread.unknown:
        return NO_REASON
    partition = unread.unknown[0]
    partitions, flow = name_partitions((row.topic, row.partition) for row in unread.unknown), state.flow
    if partition.cause:
        return RefusalCode.END_IN_DOUBT.because(partition.cause, partitions=partitions)
    if not partition.needs_source:
        return RefusalCode.END_OF_UNMIRRORED.to_reason(partitions=partitions)
    beyond: dict[str, Detail] = {"count": partition.beyond, "partition": f"{partition.topic}-{partition.partition}"}
    details = {"partitions": partitions, "cluster": flow.target, "source": flow.source}
    return RefusalCode.SOURCE_KNOWS_END.to_reason(**beyond, **details)


def _refusals(state: MigrationState, offsets: Mapping[TopicPartition, int], not_final: Reason) -> Iterator[Reason]:
    location, target = state.location, state.flow.target
    if state.members:
        yield still_runs(location, target, state.members)
    if not_final:
        yield not_final
    elif not offsets:
        yield (RefusalCode.NOTHING_TO_HAND_BACK if state.progress() else RefusalCode.NOTHING_WRITTEN).to_reason()
    if state.mm2_offsets is None:
        yield RefusalCode.OFFSETS_TOPIC_TO_MAKE.to_reason(topic=location.topic, cluster=target)
    mm2_offsets = state.mm2_offsets or {}
    if further := [tp for tp, offset in offsets.items() if mm2_offsets.get(tp, offset) > offset]:
        mm2_offset, own_offset = mm2_offsets[further[0]], offsets[further[0]]
        yield RefusalCode.MIRROR_MAKER_AHEAD.to_reason(
            place=str(location), partitions=name_partitions(further), theirs=mm2_offset, here=own_offset
        )


def _notes(
    rows: Mapping[TopicPartition, PartitionProgress], gone: Sequence[TopicPartition], unread: _Unread
) -> Iterator[str]:
    if gone:
        yield f"left out, for their topics were deleted or created anew: {name_partitions(gone)}"
    if unread.unselected:
        yield (
            "left out, because the file leaves out their topics, and where their copies end was not read: "
            f"{name_partitions(unread.unselected)}"
        )
    if halted := [tp for tp, row in sorted(rows.items()) if (row.phase == "halted" or row.cause) and tp not in gone]:
        yield (
            f"{count_text(len(halted), 'partition')} halted here ({name_partitions(halted)}). MirrorMaker 2 does not "
            "look for what is missing: it goes on from wherever the source has records"
        )
