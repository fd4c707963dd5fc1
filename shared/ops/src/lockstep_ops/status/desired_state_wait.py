"""The wait until a flow is in the state that an operator's command asked for."""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lockstep_config import FlowSettings
from lockstep_config.flow.connector_settings import NOTHING_STATED, StatedPhases
from lockstep_ops.status.flow_report import read_rows
from lockstep_ops.status.state_topic_rows import StateTopicRows
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_state.commands.command_vocabulary import RESTART, RESUME, Connector, Scope, ScopeKind
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, Row, SlotStatus

RECHECK_INTERVAL_S = 0.25


@dataclass(slots=True)
class DesiredStateWait:
    """A wait for the partitions and slots that a command is about.

    Services without partitions are not waited for: they have done what was asked as soon as they answer.

    Args:
        verb: `pause`, `resume`, `stop` or `restart`.
        scope: What the command is about.
        states: What the file says of connectors, which counts too.
    """

    verb: str
    scope: Scope
    states: StatedPhases = NOTHING_STATED
    runs_before: Mapping[int, str] = field(default_factory=dict)
    """The run of each slot before the command."""
    outstanding: Sequence[str] = ()
    """Partitions and slots that are not as they are to be, as of the last look."""
    total: int = 0
    """The most parts that were outstanding at once."""

    def update(self, rows: Mapping[str, Row]) -> None:
        """Take the rows of the state topic as they are now."""
        self.outstanding = () if self._has_no_partitions else (*self._slots(rows), *self._partitions(rows))
        self.total = max(self.total, len(self.outstanding))

    @property
    def _has_no_partitions(self) -> bool:
        return self.scope.kind is ScopeKind.CONNECTOR and self.scope.connector is not Connector.SOURCE

    def _slots(self, rows: Mapping[str, Row]) -> Iterator[str]:
        """Yield the slots that are to begin again, and have not."""
        if self.verb != RESTART or self.scope.kind in (ScopeKind.TOPIC, ScopeKind.PARTITION):
            return
        desired = DesiredStateView(rows, self.states)
        runs = slot_runs(rows)
        numbers = sorted(row.slot for row in rows.values() if isinstance(row, Assignment) and not row.ending)
        for number in numbers:
            concerned = self.scope.kind is not ScopeKind.SLOT or number == self.scope.number
            is_old = runs.get(number) == self.runs_before.get(number)
            if concerned and is_old and desired.slot(number) is DesiredPhase.RUNNING:
                yield f"slot {number}"

    def _partitions(self, rows: Mapping[str, Row]) -> Iterator[str]:
        desired = DesiredStateView(rows, self.states)
        for row in sorted(_copied(rows), key=lambda row: (row.topic, row.partition)):
            if self._concerns(row) and row.phase in self._phases_before(desired, row):
                yield f"{row.topic}-{row.partition}"

    def _concerns(self, row: PartitionProgress) -> bool:
        match self.scope.kind:
            case ScopeKind.SLOT:
                return row.slot == self.scope.number
            case ScopeKind.TOPIC:
                return row.topic == self.scope.name
            case ScopeKind.PARTITION:
                return (row.topic, row.partition) == (self.scope.name, self.scope.number)
        return True

    def _phases_before(self, desired: DesiredStateView, row: PartitionProgress) -> Collection[str]:
        """Return the phases that a partition has to leave. A halted one stays so until an operator decides."""
        if self.verb not in (RESUME, RESTART):
            return ("copying",)
        is_to_run = desired.partition(row.topic, row.partition, row.slot) is DesiredPhase.RUNNING
        return ("paused", "stopped") if is_to_run else ()


def slot_runs(rows: Mapping[str, Row]) -> dict[int, str]:
    """Return the run of each slot that has spoken."""
    return {row.slot: row.run for row in rows.values() if isinstance(row, SlotStatus)}


def _copied(rows: Mapping[str, Row]) -> Iterator[PartitionProgress]:
    """Yield the rows of partitions whose topic is mirrored."""
    for row in rows.values():
        if isinstance(row, PartitionProgress):
            topic = rows.get(MirroredTopic.key_of(row.topic))
            if isinstance(topic, MirroredTopic) and topic.phase == "mirrored":
                yield row


async def begin_wait(settings: FlowSettings, verb: str, scope: Scope) -> DesiredStateWait:
    """Return what a command will wait for, before it is asked. Raises as `wait_desired`."""
    rows = (await read_rows(settings))[0] if verb == RESTART else {}
    return DesiredStateWait(verb, scope, settings.states, slot_runs(rows))


async def wait_desired(settings: FlowSettings, wait: DesiredStateWait, within_s: float) -> None:
    """Follow the state topic until nothing of `wait` is outstanding, or `within_s` seconds are over.

    Raises:
        ClusterError: The target does not answer, or the flow has never run.
        NewerVersion: A newer release wrote a row.
    """
    rows = StateTopicRows(settings, "status", silent_s=within_s)
    ends_at = time.monotonic() + within_s
    async with rows.following():
        wait.update(rows.by_key)
        while wait.outstanding and time.monotonic() < ends_at:
            await asyncio.sleep(RECHECK_INTERVAL_S)
            wait.update(rows.by_key)
