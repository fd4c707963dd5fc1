"""The bytes a day that a flow carries over the links to its clusters, once the copy has caught up. Pure.

Batches pass as they are, so both links carry what the source has on disk. A batch that is rebuilt keeps its codec,
unless the file says otherwise, or the target refuses the codec. What it takes then is measured on a sample.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from lockstep_ops.plan.rules.batch_sample import average_record, growth_factor, replace_refused
from lockstep_ops.plan.rules.flow_facts import FlowFacts, LogFacts
from lockstep_ops.plan.rules.flow_plan import LinkTraffic, TrafficForecast
from lockstep_ops.plan.rules.log_growth import DAY_MS, records_per_second, stored_per_second
from lockstep_rules.clusters.cluster_codecs import refused_codecs
from lockstep_state.kafka.batch_codecs import CODEC_NAMES, UNCOMPRESSED
from lockstep_state.offsets import TopicPartition

STORED, SAMPLED, UNCHANGED = "stored", "sampled", "unchanged"
AT_MOST, RECOMPRESSED, UNKNOWN = "at-most", "recompressed", "unknown"

LOG_DIRECTORIES = "log-directories"
"""The basis of sizes that are compressed as batches are."""


def forecast_traffic(facts: FlowFacts) -> TrafficForecast:
    """Forecast the traffic of a day, from the logs of the topics that are copied."""
    copied = facts.copied
    counted = {
        tp: log
        for tp, log in facts.logs.items()
        if tp[0] in copied and records_per_second(log, facts.at_ms) is not None
    }
    received = _received(facts, counted)
    stored, basis = _a_day(received.values()), STORED if facts.bytes_basis == LOG_DIRECTORIES else SAMPLED
    sampled = {topic: facts.batches[topic] for topic in copied if topic in facts.batches}
    return TrafficForecast(
        records_a_day=_a_day(records_per_second(log, facts.at_ms) for log in counted.values()),
        record_bytes_a_day=_a_day(_record_bytes_per_second(log, facts.at_ms) for log in counted.values()),
        partitions=len(counted),
        uncounted=sum(facts.source.partition_count(topic) for topic in copied) - len(counted),
        compacted=sum(_is_compacted(facts, topic) for topic, _ in counted),
        source=LinkTraffic(
            cluster=facts.source.alias,
            direction="received",
            bytes_a_day=stored,
            basis=UNKNOWN if stored is None else basis,
        ),
        target=_sent(facts, received),
        codecs=dict(sorted(Counter(codec.codec for sample in sampled.values() for codec in sample).items())),
        unsampled=len(copied) - len(sampled),
    )


def _received(facts: FlowFacts, counted: Mapping[TopicPartition, LogFacts]) -> dict[TopicPartition, float | None]:
    """Return the stored bytes a second of each log: by the disks of the brokers, else by the sample of batches."""
    if facts.bytes_basis == LOG_DIRECTORIES:
        return {tp: stored_per_second(log, facts.at_ms) for tp, log in counted.items()}
    stored: dict[TopicPartition, float | None] = {}
    for tp, log in counted.items():
        records, average = records_per_second(log, facts.at_ms), average_record(facts.batches.get(tp[0], ()))
        stored[tp] = 0.0 if not records else None if average is None else records * average
    return stored


def _sent(facts: FlowFacts, received: Mapping[TopicPartition, float | None]) -> LinkTraffic:
    size = _a_day(received.values())
    basis = UNKNOWN if size is None else UNCHANGED
    if (replaced := replaced_codecs(facts)) and received:
        topics = {topic for (topic, _), rate in received.items() if rate != 0.0}
        factors = {topic: growth_factor(facts.batches.get(topic, ()), replaced) for topic in topics}
        if any(factor is None for factor in factors.values()):
            size, basis = _unmeasured(replaced, size)
        elif any(factor != 1.0 for factor in factors.values()):
            sent = {tp: None if rate is None else rate * (factors.get(tp[0]) or 0.0) for tp, rate in received.items()}
            size, basis = _a_day(sent.values()), RECOMPRESSED
    return LinkTraffic(cluster=facts.target.alias, direction="sent", bytes_a_day=size, basis=basis)


def _unmeasured(replaced: Mapping[str, str], size: int | None) -> tuple[int | None, str]:
    """Return the bytes a day, and how they are known, if the batches of a topic were not measured."""
    if set(replaced) <= {UNCOMPRESSED}:
        return size, UNKNOWN if size is None else AT_MOST
    return None, RECOMPRESSED


def replaced_codecs(facts: FlowFacts) -> dict[str, str]:
    """Return the codecs that batches do not keep on the way, each with the one that they get instead.

    The file asks for that, or the target refuses the codec.
    """
    plane, refused = facts.settings.data_plane, refused_codecs(facts.target.product, facts.target.lacks)
    preferred, recompress = plane.compression_type, plane.compression.recompress
    replaced: dict[str, str] = {}
    for codec in CODEC_NAMES:
        becomes = codec
        if preferred is not None and (recompress == "true" or codec == UNCOMPRESSED):
            becomes = preferred
        if becomes in refused and becomes != UNCOMPRESSED and recompress != "never":
            becomes = replace_refused(refused, preferred)
        if becomes != codec:
            replaced[codec] = becomes
    return replaced


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
