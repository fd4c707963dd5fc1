"""Tell since when the source answers no reading of its groups (no I/O, no clock)."""

from lockstep_state.rows.state_rows import SourceGroupsStatus

SILENT_AFTER_MS = 10_000
"""A process that waits for the source says so every few seconds. If it has said nothing for so long, it was frozen, or
another one has begun: what the source did meanwhile was not seen."""


def unanswered_since(row: SourceGroupsStatus, asked_ms: int, now_ms: int) -> int:
    """Return the moment since which the source is known not to answer, in Unix milliseconds. It is that of the first
    question without an answer, if a process has waited for that all the time. `row`: what was written down last.
    `asked_ms`: when this process asked."""
    if row.unanswered_ms and now_ms - row.at_ms <= SILENT_AFTER_MS:
        return row.unanswered_ms
    return asked_ms if now_ms - asked_ms <= SILENT_AFTER_MS else now_ms
