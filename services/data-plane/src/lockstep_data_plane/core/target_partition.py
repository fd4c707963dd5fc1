"""Where a partition's batches go (no I/O, no clock)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.record_batch.coalesce import MERGED_BYTES

if TYPE_CHECKING:
    from lockstep_data_plane.core.machine import PartitionMachine

__all__ = ["TargetPartition"]


class TargetPartition:
    """A partition of the target that a partition of the source is appended to; what goes there goes in order."""

    def __init__(self, partition: PartitionMachine, number: int) -> None:
        self.partition = partition
        self.number = number
        self.target_tp = (partition.target_topic, number)

    def may_launch(self, window: int) -> bool:
        """Whether `launch` may be called now, with at most so many batches on their way there."""
        return self.partition.chain_to(self.number).may_launch(window) and self.partition.may_append(self.number)

    @property
    def unanswered(self) -> int:
        """Batches on their way there."""
        return self.partition.chain_to(self.number).unanswered

    def launch(self) -> InFlightBatch:
        """What is to be sent there next; swarms of tiny batches go as one."""
        limits = self.partition.limits
        return self.partition.chain_to(self.number).launch(min(MERGED_BYTES, limits.max_bytes), limits.levels)
