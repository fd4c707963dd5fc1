"""The time since when the source answers no reading of its groups (no I/O, no clock)."""

from lockstep_state.rows.state_rows import SourceGroupsStatus

SILENT_AFTER_MS = 10_000
"""A process that waits for the source records that every few seconds. If it has not for this long, it was frozen or
replaced, and what the source did meanwhile was not seen."""


def unanswered_since(row: SourceGroupsStatus, asked_ms: int, now_ms: int) -> int:
    """Return the Unix milliseconds since when the source is known not to answer.

    That is the start of the first unanswered reading, if a process has waited for it all the time. `row` is the last
    one written, `asked_ms` the start of this process's reading.
    """
    if row.unanswered_ms and now_ms - row.at_ms <= SILENT_AFTER_MS:
        return row.unanswered_ms
    return asked_ms if now_ms - asked_ms <= SILENT_AFTER_MS else now_ms
