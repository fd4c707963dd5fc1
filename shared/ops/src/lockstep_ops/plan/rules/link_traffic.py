"""The bytes a day that a flow carries over the links to its clusters, once the copy has caught up. Pure.

Batches pass as they are, so both links carry what the source has on disk. A batch that is rebuilt keeps its codec,
unless the file says otherwise.
"""

from collections.abc import Iterable

from lockstep_ops.plan.rules.flow_facts import FlowFacts, LogFacts
from lockstep_ops.plan.rules.flow_plan import LinkTraffic, TrafficForecast
from lockstep_ops.plan.rules.log_growth import DAY_MS, records_per_second, stored_per_second

STORED, UNCHANGED, AT_MOST, RECOMPRESSED, UNKNOWN = "stored", "unchanged", "at-most", "recompressed", "unknown"

LOG_DIRECTORIES = "log-directories"
"""The basis of sizes that are compressed as batches are."""

UNCOMPRESSED = "none"
"""The `compression.type` that compresses nothing."""


def forecast_traffic(facts: FlowFacts) -> TrafficForecast:
    """Forecast the traffic of a day, from the logs of the topics that are copied."""
    copied = facts.copied
    counted = {
        tp: log
        for tp, log in facts.logs.items()
        if tp[0] in copied and records_per_second(log, facts.at_ms) is not None
    }
    stored = None
    if facts.bytes_basis == LOG_DIRECTORIES:
        stored = _a_day(stored_per_second(log, facts.at_ms) for log in counted.values())
    received = LinkTraffic(
        cluster=facts.source.alias,
        direction="received",
        bytes_a_day=stored,
        basis=UNKNOWN if stored is None else STORED,
    )
    return TrafficForecast(
        records_a_day=_a_day(records_per_second(log, facts.at_ms) for log in counted.values()),
        record_bytes_a_day=_a_day(_record_bytes_per_second(log, facts.at_ms) for log in counted.values()),
        partitions=len(counted),
        uncounted=sum(facts.source.partition_count(topic) for topic in copied) - len(counted),
        compacted=sum(_is_compacted(facts, topic) for topic, _ in counted),
        source=received,
        target=_sent(facts, received),
    )


def _sent(facts: FlowFacts, received: LinkTraffic) -> LinkTraffic:
    plane = facts.settings.data_plane
    size, basis = received.bytes_a_day, UNCHANGED
    if plane.compression_type is not None and plane.compression.recompress == "true":
        size, basis = None, RECOMPRESSED
    elif size is None:
        basis = UNKNOWN
    elif plane.compression_type not in (None, UNCOMPRESSED):
        basis = AT_MOST
    return LinkTraffic(cluster=facts.target.alias, direction="sent", bytes_a_day=size, basis=basis)


def _record_bytes_per_second(log: LogFacts, at_ms: int) -> float | None:
    records = records_per_second(log, at_ms)
    if not records:
        return records
    return None if log.record_bytes is None else records * log.record_bytes


def _a_day(rates: Iterable[float | None]) -> int | None:
    """Return the sum of rates a second over a day, or None if one is not known, or there is none."""
    per_second = list(rates)
    known_rates = [rate for rate in per_second if rate is not None]
    return round(sum(known_rates) * DAY_MS / 1000) if known_rates and len(known_rates) == len(per_second) else None


def _is_compacted(facts: FlowFacts, topic: str) -> bool:
    source_topic = facts.source.topics.get(topic)
    return source_topic is not None and "compact" in source_topic.configs.get("cleanup.policy", "")
