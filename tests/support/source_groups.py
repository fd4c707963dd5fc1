"""Rows that say that the consumer groups of the source are known."""

from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.state_rows import SourceGroupsStatus


def groups_read_at(read_ms: int) -> tuple[SourceGroupsStatus, ...]:
    """Return rows that say that each share of the groups was read at that time."""
    return tuple(
        SourceGroupsStatus(share=share, phase="read", read_ms=read_ms, at_ms=read_ms)
        for share in range(COMMANDS_PARTITIONS)
    )
