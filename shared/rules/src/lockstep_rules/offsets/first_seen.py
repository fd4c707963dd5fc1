"""When records of a delayed partition were first seen in the source's log, and which of them may be copied. Pure.

A record was first seen by the first check that saw an end beyond it. A check takes its time after the source has
answered, so no record is taken for older than it is. What is left out of a history makes records younger, never older.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lockstep_state.rows.state_rows import MirroredTopic, SeenEnds

MOST = 128
"""Ends that are remembered of a log."""

TOLERANCE_MS = 30_000
"""The time that a delayed copy may take beyond its delay: for the checks of the source, and to copy what is due."""

TOLERANCE_PART = 20
"""So much of the delay may be added to that, as observed lags are rounded to parts of themselves (`observed_ends`)."""


class SeenEnd(NamedTuple):
    """An end of a log that a check saw. `is_whole`: no transaction was open then."""

    end: int
    at_ms: int
    is_whole: bool = True


class SeenLog(NamedTuple):
    """The log of a partition as a check saw it."""

    end: SeenEnd
    source_topic_id: str
    upstream: int
    """The last offset that is copied, at least; -1: none is."""


def observe(row: SeenEnds, log: SeenLog, delay_ms: int, now_ms: int) -> SeenEnds:
    """Return the row after a check. It is equal to the one before if the check has told nothing new.

    Args:
        row: The row before.
        log: What the check saw. A log of another topic begins anew.
        delay_ms: The delay in milliseconds.
        now_ms: The present Unix milliseconds, at or after the check.
    """
    if log.source_topic_id and row.source_topic_id and log.source_topic_id != row.source_topic_id:
        row = replace(row, released=0, ends=())
    ends = _seen(tuple(SeenEnd(*end) for end in row.ends), log.end, delay_ms // MOST)
    released = max(min(row.released, log.end.end), due_end(ends, now_ms - delay_ms))
    kept = _without_copied(ends, now_ms - delay_ms, log.upstream)
    topic_id = log.source_topic_id or row.source_topic_id
    return replace(row, source_topic_id=topic_id, released=released, ends=kept)


def due_end(ends: Sequence[SeenEnd], at_ms: int) -> int:
    """Return the last of these ends that was seen at `at_ms` or before; 0: none was."""
    return next((seen.end for seen in reversed(ends) if seen.at_ms <= at_ms), 0)


def released_offset(row: SeenEnds | None, topic: MirroredTopic | None) -> int:
    """Return the next offset of a delayed partition that is not to be copied yet.

    0: nothing is to be copied, because it is not known when the records were seen. `topic` is the row of its topic.
    """
    if row is None:
        return 0
    present_id = topic.source_topic_id if topic is not None else ""
    is_another = present_id and row.source_topic_id and present_id != row.source_topic_id
    return 0 if is_another else row.released


def no_delay(topic: str) -> int:
    """Return 0, the delay of every topic in a flow without delays."""
    return 0


def late_ms(lag_ms: int, delay_ms: int) -> int:
    """Return by how many milliseconds a delayed copy is later than it is to be; 0: it is on time."""
    beyond_ms = lag_ms - delay_ms
    return beyond_ms if beyond_ms > TOLERANCE_MS + delay_ms // TOLERANCE_PART else 0


def _seen(ends: tuple[SeenEnd, ...], new: SeenEnd, spacing_ms: int) -> tuple[SeenEnd, ...]:
    """Return the ends with a new one. Ends beyond it are dropped: the log became shorter, and grows anew."""
    ends = tuple(seen for seen in ends if seen.end <= new.end)
    if not ends:
        return (new,)
    last = ends[-1]
    new = new._replace(at_ms=max(new.at_ms, last.at_ms))
    is_close = new.at_ms - last.at_ms < spacing_ms and (last.is_whole or not new.is_whole)
    if new.end == last.end or is_close:
        return ends
    return _bounded((*ends, new))


def _bounded(ends: tuple[SeenEnd, ...]) -> tuple[SeenEnd, ...]:
    """Return at most `MOST` ends. The one is left out whose records become the least younger by that."""
    if len(ends) <= MOST:
        return ends
    index = min(range(len(ends) - 1), key=lambda number: ends[number + 1].at_ms - ends[number].at_ms)
    return ends[:index] + ends[index + 1 :]


def _without_copied(ends: tuple[SeenEnd, ...], due_ms: int, upstream: int) -> tuple[SeenEnd, ...]:
    """Return the ends without those that nothing needs: the next one is due and copied too."""
    number = 0
    while number + 1 < len(ends) and ends[number + 1].at_ms <= due_ms and ends[number + 1].end <= upstream + 1:
        number += 1
    return ends[number:]
