"""What verification finds in one partition: differences, and what it could not compare (no I/O)."""

from dataclasses import dataclass
from enum import Enum


class DifferenceKind(Enum):
    """How a copy differs. A record that is there in both logs and differs in parts has the parts' names joined by `+`
    (`changed_parts`)."""

    MISSING = "missing"
    EXTRA = "extra"
    """Our producer has appended it, and the source has no such record."""
    FOREIGN = "foreign"
    """Another client has written it into the copy."""
    ORDER = "order"
    """The record is there, and not in its place."""
    UNREADABLE = "unreadable"
    """The bytes of a batch of the target are no records; `target_offset` is its first one."""
    OFFSET = "offset"
    """From this record on the offset runs name another target offset than the record has."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. -1 where a log has no such record."""

    kind: str
    source_offset: int = -1
    target_offset: int = -1


class NotComparedReason(Enum):
    """Why records are not verified. None of them counts as equal."""

    BEFORE_THE_RUNS = "before-the-offset-runs"
    """No offset run goes back so far, so the first pair of records is not known."""
    REMOVED_ON_SOURCE = "removed-on-source"
    """Retention or compaction has removed the record from the source."""
    REMOVED_ON_TARGET = "removed-on-target"
    PASSED_OVER = "passed-over"
    """Quarantined, or skipped by a policy: two offset runs have nothing between them on the target."""
    NO_RUN = "no-offset-run"
    """It is between two offset runs that have something between them on the target too: runs were thinned there."""
    TIMESTAMP = "target-timestamps"
    """The target sets its own timestamps (`message.timestamp.type=LogAppendTime`); all else of the record is equal."""
    UNREADABLE = "unreadable"
    """The bytes of a batch are no records."""


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A stretch that is not verified, from `first` to `last` of the source; -1 where only the target has records.
    `records`: how many, or how many offsets where the records are gone."""

    reason: NotComparedReason
    first: int
    last: int
    records: int


Content = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Of a record: timestamp, key, value, headers."""


def changed_parts(source: Content, target: Content, *, timestamps: bool) -> str:
    """The parts in which two records differ, joined by `+`; "" where they are equal. `timestamps`: they count."""
    parts = {
        "timestamp": timestamps and source[0] != target[0],
        "key": source[1] != target[1],
        "value": source[2] != target[2],
        "headers": source[3] != target[3],
    }
    if parts["headers"] and sorted(map(repr, source[3])) == sorted(map(repr, target[3])):
        parts["headers"], parts["header-order"] = False, True
    return "+".join(name for name, differs in parts.items() if differs)
