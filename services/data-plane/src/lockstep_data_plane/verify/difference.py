"""The findings of verification in one partition: differences, and records that could not be compared (no I/O)."""

from dataclasses import dataclass

from lockstep_state.reasons.verification_reason import NotComparedReason, RecordPart


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. An offset is -1 if the log has no such record."""

    kind: str
    source_offset: int = -1
    target_offset: int = -1


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Records that are not verified, from `first` to `last` of the source, or -1 if only the target has them.

    `records` is their number, or the number of offsets if the records are gone.
    """

    reason: NotComparedReason
    first: int
    last: int
    records: int


Content = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""The timestamp, key, value and headers of a record."""


def changed_parts(source: Content, target: Content, *, timestamps: bool) -> str:
    """Return the parts in which two records differ, joined by `+`, or "" if they are equal.

    Args:
        source: The source's record.
        target: The target's record.
        timestamps: Timestamps are compared too.
    """
    parts = {
        RecordPart.TIMESTAMP: timestamps and source[0] != target[0],
        RecordPart.KEY: source[1] != target[1],
        RecordPart.VALUE: source[2] != target[2],
        RecordPart.HEADERS: source[3] != target[3],
    }
    if parts[RecordPart.HEADERS] and sorted(map(repr, source[3])) == sorted(map(repr, target[3])):
        parts[RecordPart.HEADERS], parts[RecordPart.HEADER_ORDER] = False, True
    return "+".join(part for part, differs in parts.items() if differs)
