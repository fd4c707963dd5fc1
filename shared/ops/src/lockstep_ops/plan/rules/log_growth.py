"""The growth of logs, by their offsets and sizes. Pure."""

from lockstep_ops.plan.rules.flow_facts import LogFacts

DAY_MS = 86_400_000

SETTLED_MS = 3_600_000
"""The age in milliseconds from which a log tells how fast it grows. In a younger one a burst looks like a rate."""


def records_per_second(log: LogFacts, at_ms: int) -> float | None:
    """Return how many records a second producers add to a log.

    It is the average over the last day, or since the first record of a younger log. None means not known.
    """
    records = log.end - log.begin
    if not records:
        return 0.0
    age_ms = 0 if log.oldest_ms is None else at_ms - log.oldest_ms
    if age_ms < SETTLED_MS:
        return None
    if log.day_ago is not None and age_ms >= DAY_MS:
        return (log.end - max(log.begin, min(log.day_ago, log.end))) * 1000 / DAY_MS
    return records * 1000 / age_ms


def stored_per_second(log: LogFacts, at_ms: int) -> float | None:
    """Return the bytes a second that producers add, as the broker stores them, or None if not known."""
    records = records_per_second(log, at_ms)
    if records is None or log.size is None:
        return None
    return records * log.size / (log.end - log.begin) if records else 0.0
