"""Fold the state topic: keep the last row of each key that its owner was entitled to write. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lockstep_runtime.state.leadership import leader_label
from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.commands.command_vocabulary import owner_of_wanted
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.state_rows import (
    ROWS,
    DesiredState,
    GroupStatus,
    Leader,
    MalformedRow,
    PartitionProgress,
    Restarts,
    Row,
    SourceGroupsStatus,
    decode_row,
)

R = TypeVar("R", bound=Row)

DIVIDED: Mapping[type[Row], Callable[[Any], int]] = {
    GroupStatus: lambda row: partition_for(row.group.encode(), COMMANDS_PARTITIONS),
    SourceGroupsStatus: lambda row: row.share,
}
"""Kinds whose owner divides the work: the commands partition of a row, which has a leader of its own."""

BY_ROW: frozenset[type[Row]] = frozenset({DesiredState, Restarts})
"""Kinds whose rows each name their owner.

Other kinds without an owner have no term: the epoch of the producer id orders rows of slots, and commands write
theirs.
"""

DIVIDED_SERVICES = frozenset(kind.owned_by for kind in DIVIDED)


def owner_label(row: Row) -> str | None:
    """Return the label whose leader alone may write the row (`Leader.service`); None: its kind has none."""
    match row:
        case Restarts():
            return row.owner
        case DesiredState():
            service = owner_of_wanted(row.scope)
            return leader_label(service, 0, divided=service in DIVIDED_SERVICES)
    owner = row.owned_by
    share = DIVIDED.get(type(row))
    if owner is None or share is None:
        return owner
    return leader_label(owner, share(row), divided=True)


READ_BY_ALL = b'{"version":1,'
"""The first bytes of each value that all releases can read. A value with other first bytes is parsed."""


def _prefixes(kinds: frozenset[type[Row]]) -> tuple[bytes, ...]:
    return tuple(sorted(f"{kind.kind}/".encode() for kind in kinds))


class StateFold:
    """The rows of the state topic. Every record has to be folded in log order; to fold one twice changes nothing."""

    def __init__(
        self,
        on_leader: Callable[[str, str, int], None] | None = None,
        wants: frozenset[type[Row]] | None = None,
    ) -> None:
        """Create an empty fold.

        Args:
            on_leader: Gets service, instance and offset of each leader row.
            wants: The kinds that count; None is all. Leaders, desired states and restarts always count. Of other kinds
                only the JSON of newer releases is read.
        """
        self.begin(on_leader, wants)

    def begin(self, on_leader: Callable[[str, str, int], None] | None, wants: frozenset[type[Row]] | None) -> None:
        """Forget all: a topic is read from its beginning."""
        self._passed_over = () if wants is None else _prefixes(frozenset(ROWS.values()) - wants - BY_ROW - {Leader})
        self.rows: dict[str, Row] = {}
        """Rows by key. A row that was tombstoned is absent."""
        self.overwritten: set[str] = set()
        """Keys whose last record in the log does not count.

        Their owner has to write them again, because compaction keeps the wrong record.
        """
        self.position = -1
        """The offset of the last record folded."""
        self._terms: dict[str, int] = {}
        self._on_leader = on_leader

    def fold(self, offset: int, key: bytes | None, value: bytes | None) -> Row | None:
        """Fold one record, and return the row if it counts and changes what its key holds, else None.

        A malformed record has overwritten its key.

        Raises:
            MalformedRow: The record is no row. No row has changed.
            NewerVersion: The row is of a newer release. No row has changed.
        """
        if offset <= self.position or key is None:
            return None
        self.position = offset
        if key.startswith(self._passed_over) and (value is None or value.startswith(READ_BY_ALL)):
            return None
        name = key.decode(errors="replace")
        try:
            row = decode_row(key, value)
        except MalformedRow:
            self.overwritten.add(name)
            raise
        if row is None:
            if value is None:
                self.rows.pop(name, None)
                self.overwritten.discard(name)
            return None
        if isinstance(row, Leader):
            self._terms[row.service] = max(offset, self._terms.get(row.service, -1))
            if self._on_leader is not None:
                self._on_leader(row.service, row.instance, offset)
        elif self._is_stale(row):
            self.overwritten.add(name)
            return None
        elif isinstance(row, PartitionProgress) and self._is_outdated(name, row):
            return None
        self.overwritten.discard(name)
        if self.rows.get(name) == row:
            return None
        self.rows[name] = row
        return row

    def _is_stale(self, row: Row) -> bool:
        owner = owner_label(row)
        return owner is not None and 0 < row.term < self._terms.get(owner, -1)

    def _is_outdated(self, name: str, row: PartitionProgress) -> bool:
        replaced = self.rows.get(name)
        return isinstance(replaced, PartitionProgress) and row.is_outdated_by(replaced)

    def all(self, kind: type[R]) -> list[R]:
        """Return every row of a kind, in the order of the keys."""
        rows = {key: row for key, row in self.rows.items() if isinstance(row, kind)}
        return [rows[key] for key in sorted(rows)]

    def get(self, kind: type[R], *identity: str) -> R | None:
        """Return the row with this identity (`Row.identity()`), or None."""
        row = self.rows.get("/".join((kind.kind, *identity)))
        return row if isinstance(row, kind) else None
