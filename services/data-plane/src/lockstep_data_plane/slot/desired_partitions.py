"""The desired state of a slot's partitions, from the flow's `DesiredState` rows and the configuration file (no I/O)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lockstep_config.flow.connector_settings import NOTHING_STATED, StatedPhases
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView, copy_ends
from lockstep_runtime.util.auto_restart import is_spent
from lockstep_state.commands.command_vocabulary import Connector, Scope, ScopeKind
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import DesiredState, PartitionProgress, Restarts, Row


@dataclass(frozen=True, slots=True)
class DesiredPartition:
    """The desired state of one partition. Its copy starts again when `asked` changes."""

    phase: DesiredPhase = DesiredPhase.RUNNING
    asked: tuple[str, ...] = ()
    """The restarts that operators asked for."""
    end: int | None = None
    """The next offset at which the copy ends (`lockstep stop --before`); None: it goes on."""

    @property
    def resting_reason(self) -> str:
        """The word of the phase that keeps the partition at rest, as `paused`; "" if it is to be copied."""
        return "" if self.phase is DesiredPhase.RUNNING else self.phase.word

    def ended(self) -> "DesiredPartition":
        """Return the desired state once the copy has reached its end."""
        return replace(self, phase=max(self.phase, DesiredPhase.STOPPED))


AS_USUAL = DesiredPartition()
RESTING = frozenset({DesiredPhase.PAUSED.word, DesiredPhase.STOPPED.word})


def desired_partitions(
    rows: Mapping[str, Row], slot: int, partitions: Iterable[TopicPartition], states: StatedPhases = NOTHING_STATED
) -> Mapping[TopicPartition, DesiredPartition]:
    """Return the desired state of each of these partitions of a slot.

    Args:
        rows: The flow's rows by key. Only the `DesiredState` rows among them matter.
        slot: The slot's number.
        partitions: The partitions, by their names in the source.
        states: The phases that the configuration file states.
    """
    desired_rows = {key: row for key, row in rows.items() if isinstance(row, DesiredState)}
    if not desired_rows and states.source is None:
        return dict.fromkeys(partitions, AS_USUAL)
    now = DesiredStateView(desired_rows, states)
    named = {row.scope for row in desired_rows.values()}  # of thousands of partitions hardly one
    of_slot = now.phase_for(Scope.for_connector(Connector.SOURCE), slot_scope(slot))
    of_topics: dict[str, DesiredPartition] = {}
    desired: dict[TopicPartition, DesiredPartition] = {}
    for topic, number in partitions:
        if topic not in of_topics:
            scope = Scope(ScopeKind.TOPIC, topic)
            of_topics[topic] = DesiredPartition(max(of_slot, now.phase_for(scope)), _restart_ids(now, scope))
        desired[topic, number] = around = of_topics[topic]
        scope = Scope(ScopeKind.PARTITION, topic, number)
        if str(scope) in named:
            desired[topic, number] = DesiredPartition(
                max(around.phase, now.phase_for(scope)), around.asked + _restart_ids(now, scope)
            )
    for tp, end in copy_ends(desired_rows.values(), desired).items():
        desired[tp] = replace(desired[tp], end=end)
    return desired


def resting_partitions(
    rows: Mapping[str, Row], partitions: Iterable[PartitionProgress], states: StatedPhases = NOTHING_STATED
) -> list[PartitionProgress]:
    """Return the partitions that an operator or the file wants paused or stopped, or that still are.

    A slot that was killed leaves no row with phase paused or stopped, so the desired state counts too. Halted
    partitions are left out: they wait for an operator in any case.
    """
    by_slot: dict[int, list[PartitionProgress]] = defaultdict(list)
    for row in partitions:
        by_slot[row.slot].append(row)
    resting: list[PartitionProgress] = []
    for slot, slot_rows in by_slot.items():
        ordered = desired_partitions(rows, slot, [(row.topic, row.partition) for row in slot_rows], states)
        resting += [
            row
            for row in slot_rows
            if row.phase in RESTING or (row.phase != "halted" and ordered[row.topic, row.partition].resting_reason)
        ]
    return resting


def _restart_ids(now: DesiredStateView, scope: Scope) -> tuple[str, ...]:
    return tuple(filter(None, now.restarts(scope)))


def closed_slots(rows: Mapping[str, Row], slots: int) -> frozenset[int]:
    """Return the slots below `slots` that are paused, stopped, or failed too often.

    They get no new partitions, because these would only wait.
    """
    now = DesiredStateView(rows)
    return frozenset(
        slot
        for slot in range(slots)
        if now.phase_for(slot_scope(slot)) is not DesiredPhase.RUNNING or has_failed(rows, slot)
    )


def starts_asked(rows: Mapping[str, Row], slot: int) -> tuple[str, ...]:
    """Return the restarts that operators asked for of a slot and of its scope."""
    return DesiredStateView(rows).restarts(Scope.for_connector(Connector.SOURCE), slot_scope(slot))


def slot_restarts(rows: Mapping[str, Row], slot: int) -> Restarts:
    """Return the row of the slot's consecutive failures, or an empty one if the slot has none."""
    none = Restarts(owner="data-plane", subject=str(slot_scope(slot)))
    present = rows.get(none.key())
    return present if isinstance(present, Restarts) else none


def has_failed(rows: Mapping[str, Row], slot: int) -> bool:
    """Return whether a slot has failed too often and waits for an operator to restart it."""
    return is_spent(slot_restarts(rows, slot), starts_asked(rows, slot))


def slot_scope(slot: int) -> Scope:
    """Return the scope by which commands name a slot."""
    return Scope(ScopeKind.SLOT, number=slot)
