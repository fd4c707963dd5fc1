"""What the parts of a slot ask of its loop (`slot/slot_loop.py`)."""

from collections.abc import Iterable
from typing import Protocol

from lockstep_data_plane.core.events import PartitionEvent
from lockstep_data_plane.core.partition_state import PartitionState


class SlotIO(Protocol):
    """Take events of partitions, and carry out their effects."""

    others_end_by: float | None
    """Until when, by the loop's clock, a run that was cut off may append; None: no run was cut off."""

    def step(self, partition: PartitionState, event: PartitionEvent) -> None:
        """Let the event happen to the partition, and carry out its effects. Batches wait until `pump`."""

    def pump(self) -> None:
        """Send what can be sent, now."""

    def resuming(self) -> Iterable[PartitionState]:
        """Return the partitions that are about to resume: their metadata is asked for together."""
