"""Handing a flow back to MirrorMaker 2: the last progress as offsets in its place. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep_cli.formatting import count_text
from lockstep_cli.migration import FlowState, MigrationPlan, MigrationState, named
from lockstep_cli.offset_location import still_runs
from lockstep_cli.passed_over import as_counts
from lockstep_cli.services import DATA_PLANE
from lockstep_protocol.commands.command_vocabulary import Connector, Scope
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import MirroredTopic, PartitionProgress, Restarts, Row, SlotStatus
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredState
from lockstep_runtime.util.auto_restart import is_spent


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack(MigrationPlan):
    """What handing back comes to. `writes`: of the offsets those that are not in MM2's place yet."""

    held: MigrationState
    offsets: tuple[tuple[TopicPartition, int], ...]
    """Where MM2 goes on: behind these."""

    def as_json(self) -> dict[str, Any]:
        """For programs; `offsets` in the shape of Connect's REST API."""
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
            "refusals": list(self.refusals),
            "notes": list(self.notes),
            "unreadable": as_counts(self.held.unread),
        }


def plan_hand_back(held: MigrationState, *, stops_first: bool = False) -> HandBack:
    """What there is to write, and what speaks against it. The same, once carried out, has nothing left to write.
    `stops_first`: for a look beforehand, the flow will be stopped and drain before anything is written."""
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
        refusals=tuple(_refusals(held, dict(offsets), "" if stops_first else _moves(held, unread))),
        notes=(*map(str, held.unread), *_notes(rows, gone, unread)),
    )


def _is_gone(rows: Mapping[str, Row], row: PartitionProgress) -> bool:
    """Whether the row is about a topic that was deleted, or created anew since."""
    topic = rows.get(MirroredTopic(source_topic=row.topic, target_topic="").key())
    if not isinstance(topic, MirroredTopic):
        return False
    ids = topic.source_topic_id, row.source_topic_id
    return topic.phase == "deleted" or (all(ids) and len(set(ids)) == 2)


@dataclass(frozen=True, slots=True)
class _Unread:
    """Partitions whose rows are not what the target's log says: they were killed, or are copied."""

    awaited: tuple[TopicPartition, ...] = ()
    """A data plane that is stopped reads it, and writes it down."""
    unknown: tuple[PartitionProgress, ...] = ()
    """None can, until an operator decides."""
    left: tuple[TopicPartition, ...] = ()
    """The file does not select their topics any more, so they are not read."""


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


def not_drained(held: FlowState) -> str:
    """Why the rows may not be final yet, as a sentence. "" when they are, or waiting would not help: every slot has
    ended, and has written down what the target's log says."""
    rows = held.progress()
    why = _awaited(held, _unread(held, rows, [tp for tp, row in rows.items() if _is_gone(held.rows, row)]))
    return "" if why and _failed(held) else why


def _awaited(held: FlowState, unread: _Unread) -> str:
    stopped = DesiredState(held.rows, held.states).connector(Connector.SOURCE) is DesiredPhase.STOPPED
    if held.replicas and not stopped:
        return "the flow runs: lockstep stop, or say --stop"
    slots = [row.slot for row in held.rows.values() if isinstance(row, SlotStatus) and row.phase != "released"]
    start = "Start the data plane, which reads that from the target" + ("" if stopped else ", and lockstep stop")
    if slots:
        which = f"slot {min(slots)}" if len(slots) == 1 else f"slots {', '.join(map(str, sorted(slots)))}"
        if held.replicas:
            return f"{which} did not drain yet: ask again in a moment"
        return f"{which} ended without writing down how far it was. {start}"
    if not unread.awaited:
        return ""
    where = f"where the copy ends of {named(unread.awaited)} was not read from {held.flow.target} yet"
    return f"{where}: ask again in a moment" if held.replicas else f"{where}. {start}"


def _failed(held: FlowState) -> str:
    """What of a stopped data plane has failed too often, so that waiting does not help, as a sentence; else ""."""
    now, source = DesiredState(held.rows, held.states), Scope.for_connector(Connector.SOURCE)
    if not held.replicas or now.connector(Connector.SOURCE) is not DesiredPhase.STOPPED:
        return ""
    for row in held.rows.values():
        if not isinstance(row, Restarts) or row.owner != DATA_PLANE:
            continue
        scopes = [source] if row.subject == "service" else [source, Scope.parse(row.subject)]
        if is_spent(row, now.restarts(*scopes)):
            return (
                f"the data plane does not say where the copies end, for {scopes[-1]} has failed as often as "
                f"lockstep.auto.restart.max allows ({row.reason}). Mend that, and lockstep restart {scopes[-1]}"
            )
    return ""


def _moves(held: MigrationState, unread: _Unread) -> str:
    """Why the rows are not the last word, "" when they are."""
    if why := _awaited(held, unread):
        return _failed(held) or why
    if not unread.unknown:
        return ""
    first = unread.unknown[0]
    tps = [(row.topic, row.partition) for row in unread.unknown]
    if first.needs_source and not first.cause:
        return (
            f"where the copy ends of {named(tps)} is not known: {held.flow.target} holds {first.beyond:,} records of "
            f"{first.topic}-{first.partition} that are not written down, and {held.flow.source} did not answer, which "
            f"alone knows their offsets. Bring {held.flow.source} back, or say where it ends: lockstep offsets alter"
        )
    return (
        f"where the copy ends of {named(tps)} is not known ({first.reason or 'its topic is not mirrored now'}). Mend "
        "that and lockstep restart, or say where it ends: lockstep offsets alter"
    )


def _refusals(held: MigrationState, offsets: Mapping[TopicPartition, int], moves: str) -> Iterator[str]:
    if held.members:
        yield still_runs(held.place, held.flow.target, held.members)
    if moves:
        yield moves
    elif not offsets:
        if not held.progress():
            yield "nothing is written down of this flow: it has copied nothing, or its state topic was lost"
        else:
            yield "the flow has copied nothing, so there is nothing to hand back"
    if held.theirs is None:
        yield (
            f"there is no topic {held.place.topic} on {held.flow.target}: name MirrorMaker 2's topic of offsets with "
            "--offsets-topic, and let its workers make it"
        )
    theirs = held.theirs or {}
    if further := [tp for tp, offset in offsets.items() if theirs.get(tp, offset) > offset]:
        first = further[0]
        yield (
            f"{held.place} is further than this flow in {named(further)} (for one, {theirs[first]:,} there and "
            f"{offsets[first]:,} here): it has copied since, and goes on from there"
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
