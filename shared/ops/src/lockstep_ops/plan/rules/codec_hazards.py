"""The hazards of codecs: batches that the target refuses, or that its brokers compress anew. Pure.

The functions are like those of `hazard_checks.py`.
"""

from collections.abc import Iterator, Sequence

from lockstep_ops.formatting import count_text, shorten
from lockstep_ops.plan.rules.batch_sample import TopicSample, growth_factor, replace_refused
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import CopyForecast
from lockstep_ops.plan.rules.hazard_checks import Finding
from lockstep_rules.clusters.cluster_codecs import refused_codecs
from lockstep_state.kafka.batch_codecs import GZIP, UNCOMPRESSED

COMPRESSION_TYPE = "compression.type"
PRODUCER = "producer"
"""The `compression.type` of topics whose brokers keep the codec of the producer."""
NO_CODEC = "uncompressed"
"""The `compression.type` of topics without compression."""


def find_refused_codecs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find codecs of the source's batches that the target does not take."""
    target, plane = facts.target, facts.settings.data_plane
    refused = refused_codecs(target.product, target.lacks)
    if not refused:
        return
    instead = replace_refused(refused, plane.compression_type)
    for codec, reason in refused.items():
        topics = [name for name in facts.copied if any(part.codec == codec for part in facts.batches.get(name, ()))]
        if not topics:
            continue
        batches = f"{shorten(topics)} {'has' if len(topics) == 1 else 'have'} batches in {codec}"
        refusal = f"{batches}, which {target.alias} ({target.product}) does not take ({reason})"
        if plane.compression.recompress == "never":
            yield codec, f"{refusal}: their partitions halt, as lockstep.recompress is never"
            continue
        samples = [part for name in topics for part in facts.batches[name] if part.codec == codec]
        cost = _cost(tuple(samples), {codec: instead})
        if instead == UNCOMPRESSED and GZIP in refused and codec != GZIP:
            cost += f". With gzip, where the tier takes it: {_cost(tuple(samples), {codec: GZIP})}"
        yield codec, f"{refusal}. They are compressed anew with {instead}: {cost}"
    unread = [name for name in facts.copied if name not in facts.batches and _has_records(facts, name)]
    if unread:
        named = f"{target.alias} ({target.product}) does not take {', '.join(sorted(refused))}"
        yield target.alias, f"{named}, and {_unread(unread)}"


def find_broker_codecs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find copies whose `compression.type` makes the target's brokers compress batches anew."""
    unread: list[str] = []
    for name, remote in facts.copied.items():
        kind = _compression_type(facts, name, remote)
        if kind in ("", PRODUCER):
            continue
        codec = UNCOMPRESSED if kind == NO_CODEC else kind
        sample = facts.batches.get(name)
        if sample is None:
            unread += [name] if _has_records(facts, name) else []
            continue
        others = sorted({part.codec for part in sample} - {codec})
        if others:
            cost = _cost(sample, dict.fromkeys(others, codec))
            setting = f"{remote}: compression.type is {kind} on {facts.target.alias}"
            yield remote, f"{setting}, so its brokers compress batches in {', '.join(others)} anew: {cost}"
    if unread:
        yield facts.target.alias, f"Copies on {facts.target.alias} have a compression.type, and {_unread(unread)}"


def _compression_type(facts: FlowFacts, name: str, remote: str) -> str:
    """Return the `compression.type` that is set on a copy, or would be; "" if none is."""
    copy, source = facts.target.topics.get(remote), facts.source.topics.get(name)
    for change in facts.config_changes:
        if (change.target, change.key) == (remote, COMPRESSION_TYPE):
            return change.after or ""
    if copy is not None:
        return copy.own.get(COMPRESSION_TYPE, "")
    is_refused = COMPRESSION_TYPE in facts.refused_configs.get(remote, {})
    return "" if source is None or is_refused else source.own.get(COMPRESSION_TYPE, "")


def _unread(topics: Sequence[str]) -> str:
    number = count_text(len(topics), "topic")
    return f"the codecs of {number} are not known, as none of their batches was read: {shorten(topics)}"


def _has_records(facts: FlowFacts, name: str) -> bool:
    return any(log.end > log.begin for (topic, _), log in facts.logs.items() if topic == name)


def _cost(sample: TopicSample, codecs: dict[str, str]) -> str:
    factor = growth_factor(sample, codecs)
    if factor is None:
        return "how large they become is not known, as their records could not be read"
    return f"about {factor:.0%} of their bytes, by a sample"
