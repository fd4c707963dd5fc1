"""Forecasts what is copied of each topic, from where, how long it takes, and what retention removes before. Pure.

The forecast has three assumptions. All partitions are copied side by side and share the rate. The records of a log are
spread evenly over its time. Producers go on as they did on average in the last day.

Retention removes the log's older end while the copy moves towards the newer one. Both move in the log's own time. The
copy loses what retention passes before the copy is there. It gains on retention as soon as it gets more bytes a second
than producers add, so the worst moment is the one before. Brokers delete whole segments, hence later: a loss is "at
most".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockstep_config.flow.transform_settings import SeveralTransforms
from lockstep_ops.plan.rules.flow_facts import FlowFacts, LogFacts, TopicFacts
from lockstep_ops.plan.rules.flow_plan import (
    EARLIEST,
    LATEST,
    TIMESTAMP,
    CopyForecast,
    PartitionForecast,
    TopicForecast,
    longest_known,
    sum_known,
)
from lockstep_ops.plan.rules.log_growth import stored_per_second
from lockstep_ops.plan.rules.shared_rate import SharedRate
from lockstep_rules.record_rules import RecordRules
from lockstep_state.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class CopyRate:
    """Bytes a second, and how that is known: `stated` | `measured` | `limited` | `assumed`."""

    per_second: int
    basis: str


ASSUMED = CopyRate(50_000_000, "assumed")
"""The rate that is assumed if none is stated or measured: a slow network, not the limit of Lockstep."""


def settled_rate(stated: CopyRate | None, limit: int | None) -> CopyRate:
    """Return the rate of a flow: the stated one, else the assumed one, and never beyond the limit of the file."""
    rate = stated or ASSUMED
    return CopyRate(limit, "limited") if limit is not None and limit < rate.per_second else rate


@dataclass(frozen=True, slots=True)
class _Start:
    """The position from which one partition is copied, with what is left of it."""

    offset: int
    begins: str
    records: int
    bytes: int | None
    gone: int
    oldest_ms: int | None
    """The timestamp of the first record that is copied, as far as the log shows it."""


def copy_forecast(facts: FlowFacts, rate: CopyRate) -> CopyForecast:
    """Return the forecast of every topic that is mirrored."""
    starts = {tp: _start(facts, tp, log) for tp, log in facts.logs.items()}
    growths = [stored_per_second(log, facts.at_ms) for log in facts.logs.values()]
    known_growths = [growth for growth in growths if growth is not None]
    growth = round(sum(known_growths)) if known_growths else None
    spare_rate = rate.per_second - (growth or 0)
    curve = (
        SharedRate.of_partitions((start.bytes or 0 for start in starts.values()), spare_rate)
        if spare_rate > 0
        else None
    )
    topics = tuple(_topics(facts, starts, curve))
    return CopyForecast(
        rate=rate.per_second,
        rate_basis=rate.basis,
        bytes_basis=facts.bytes_basis,
        growth=growth,
        records=sum_known(topic.records for topic in topics),
        bytes=sum_known(topic.bytes for topic in topics),
        seconds=longest_known(topic.seconds for topic in topics),
        topics=topics,
    )


def _start(facts: FlowFacts, tp: TopicPartition, log: LogFacts) -> _Start:
    position = facts.reached.get(tp)
    if position is not None:
        offset, begins = position.next, position.by
    elif tp in facts.dated:
        offset, begins = facts.dated[tp], TIMESTAMP
    elif facts.settings.data_plane.auto_offset_reset == "latest":
        offset, begins = log.end, LATEST
    else:
        offset, begins = log.begin, EARLIEST
    first_offset = min(max(offset, log.begin), log.end)
    records, log_records = log.end - first_offset, log.end - log.begin
    size = None if log.size is None else round(log.size * records / log_records) if log_records else 0
    oldest = log.oldest_ms
    if oldest is not None and log_records:
        oldest += round((facts.at_ms - oldest) * (first_offset - log.begin) / log_records)
    return _Start(offset, begins, records, size, max(0, log.begin - offset), oldest)


def _topics(
    facts: FlowFacts, starts: Mapping[TopicPartition, _Start], curve: SharedRate | None
) -> Iterator[TopicForecast]:
    for topic, remote in facts.copied.items():
        kept_ms, kept_bytes = retention_of(facts.source.topics.get(topic))
        partitions = tuple(
            _partition(facts, (topic, number), starts.get((topic, number)), curve, (kept_ms, kept_bytes))
            for number in range(facts.source.partition_count(topic))
        )
        begins = {forecast.begins for forecast in partitions if forecast.begins}
        yield TopicForecast(
            topic=topic,
            remote=remote,
            begins=begins.pop() if len(begins) == 1 else "mixed" if begins else "",
            records=sum_known(forecast.records for forecast in partitions),
            bytes=sum_known(forecast.bytes for forecast in partitions),
            seconds=longest_known(forecast.seconds for forecast in partitions),
            retention_ms=kept_ms,
            retention_bytes=kept_bytes,
            partitions=partitions,
            delay_ms=facts.settings.delay_ms(topic),
            transform=_transform_names(facts, topic),
            rules=_rule_effects(facts.settings.record_rules(topic)),
        )


def _transform_names(facts: FlowFacts, topic: str) -> str:
    """Return the name of the transform of a topic, or the names of all that select it, which is a hazard; "": none."""
    try:
        transform = facts.settings.data_plane.transform_of(topic)
    except SeveralTransforms as exc:
        return ", ".join(exc.names)
    return "" if transform is None else transform.name


def _rule_effects(rules: RecordRules | None) -> tuple[str, ...]:
    if rules is None:
        return ()
    effects = (("filter", rules.drops_records), ("headers", rules.changes_headers))
    return tuple(name for name, holds in effects if holds)


def retention_of(topic: TopicFacts | None) -> tuple[int | None, int | None]:
    """Return how long and how many bytes of each partition a topic is kept.

    None means without a limit, or not known.
    """
    if topic is None or "delete" not in topic.configs.get("cleanup.policy", "delete"):
        return None, None
    limits = (int(topic.configs.get(key, "-1")) for key in ("retention.ms", "retention.bytes"))
    kept_ms, kept_bytes = (limit if limit >= 0 else None for limit in limits)
    return kept_ms, kept_bytes


def _partition(
    facts: FlowFacts,
    tp: TopicPartition,
    start: _Start | None,
    curve: SharedRate | None,
    retention: tuple[int | None, int | None],
) -> PartitionForecast:
    log = facts.logs.get(tp)
    if start is None or log is None:
        return PartitionForecast(
            partition=tp[1],
            start=None,
            end=None,
            begins="",
            records=None,
            bytes=None,
            seconds=None,
            oldest_ms=None,
            loses_ms=None,
            loses_records=None,
        )
    seconds = None if start.bytes is None or (curve is None and start.bytes) else 0.0
    if curve is not None and start.bytes:
        seconds = curve.time_for(start.bytes)
    lost_ms = _loss(start, log, curve, retention, facts.at_ms)
    age = None if start.oldest_ms is None else max(1, facts.at_ms - start.oldest_ms)
    lost = None if lost_ms is None else 0
    if lost_ms and age:
        lost = min(start.records, round(start.records * lost_ms / age))
    return PartitionForecast(
        partition=tp[1],
        start=start.offset,
        end=log.end,
        begins=start.begins,
        records=start.records,
        bytes=start.bytes,
        seconds=None if seconds is None else round(seconds, 3),
        oldest_ms=log.oldest_ms,
        loses_ms=lost_ms,
        loses_records=lost,
        gone=start.gone,
    )


def _loss(
    start: _Start, log: LogFacts, curve: SharedRate | None, retention: tuple[int | None, int | None], at_ms: int
) -> int | None:
    """Return how many milliseconds of the log retention removes before the copy is there, or None if not known."""
    kept_ms, kept_bytes = retention
    if not start.records or (kept_ms is None and kept_bytes is None):
        return 0
    if start.oldest_ms is None or start.bytes is None:
        return None
    if not start.bytes:
        return 0
    age_s = max(0.001, (at_ms - start.oldest_ms) / 1000)
    growth = stored_per_second(log, at_ms)
    if curve is None:  # producers are faster: retention passes sooner or later
        return round(age_s * 1000)
    done = curve.time_for(start.bytes)
    losses = [0.0]
    if kept_ms is not None:
        worst = min(_seconds_until_faster(curve, start.bytes / age_s), kept_ms / 1000, done)
        edge_s = age_s + worst - kept_ms / 1000
        losses.append(edge_s - age_s * curve.copied_by(worst) / start.bytes)
    if kept_bytes is not None and growth is None and (log.size or 0) > kept_bytes * 0.8:
        return None
    if kept_bytes is not None and growth is not None:
        worst = min(_seconds_until_faster(curve, growth), done)
        edge = start.bytes + growth * worst - kept_bytes
        losses.append((edge - curve.copied_by(worst)) / start.bytes * age_s)
    return round(min(age_s, max(losses)) * 1000)


def _seconds_until_faster(curve: SharedRate, per_second: float) -> float:
    """Return the seconds until the copy of a partition is faster than its producers."""
    seconds = curve.time_until_share(per_second)
    return float("inf") if seconds is None else seconds
