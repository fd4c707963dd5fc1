"""The history of a flow's lag as a ring of rows: what a writer adds, and what a reader takes from it. Pure.

A row has ten minutes, and there are rows for a day. What nobody measured is unknown, and never 0. If the clock goes
back, a moment comes twice. Then the sample that knows more partitions stays, and of two equal ones that with the longer
lag.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import LagBlock, WorstLags

SAMPLE_MS = 10_000
"""Milliseconds from one sample of the flow to the next."""

WORST_SAMPLE_MS = 60_000
"""Milliseconds from one sample of the partitions that lag most to the next."""

BLOCK_MS = 600_000
"""Milliseconds in one row."""

BLOCKS = 144
"""Rows in the ring. They are a day."""

MOST_WORST = 20
"""Partitions in a row of the worst ones."""

NOT_KNOWN = -1
"""The value of a sample that nobody took, or that was unknown."""

FRESH_MS = 3 * SAMPLE_MS
"""Milliseconds for which the last sample counts as the present one."""

RECENT_MINUTES = 15
"""Minutes of `recent_lags`."""

AHEAD_MS = 60_000
"""Milliseconds by which the clock of the writer may be ahead of the reader's."""


@dataclass(frozen=True, slots=True)
class LagSample:
    """The lag of a flow at one moment. `unknown` partitions count in none of the other values.

    `lag_ms` and `lag_records` are None if the lag of no partition is known, `records_per_s` if it was not measured.
    """

    lag_ms: int | None
    lag_records: int | None
    unknown: int
    records_per_s: int | None


@dataclass(frozen=True, slots=True)
class LagHistory:
    """The lag of a flow over time: a value for each `SAMPLE_MS` from `begins_ms` on. None: unknown.

    `lag_ms` and `lag_records` are None if the lag of some partition was unknown. Those of the known ones are in
    `least_lag_ms` and `least_lag_records`.
    """

    begins_ms: int
    lag_ms: tuple[int | None, ...]
    lag_records: tuple[int | None, ...]
    least_lag_ms: tuple[int | None, ...]
    least_lag_records: tuple[int | None, ...]
    records_per_s: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class PartitionHistory:
    """The lag of a partition in milliseconds, for each `WORST_SAMPLE_MS` from `begins_ms` on. None: unknown."""

    topic: str
    partition: int
    begins_ms: int
    lag_ms: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class LagSummary:
    """The longest lag of a history: what a failover would have lost at worst, and what it would lose now.

    `worst_ms` is None if nothing is known. `known_s` is for how many seconds the lag of all partitions is known.
    `now_ms` is the lag of the last sample; None if that is unknown, or too old to be the present one.
    """

    worst_ms: int | None
    worst_at_ms: int | None
    known_s: int
    now_ms: int | None


def block_of(at_ms: int) -> tuple[int, int]:
    """Return the number in the ring of the row that has a moment, and the Unix milliseconds at which it begins."""
    number = at_ms // BLOCK_MS
    return number % BLOCKS, number * BLOCK_MS


def sample_of(lags: Iterable[tuple[int, int] | None], records_per_s: int | None) -> LagSample:
    """Return the sample of a flow.

    Args:
        lags: The milliseconds and records of each partition that the target is to have; None: unknown.
        records_per_s: The records a second that were copied; None: not measured.
    """
    longest, records, known, unknown = 0, 0, 0, 0
    for lag in lags:
        if lag is None:
            unknown += 1
        else:
            known += 1
            longest, records = max(longest, lag[0]), records + lag[1]
    nothing_known = unknown and not known
    return LagSample(None if nothing_known else longest, None if nothing_known else records, unknown, records_per_s)


def with_sample(row: LagBlock | None, at_ms: int, sample: LagSample) -> LagBlock:
    """Return the row of a moment with the sample.

    Args:
        row: The row that has the number of that moment's block in the ring, perhaps of another day; None: there is
            none.
        at_ms: The Unix milliseconds of the sample.
        sample: The sample. If the row has one for the same ten seconds, the one with fewer unknown partitions stays,
            then the one with the longer lag.
    """
    block, begins_ms = block_of(at_ms)
    if row is None or row.begins_ms != begins_ms:
        row = LagBlock(block=block, begins_ms=begins_ms)
    place = (at_ms - begins_ms) // SAMPLE_MS
    values = (sample.lag_ms, sample.lag_records, sample.unknown, sample.records_per_s)
    present = tuple(_value(column, place) for column in _columns(row))
    is_taken = present != (NOT_KNOWN,) * len(present)
    if is_taken and (present[2], -present[0]) <= (sample.unknown, -_stored(sample.lag_ms)):
        return row
    lag_ms, lag_records, unknown, records_per_s = (
        _with_value(column, place, _stored(value)) for column, value in zip(_columns(row), values, strict=True)
    )
    return replace(row, lag_ms=lag_ms, lag_records=lag_records, unknown=unknown, records_per_s=records_per_s)


def with_worst(
    row: WorstLags | None, at_ms: int, lags: Mapping[TopicPartition, int | None], most: int = MOST_WORST
) -> WorstLags:
    """Return the row of a moment with a sample of the partitions that lag most.

    A partition that is in the row stays until others had a longer lag within its ten minutes. Its lag is sampled also
    when it is over.

    Args:
        row: As in `with_sample`.
        at_ms: The Unix milliseconds of the sample.
        lags: The lag of each partition in milliseconds; None: unknown.
        most: The most partitions in the row.
    """
    block, begins_ms = block_of(at_ms)
    if row is None or row.begins_ms != begins_ms:
        row = WorstLags(block=block, begins_ms=begins_ms)
    place = (at_ms - begins_ms) // WORST_SAMPLE_MS
    series = {(topic, number): samples for topic, number, samples in row.partitions}
    lagging = nlargest(most, ((lag, tp) for tp, lag in lags.items() if lag))
    for tp in {**series, **{tp: () for _, tp in lagging}}:
        samples, lag = series.get(tp, ()), lags.get(tp)
        value = NOT_KNOWN if lag is None else lag
        series[tp] = _with_value(samples, place, max(value, _value(samples, place)))
    former = {(topic, number) for topic, number, _ in row.partitions}
    kept = sorted(series, key=lambda tp: (-max(series[tp]), tp not in former, tp))[:most]
    return replace(row, partitions=tuple((*tp, series[tp]) for tp in sorted(kept)))


def read_history(rows: Iterable[LagBlock], now_ms: int, hours: int = 24) -> LagHistory:
    """Return the history of the last hours, of which the last sample is that of now.

    Rows of another day, or of the future, do not count.

    Args:
        rows: The rows of the ring, in any order.
        now_ms: The present time in Unix milliseconds.
        hours: The hours up to now, at most 24.
    """
    begins_ms, length = _grid(now_ms, hours * 60, SAMPLE_MS)
    columns: list[list[int | None]] = [[None] * length for _ in range(4)]
    for row in rows:
        first = (row.begins_ms - begins_ms) // SAMPLE_MS
        for column, values in zip(columns, _columns(row), strict=True):
            _fill(column, first, values[: BLOCK_MS // SAMPLE_MS])
    least_lag_ms, least_lag_records, unknown, records_per_s = map(tuple, columns)
    return LagHistory(
        begins_ms=begins_ms,
        lag_ms=_where_known(least_lag_ms, unknown),
        lag_records=_where_known(least_lag_records, unknown),
        least_lag_ms=least_lag_ms,
        least_lag_records=least_lag_records,
        records_per_s=records_per_s,
    )


def read_worst(
    rows: Iterable[WorstLags], now_ms: int, hours: int = 24, most: int = MOST_WORST
) -> tuple[PartitionHistory, ...]:
    """Return the histories of the partitions that lagged most in the last hours, the longest lag first.

    A history begins with the first sample of the partition, and ends with its last one. `most` is how many partitions
    are returned. Other arguments are as in `read_history`.
    """
    begins_ms, _, samples = _worst_samples(rows, now_ms, hours * 60)
    ranked = sorted(samples, key=lambda tp: (-max(samples[tp].values()), tp))[:most]
    return tuple(
        PartitionHistory(*tp, begins_ms + min(samples[tp]) * WORST_SAMPLE_MS, _column(samples[tp], min(samples[tp])))
        for tp in ranked
    )


def recent_lags(rows: Iterable[WorstLags], now_ms: int) -> dict[TopicPartition, tuple[int | None, ...]]:
    """Return the lag in each of the last `RECENT_MINUTES`, in milliseconds, of partitions that were among the worst.

    None: unknown.
    """
    _, length, samples = _worst_samples(rows, now_ms, RECENT_MINUTES)
    return {tp: _column(by_place, 0, length) for tp, by_place in samples.items()}


def summarize(rows: Iterable[LagBlock], now_ms: int, hours: int = 24) -> LagSummary:
    """Return the longest lag of the last hours, and the present one. Arguments are as in `read_history`.

    The longest is that of the partitions whose lag was known. `known_s` says for how long that was all of them.
    """
    begins_ms, length = _grid(now_ms, hours * 60, SAMPLE_MS)
    worst_ms, worst_at_ms, known, present = NOT_KNOWN, 0, 0, list(rows)
    for row in present:
        first = (begins_ms - row.begins_ms) // SAMPLE_MS
        within = slice(max(0, first), max(0, min(first + length, BLOCK_MS // SAMPLE_MS)))
        lags = row.lag_ms[within]
        known += row.unknown[within].count(0)
        longest = max(lags, default=NOT_KNOWN)
        if longest != NOT_KNOWN:
            last = len(lags) - 1 - lags[::-1].index(longest)
            at_ms = row.begins_ms + (within.start + last) * SAMPLE_MS
            worst_ms, worst_at_ms = max((worst_ms, worst_at_ms), (longest, at_ms))
    return LagSummary(
        worst_ms=None if worst_ms == NOT_KNOWN else worst_ms,
        worst_at_ms=None if worst_ms == NOT_KNOWN else worst_at_ms,
        known_s=known * SAMPLE_MS // 1000,
        now_ms=_present_lag(present, now_ms),
    )


def _present_lag(rows: Iterable[LagBlock], now_ms: int) -> int | None:
    recent = (row for row in rows if now_ms - FRESH_MS - BLOCK_MS < row.begins_ms <= now_ms + AHEAD_MS)
    samples = {
        row.begins_ms + place * SAMPLE_MS: (lag_ms, unknown)
        for row in recent
        for place, (lag_ms, unknown) in enumerate(zip(row.lag_ms, row.unknown, strict=False))
        if now_ms - FRESH_MS < row.begins_ms + place * SAMPLE_MS <= now_ms + AHEAD_MS
        and (lag_ms, unknown) != (NOT_KNOWN, NOT_KNOWN)
    }
    if not samples:
        return None
    lag_ms, unknown = samples[max(samples)]
    return None if unknown or lag_ms == NOT_KNOWN else lag_ms


def _worst_samples(
    rows: Iterable[WorstLags], now_ms: int, minutes: int
) -> tuple[int, int, dict[TopicPartition, dict[int, int]]]:
    """Return where the last minutes begin, how many they are, and the samples in them by partition and by place."""
    begins_ms, length = _grid(now_ms, minutes, WORST_SAMPLE_MS)
    samples: dict[TopicPartition, dict[int, int]] = {}
    for row in rows:
        first = (row.begins_ms - begins_ms) // WORST_SAMPLE_MS
        if not -(BLOCK_MS // WORST_SAMPLE_MS) < first < length:
            continue
        for topic, number, values in row.partitions:
            for place, value in enumerate(values[: BLOCK_MS // WORST_SAMPLE_MS], first):
                if value != NOT_KNOWN and 0 <= place < length:
                    samples.setdefault((topic, number), {})[place] = value
    return begins_ms, length, samples


def _column(by_place: Mapping[int, int], first: int, length: int = 0) -> tuple[int | None, ...]:
    """Return the values from the place `first` on, up to the last one, or up to `length`."""
    return tuple(map(by_place.get, range(first, length or max(by_place) + 1)))


def _grid(now_ms: int, minutes: int, step_ms: int) -> tuple[int, int]:
    """Return where the samples of the last minutes begin, and how many they are."""
    length = minutes * 60_000 // step_ms
    return (now_ms // step_ms - length + 1) * step_ms, length


def _columns(row: LagBlock) -> tuple[tuple[int, ...], ...]:
    return row.lag_ms, row.lag_records, row.unknown, row.records_per_s


def _value(samples: Sequence[int], place: int) -> int:
    return samples[place] if place < len(samples) else NOT_KNOWN


def _stored(value: int | None) -> int:
    return NOT_KNOWN if value is None else value


def _with_value(samples: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    gap = (NOT_KNOWN,) * (place - len(samples))
    return (*samples[:place], *gap, value, *samples[place + 1 :])


def _fill(column: list[int | None], first: int, samples: Sequence[int]) -> None:
    """Put samples into a column from the place `first` on, as far as they are within it."""
    for place, value in enumerate(samples, first):
        if value != NOT_KNOWN and 0 <= place < len(column):
            column[place] = value


def _where_known(values: Sequence[int | None], unknown: Sequence[int | None]) -> tuple[int | None, ...]:
    return tuple(None if count else value for value, count in zip(values, unknown, strict=True))
