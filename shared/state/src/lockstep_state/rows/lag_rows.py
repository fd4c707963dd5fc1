"""The rows of the state topic with the history of a flow's lag. Import them from `state_rows`.

They are a ring: the row of ten minutes is overwritten a day later. `lag_history.py` of the rules fills and reads them.
"""

from dataclasses import dataclass

from lockstep_state.rows.row import Row, row_kind
from lockstep_state.rows.value_types import Count, Offset, PartitionNumber, UnixMs


@row_kind("lag", "block", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class LagBlock(Row):
    """Ten minutes of a flow's lag, with a sample each 10 s. Owner: data plane (the driver).

    All lists have a value for each sample up to the last one. -1: nobody measured, or the value was unknown. The lag
    of a partition that is unknown counts in `unknown`, and in none of the others.
    """

    block: Count
    """Number in the ring, from 0 to 143."""
    begins_ms: UnixMs = 0
    """The Unix milliseconds of the first sample."""
    lag_ms: tuple[Offset, ...] = ()
    """The longest lag of all partitions in milliseconds."""
    lag_records: tuple[Offset, ...] = ()
    """The records that are not on the target, of all partitions."""
    unknown: tuple[Offset, ...] = ()
    """The number of partitions whose lag was unknown."""
    records_per_s: tuple[Offset, ...] = ()
    """The records a second that were appended to the target since the sample before."""


@row_kind("lag-worst", "block", owner="data-plane")
@dataclass(frozen=True, slots=True, kw_only=True)
class WorstLags(Row):
    """Ten minutes of the lag of the partitions that lagged most, with a sample each minute.

    Owner: data plane (the driver). At most 20 partitions: those with the longest lag in any sample of these minutes.
    """

    block: Count
    """Number in the ring, as in `lag/<block>`."""
    begins_ms: UnixMs = 0
    """The Unix milliseconds of the first sample."""
    partitions: tuple[tuple[str, PartitionNumber, tuple[Offset, ...]], ...] = ()
    """(topic, partition, lag in milliseconds of each sample up to the last one). -1: nobody measured, the lag was
    unknown, or the partition was not among these yet."""
