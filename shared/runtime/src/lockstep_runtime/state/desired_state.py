"""The desired state of each part of a flow, from the rows that operators' commands write and from the file. Pure.

A part runs only while everything that it is in is to run: a partition while its topic, its slot and the source
connector are. If several of them differ, the most restrained one counts, also that of the file (`lockstep.state`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import IntEnum

from lockstep_config.flow.connector_settings import NOTHING_STATED, StatedPhase, StatedPhases
from lockstep_state.commands.command_vocabulary import PAUSE, RESTART, RESUME, STOP, Connector, Scope, ScopeKind
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.data_plane_rows import Assignment
from lockstep_state.rows.state_rows import DesiredState, MirroredTopic, Row


class DesiredPhase(IntEnum):
    """Desired phases, from least to most restrained."""

    RUNNING = 0
    PAUSED = 1
    STOPPED = 2

    @property
    def word(self) -> str:
        """Return the phase as rows have it."""
        return self.name.lower()


PHASE_AFTER = {PAUSE: DesiredPhase.PAUSED, RESUME: DesiredPhase.RUNNING, STOP: DesiredPhase.STOPPED}


class DesiredStateView:
    """The desired states in the rows of the state topic and in the file."""

    def __init__(self, rows: Mapping[str, Row], states: StatedPhases = NOTHING_STATED) -> None:
        """Take the rows by key, which are read at each call, and the phases that the file states."""
        self._rows = rows
        self._states = states

    def row(self, scope: Scope) -> DesiredState:
        """Return the row of a scope; one that says `running` if there is none."""
        row = self._rows.get(DesiredState(scope=str(scope)).key())
        return row if isinstance(row, DesiredState) else DesiredState(scope=str(scope))

    def phase_for(self, *scopes: Scope) -> DesiredPhase:
        """Return the desired phase of something that is in all of `scopes`."""
        return max(
            (max(_phase(self.row(scope)), self._by_file(scope)) for scope in scopes), default=DesiredPhase.RUNNING
        )

    def stated_phase(self, connector: Connector) -> StatedPhase | None:
        """Return the phase that the file states for a connector, also against commands; None if it states none."""
        return {Connector.CHECKPOINT: self._states.checkpoint, Connector.HEARTBEAT: self._states.heartbeat}.get(
            connector, self._states.source
        )

    def describe(self, connector: Connector) -> str:
        """Return a connector's desired phase in words, with the file's key if the file states it."""
        phase, stated = self.connector(connector), self.stated_phase(connector)
        by_file = stated is not None and DesiredPhase[stated.phase.upper()] is phase
        return f"{phase.word} by {stated.key}" if stated is not None and by_file else phase.word

    def connector(self, connector: Connector) -> DesiredPhase:
        return self.phase_for(Scope.for_connector(connector))

    def slot(self, slot: int) -> DesiredPhase:
        return self.phase_for(Scope.for_connector(Connector.SOURCE), Scope(ScopeKind.SLOT, number=slot))

    def partition(self, topic: str, partition: int, slot: int | None = None) -> DesiredPhase:
        """Return the desired phase of a source partition, while it is in `slot` if that is given."""
        return self.phase_for(*_scopes_containing(topic, partition, slot))

    def held_back(self) -> Iterator[tuple[str, str]]:
        """Yield each scope that is paused or stopped, with the word: first connectors, then scopes of rows."""
        connectors = {str(Scope.for_connector(connector)): self.connector(connector) for connector in Connector}
        for scope, phase in connectors.items():
            if phase is not DesiredPhase.RUNNING:
                yield scope, phase.word
        rows = [row for row in self._rows.values() if isinstance(row, DesiredState)]
        for row in sorted(rows, key=lambda row: row.scope):
            if row.phase != "running" and row.scope not in connectors:
                yield row.scope, row.phase

    def _by_file(self, scope: Scope) -> DesiredPhase:
        stated = self.stated_phase(Connector(scope.name)) if scope.kind is ScopeKind.CONNECTOR else None
        return DesiredPhase.RUNNING if stated is None else DesiredPhase[stated.phase.upper()]

    def restarts(self, *scopes: Scope) -> tuple[str, ...]:
        """Return the ids of the last `restart` commands for `scopes`. A new id asks for a new start."""
        return tuple(self.row(scope).restart for scope in scopes)


def _scopes_containing(topic: str, partition: int, slot: int | None = None) -> Iterator[Scope]:
    """Yield every scope of a source partition."""
    yield Scope.for_connector(Connector.SOURCE)
    if slot is not None:
        yield Scope(ScopeKind.SLOT, number=slot)
    yield Scope(ScopeKind.TOPIC, topic)
    yield Scope(ScopeKind.PARTITION, topic, partition)


def apply_verb(row: DesiredState, verb: str, command: str) -> DesiredState:
    """Return the row after a command with the id `command`. To apply it twice changes nothing."""
    if verb == RESTART:
        return replace(row, restart=command)
    return replace(row, phase=PHASE_AFTER[verb].word)


def unknown_subject(verb: str, scope: Scope, rows: Mapping[str, Row]) -> Reason:
    """Return why a command is about something that does not exist, else no reason. To resume is always allowed."""
    if verb == RESUME:
        return NO_REASON
    if scope.kind is ScopeKind.SLOT:
        return _unknown_slot(scope.number, rows)
    if scope.kind not in (ScopeKind.TOPIC, ScopeKind.PARTITION):
        return NO_REASON
    topic = rows.get(MirroredTopic(source_topic=scope.name, target_topic="").key())
    if not isinstance(topic, MirroredTopic):
        return ReasonCode.TOPIC_NOT_MIRRORED.to_reason(topic=scope.name)
    if scope.kind is ScopeKind.PARTITION and scope.number >= topic.partitions:
        return ReasonCode.PARTITION_BEYOND.to_reason(topic=scope.name, partitions=topic.partitions)
    return NO_REASON


def _unknown_slot(slot: int, rows: Mapping[str, Row]) -> Reason:
    slots = sorted(
        row.slot for row in rows.values() if isinstance(row, Assignment) and (row.partitions or not row.ending)
    )
    if slot in slots:
        return NO_REASON
    if not slots:
        return ReasonCode.NO_SLOT_YET.to_reason(slot=slot)
    return ReasonCode.SLOT_ABSENT.to_reason(slot=slot, slots=", ".join(map(str, slots)))


def _phase(row: DesiredState) -> DesiredPhase:
    try:
        return DesiredPhase[row.phase.upper()]
    except KeyError:
        # A word of a later release: it restrains in a way that we do not know, so we do nothing.
        return DesiredPhase.PAUSED
