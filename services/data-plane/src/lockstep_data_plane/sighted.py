"""How far behind a partition is, by the newer of what its slot said and what the driver saw (no I/O, no clock)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep_data_plane.assign import TopicPartition
from lockstep_protocol.state import PartitionProgress

__all__ = ["UNHEARD_S", "Lag", "Sighted"]

UNHEARD_S = 3.0
"""A slot that works says within a second how far it is. A look that falls between two of its words says nothing yet."""


@dataclass(frozen=True, slots=True)
class Lag:
    records: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Behind:
    """The copy has stood at `upstream` since the look that first saw more in the source, at `since`."""

    upstream: int
    since: float


class Sighted:
    """Remembers what the driver's looks at the source have shown. Times are seconds of a clock that does not go back,
    but for rows, which have Unix milliseconds."""

    def __init__(self) -> None:
        self._ends: Mapping[TopicPartition, int] = {}
        self._behind: dict[TopicPartition, _Behind] = {}

    def look(self, rows: Iterable[PartitionProgress], ends: Mapping[TopicPartition, int], now: float) -> None:
        """`rows` as they are now, `ends`: the next offset behind what can be read. A partition that is not in `ends`
        was not answered for, and what was seen of it stays; one that is not among `rows` is forgotten."""
        known, seen, behind = self._ends, dict[TopicPartition, int](), dict[TopicPartition, _Behind]()
        for row in rows:
            tp = (row.topic, row.partition)
            end = ends.get(tp, known.get(tp))
            if end is None:
                continue
            seen[tp] = end
            if end - 1 > row.upstream:
                before = self._behind.get(tp)
                same = before is not None and before.upstream == row.upstream
                behind[tp] = before if same and before is not None else _Behind(row.upstream, now)
        self._ends, self._behind = seen, behind

    def lag(self, row: PartitionProgress, *, stands: bool, now: float, wall_ms: int) -> Lag:
        """Of the partition's newest row. `stands`: it is known not to move, so that the slot cannot know better."""
        tp = (row.topic, row.partition)
        behind = self._behind.get(tp)
        unheard = behind is not None and behind.upstream == row.upstream and now - behind.since >= UNHEARD_S
        records = row.lag_records
        if stands or unheard:
            records = max(records, self._ends.get(tp, 0) - 1 - row.upstream)
        if not records:
            return Lag(0, 0.0)
        if row.lag_records or behind is None:
            return Lag(records, (row.lag_ms + max(0, wall_ms - row.at_ms)) / 1000)
        return Lag(records, max(0.0, now - behind.since))
