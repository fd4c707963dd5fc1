"""A flow on its way from MM2 to Lockstep or back: what was found of both, and the plan. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockstep_config.flow.connector_settings import NOTHING_STATED, StatedPhases
from lockstep_ops.takeover.offset_location import OffsetLocation
from lockstep_ops.takeover.passed_over import UnreadRecords
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.state_rows import Handover, PartitionProgress, Row, progress_by_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowState:
    """The rows of a flow, its desired states, and whether its data plane runs."""

    flow: Flow
    rows: Mapping[str, Row] = field(default_factory=dict)
    """The fold of the state topic."""
    states: StatedPhases = NOTHING_STATED
    replicas: int = 0
    """The replicas of the flow's data plane."""

    def progress(self) -> dict[TopicPartition, PartitionProgress]:
        """Return the data plane's own rows.

        A partition with a row continues there, and its place does not count.
        """
        return progress_by_partition(self.rows.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationState(FlowState):
    """The state of the flow and of MM2. Offsets are those of the last record copied."""

    cluster: str
    """The source's alias in MM2's progress."""
    location: OffsetLocation
    mm2_offsets: Mapping[TopicPartition, int] | None = field(default_factory=dict)
    """MM2's offsets of this source. None: there is no such topic."""
    members: int = 0
    """The members of MM2's group."""
    unread: Sequence[UnreadRecords] = ()
    """Records of MM2's topics that were passed over."""

    def handover(self, phase: str, partitions: int) -> Handover:
        """Return the row that says that the handover is done."""
        location = self.location
        return Handover(
            phase=phase,
            origin=location.origin,
            topic=location.topic,
            connector=location.connector,
            group=location.group,
            partitions=partitions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """The plan of a handover. Nothing is to be done while there are `refusals`."""

    writes: tuple[tuple[TopicPartition, int], ...]
    """Offsets to write in the place of the side that goes on."""
    row: Handover
    refusals: tuple[Reason, ...]
    notes: tuple[str, ...]
