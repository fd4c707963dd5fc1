"""The share of a verification that is done. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_state.rows.state_rows import VerifiedPartition


class ComparedShare(NamedTuple):
    """Source offsets that are compared, of those that are wanted."""

    compared: int
    wanted: int


def compared_share(rows: Iterable[VerifiedPartition], request: str) -> ComparedShare:
    """Return the share of the partitions that a request has reached."""
    mine = [row for row in rows if row.request == request and row.first >= 0]
    return ComparedShare(
        sum(max(0, row.upstream - row.first + 1) for row in mine),
        sum(max(0, max(row.upstream_end, row.source_end - 1) - row.first + 1) for row in mine),
    )
