"""What verification finds in one partition: differences, and what it could not compare (no I/O)."""

from dataclasses import dataclass

from lockstep_state.reasons.verification_reason import NotComparedReason, RecordPart


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. -1 where a log has no such record."""

    kind: str
    source_offset: int = -1
    target_offset: int = -1


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
        RecordPart.TIMESTAMP: timestamps and source[0] != target[0],
        RecordPart.KEY: source[1] != target[1],
        RecordPart.VALUE: source[2] != target[2],
        RecordPart.HEADERS: source[3] != target[3],
    }
    if parts[RecordPart.HEADERS] and sorted(map(repr, source[3])) == sorted(map(repr, target[3])):
        parts[RecordPart.HEADERS], parts[RecordPart.HEADER_ORDER] = False, True
    return "+".join(part for part, differs in parts.items() if differs)
