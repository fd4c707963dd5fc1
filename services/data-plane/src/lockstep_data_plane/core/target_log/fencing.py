"""The ways to keep a partition's records from being appended twice (no I/O).

Each says of a row whether the chain that it names is still ours, and behind which sequence we may append.
"""

from dataclasses import replace
from typing import TypeAlias

from lockstep_data_plane.core.target_log.target_tail import LastAppend, TargetTail
from lockstep_state.rows.state_rows import PartitionProgress


class SequenceFence:
    """The fence by sequences: an append has to continue the sequence of its producer id and epoch.

    Otherwise the target's leader refuses it, so the first append takes the sequence. The log and its leader say how far
    the sequence is.
    """

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id

    def owns(self, row: PartitionProgress) -> bool:
        """Return whether the row's chain is of this producer id, and goes on."""
        return not (row.transactional or row.read_back) and row.producer_id == self.producer_id

    def last_append(self, row: PartitionProgress, target: TargetTail) -> LastAppend:
        """Return the end of the row's chain. Raises as `TargetTail.last_append`."""
        return target.last_append()

    def last_used_epoch(self, row: PartitionProgress) -> int:
        """Return the last epoch of this producer id that was used in the partition; -1: none."""
        if row.producer_id != self.producer_id:
            return row.left_epoch
        return row.producer_epoch - 1 if row.begins else row.producer_epoch

    def begin(self, row: PartitionProgress, left_epoch: int) -> PartitionProgress:
        """Return the row of a chain in an epoch that the target has not seen."""
        return replace(row, producer_id=self.producer_id, producer_epoch=left_epoch + 1, read_back=False)


class ReadBackFence(SequenceFence):
    """The way for a target that cannot fence: one writer at a time, which first reads the target's log.

    Producer id, epoch and sequence are in the row only.
    """

    def owns(self, row: PartitionProgress) -> bool:
        """Return whether the row's chain goes on: its records carry no producer id."""
        return row.read_back and row.producer_id == self.producer_id

    def begin(self, row: PartitionProgress, left_epoch: int) -> PartitionProgress:
        """Return the row of a chain in an epoch that no row has had."""
        return replace(super().begin(row, left_epoch), read_back=True)


class TransactionFence:
    """The fence by transactional id: to take it over ends the open transaction and refuses the former owner.

    What is committed counts (`kafka-wire.md` §2, line 12). `producer_id` and `producer_epoch` are what the
    transactional id stands for since then.
    """

    def __init__(self, producer_id: int = -1, producer_epoch: int = -1) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def owns(self, row: PartitionProgress) -> bool:
        """Return whether the row's progress is committed with its records."""
        return row.transactional

    def last_append(self, row: PartitionProgress, target: TargetTail) -> LastAppend:
        """Return the log's end, behind which the next transaction begins: everything in the log is decided.

        Raises:
            LogContradiction: The log does not hold what the row says.
        """
        target.require_row()
        return LastAppend(row.sequence, max(-1, target.log_end - 1))

    def begin(self, row: PartitionProgress, left_epoch: int) -> PartitionProgress:
        """Return the row of a copy that goes in transactions from now on."""
        return self.take_over(replace(row, transactional=True, read_back=False, left_epoch=left_epoch))

    def take_over(self, row: PartitionProgress) -> PartitionProgress:
        """Return the row under the producer id and epoch of this takeover. Its first append has sequence 0.

        The copy of the row goes in transactions already.
        """
        return replace(row, producer_id=self.producer_id, producer_epoch=self.producer_epoch, sequence=-1)


Fencing: TypeAlias = SequenceFence | TransactionFence


def fence_for_row(row: PartitionProgress) -> Fencing:
    """Return the fence under which the row's records were appended.

    It judges the row. A `TransactionFence` of it has no producer id, so no copy may begin with it.
    """
    if row.transactional:
        return TransactionFence()
    return (ReadBackFence if row.read_back else SequenceFence)(row.producer_id)
