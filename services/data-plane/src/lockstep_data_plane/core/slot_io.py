"""The interface through which the parts of a slot use its loop (`slot/slot_loop.py`)."""

from collections.abc import Iterable
from typing import Protocol

from lockstep_data_plane.core.events import PartitionEvent
from lockstep_data_plane.core.partition_state import PartitionState


class SlotIO(Protocol):
    """The loop of a slot, as its parts see it: it takes events of partitions, and carries out their effects."""

    others_end_by: float | None
    """The time of the loop's clock until which a run that was cut off may append; None: no run was cut off."""

    def step(self, partition: PartitionState, event: PartitionEvent) -> None:
        """Give an event to the partition, and carry out its effects. Batches wait until `pump`."""

    def pump(self) -> None:
        """Send now what can be sent."""

    def resuming(self) -> Iterable[PartitionState]:
        """Return the partitions that are about to resume. Their metadata is asked for together."""
