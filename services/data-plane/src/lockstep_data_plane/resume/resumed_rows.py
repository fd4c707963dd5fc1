"""The rows that a resume makes of others. Pure."""

from dataclasses import replace

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_state.rows.state_rows import PartitionProgress


def newest_row(own_row: PartitionProgress, read_row: PartitionProgress | None) -> PartitionProgress:
    """Return our own row, unless another slot has decided since, or has begun the chain that we have not begun."""
    if read_row is None or read_row.producer_id != own_row.producer_id:
        return own_row
    further = (read_row.producer_epoch, read_row.begun) > (own_row.producer_epoch, own_row.begun)
    return read_row if further else own_row


def move_behind(row: PartitionProgress, committed: int | None) -> PartitionProgress:
    """Return the row behind what is committed, if that is further on."""
    if committed is None or committed <= row.upstream:
        return row
    return replace(row, upstream=committed, upstream_epoch=-1)


def with_present_transform(
    row: PartitionProgress, former: PartitionProgress, partition: PartitionState
) -> PartitionProgress:
    """Return the row of a copy that goes on behind `row` with the partition's present transform."""
    version = partition.transform_version
    if former.transform == version:
        return replace(row, transform=version, transform_since=former.transform_since)
    return replace(row, transform=version, transform_since=row.upstream + 1 if former.producer_id >= 0 else -1)


def transform_change(old: str, new: str, first: int) -> str:
    """Say from which upstream offset on records are copied with another version of the transform; "": with none."""
    return f"records from offset {first} on are copied {_words(new)}, and those before {_words(old)}"


def _words(version: str) -> str:
    return f"with transform {version}" if version else "as they are"
