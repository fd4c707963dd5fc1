"""Rows that say that the consumer groups of the source are known."""

from lockstep_protocol.names import COMMANDS_PARTITIONS
from lockstep_protocol.rows.state_rows import SourceGroupsStatus

GROUPS_READ = tuple(SourceGroupsStatus(share=share, phase="read") for share in range(COMMANDS_PARTITIONS))
"""Each share of them was read."""
