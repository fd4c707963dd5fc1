"""The desired state of each part of a flow, from the rows that operators' commands write and from the file. Pure.

A part runs only while everything that it is in is to run: a partition while its topic, its slot and the source
connector are. If several of them differ, the most restrained one counts, also that of the file (`lockstep.state`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from lockstep_config.flow.connector_settings import NOTHING_STATED, StatedPhase, StatedPhases
from lockstep_state.commands.command_vocabulary import (
    PAUSE,
    RESTART,
    RESUME,
    STOP,
    STOP_BEFORE,
    Connector,
    Scope,
    ScopeKind,
)
from lockstep_state.offsets import TopicPartition
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


PHASE_AFTER = {
    PAUSE: DesiredPhase.PAUSED,
    RESUME: DesiredPhase.RUNNING,
    STOP: DesiredPhase.STOPPED,
    STOP_BEFORE: DesiredPhase.STOPPED,
}

MOST_ENDS = 10_000
"""Partitions of one `stop-before` at most: they have to fit into a record."""


@dataclass(frozen=True, slots=True)
class CopyEnds:
    """The offsets at which copies end, and the time that they were chosen by (`DesiredState.ends`)."""

    before_ms: int = 0
    ends: tuple[tuple[str, int, int], ...] = ()

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments of the command `stop-before`."""
        return {"before_ms": self.before_ms, "ends": [list(end) for end in self.ends]}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> "CopyEnds":
        """Return what the arguments of a command `stop-before` say.

        Raises:
            ValueError: They do not say it; with a sentence.
        """
        before_ms, ends = arguments.get("before_ms"), arguments.get("ends")
        if type(before_ms) is not int or before_ms <= 0:
            raise ValueError("before_ms is no time")
        if not isinstance(ends, list) or not 0 < len(ends) <= MOST_ENDS:
            raise ValueError(f"ends has to name from 1 to {MOST_ENDS:,} partitions")
        for end in ends:
            if not isinstance(end, list) or [type(value) for value in end] != [str, int, int] or min(end[1:]) < 0:
                raise ValueError(f"{end!r} is no end of a copy: write [TOPIC, PARTITION, OFFSET]")
        return cls(before_ms, tuple((topic, number, offset) for topic, number, offset in ends))


AT_ONCE = CopyEnds()
"""A stop that is not at an offset."""


class DesiredStateView:
    """The desired states in the rows of the state topic and in the file."""

    def __init__(self, rows: Mapping[str, Row], states: StatedPhases = NOTHING_STATED) -> None:
        """Take the rows by key, which are read at each call, and the phases that the file states."""
        self._rows = rows
        self._states = states

    def row(self, scope: Scope) -> DesiredState:
        """Return the row of a scope; one that says `running` if there is none."""
        return self._find_row(scope) or DesiredState(scope=str(scope))

    def _find_row(self, scope: Scope) -> DesiredState | None:
        row = self._rows.get(DesiredState.key_of(str(scope)))
        return row if isinstance(row, DesiredState) else None

    def phase_for(self, *scopes: Scope) -> DesiredPhase:
        """Return the desired phase of something that is in all of `scopes`."""
        return max(
            (max(_phase(self._find_row(scope)), self._by_file(scope)) for scope in scopes), default=DesiredPhase.RUNNING
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
            if row.phase != "running" and (row.scope not in connectors or row.has_ends):
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


def copy_ends(rows: Iterable[Row], partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the offset at which the copy of each partition ends, of those that have one (`lockstep stop --before`).

    A partition that its scope does not name ends at 0, which is where it is. If two scopes name it, the earlier end
    counts.
    """
    connector = str(Scope.for_connector(Connector.SOURCE))
    scopes = {row.scope: row for row in rows if isinstance(row, DesiredState) and row.has_ends}
    if not scopes:
        return {}
    named = {scope: {(topic, number): offset for topic, number, offset in row.ends} for scope, row in scopes.items()}
    ends: dict[TopicPartition, int] = {}
    for tp in partitions:
        offsets = [
            named[scope].get(tp, 0) for scope in (connector, str(Scope(ScopeKind.TOPIC, tp[0]))) if scope in named
        ]
        if offsets:
            ends[tp] = min(offsets)
    return ends


def apply_verb(row: DesiredState, verb: str, command: str, ends: CopyEnds = AT_ONCE) -> DesiredState:
    """Return the row after a command with the id `command`. To apply it twice changes nothing.

    Args:
        row: The row before.
        verb: `pause`, `resume`, `stop`, `stop-before` or `restart`.
        command: The id of the command.
        ends: The offsets at which copies end, if the verb is `stop-before`. Every other verb but `restart` lifts them.
    """
    if verb == RESTART:
        return replace(row, restart=command)
    return replace(row, phase=PHASE_AFTER[verb].word, command=command, before_ms=ends.before_ms, ends=ends.ends)


def unknown_subject(verb: str, scope: Scope, rows: Mapping[str, Row]) -> Reason:
    """Return why a command is about something that does not exist, else no reason. To resume is always allowed."""
    if verb == RESUME:
        return NO_REASON
    if scope.kind is ScopeKind.SLOT:
        return _unknown_slot(scope.number, rows)
    if scope.kind not in (ScopeKind.TOPIC, ScopeKind.PARTITION):
        return NO_REASON
    topic = rows.get(MirroredTopic.key_of(scope.name))
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


def _phase(row: DesiredState | None) -> DesiredPhase:
    if row is None or row.has_ends:
        return DesiredPhase.RUNNING
    try:
        return DesiredPhase[row.phase.upper()]
    except KeyError:
        # A word of a later release: it restrains in a way that we do not know, so we do nothing.
        return DesiredPhase.PAUSED
