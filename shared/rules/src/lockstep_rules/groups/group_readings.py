"""The moment up to which the consumer groups of a source are known (no I/O, no clock).

The checkpoint service reads them in rounds. A reading is as old as its beginning: what the source accepted later is
unknown. A source that is gone accepts nothing, so the time since then does not count. The service records since when it
has no answer. That counts only while the service goes on asking.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.state_rows import GroupStatus, Row, SourceGroupsStatus

INTERVALS = 2
"""The age of a reading, in intervals, up to which it counts."""

LEAST_LIMIT_MS = 10_000
"""The age up to which a reading always counts: the restart of a service takes some seconds."""


def age_limit_ms(interval_ms: int) -> int:
    """Return the age at which a reading of groups is too old, if they are read every `interval_ms`."""
    return max(INTERVALS * interval_ms, LEAST_LIMIT_MS)


@dataclass(frozen=True, slots=True)
class GroupReadings:
    """The readings of all shares of a source's groups, by `SourceGroupsStatus`. Times are Unix milliseconds."""

    by_share: dict[int, SourceGroupsStatus]

    @classmethod
    def from_rows(cls, rows: Iterable[Row]) -> "GroupReadings":
        """Return the readings among the rows of a flow."""
        return cls({row.share: row for row in rows if isinstance(row, SourceGroupsStatus)})

    @property
    def list_known_ms(self) -> int:
        """The moment up to which all groups of the source are known; 0: unknown."""
        return min(self._read_ms(share) for share in range(COMMANDS_PARTITIONS))

    def position_known_ms(self, row: GroupStatus) -> int:
        """Return the moment up to which the offsets of one group are known; 0: unknown.

        A reading that did not change the group's row is in the row of its share, unless it failed for this group.
        """
        if row.phase == "failing":
            return row.read_ms
        return max(row.read_ms, self._read_ms(partition_for(row.group.encode(), COMMANDS_PARTITIONS)))

    def oldest_age_ms(self, now_ms: int, limit_ms: int) -> int | None:
        """Return for how long the source may have accepted what was not read, in any share; None: unknown.

        A service that has written nothing for `limit_ms` does not ask any more.
        """
        if not self.list_known_ms:
            return None
        return max(_age_ms(row, now_ms, limit_ms) for row in self.by_share.values())

    def _read_ms(self, share: int) -> int:
        row = self.by_share.get(share)
        return 0 if row is None else row.read_ms


def _age_ms(row: SourceGroupsStatus, now_ms: int, limit_ms: int) -> int:
    is_asking = row.unanswered_ms and now_ms - row.at_ms <= limit_ms
    return max(0, (row.unanswered_ms if is_asking else now_ms) - row.read_ms)
