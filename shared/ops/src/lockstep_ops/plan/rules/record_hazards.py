"""The hazards of what a flow does to records: delays, rules, transforms, and batches that are rebuilt. Pure.

The functions are like those of `hazard_checks.py`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lockstep_config.flow.transform_settings import SeveralTransforms, TransformSettings
from lockstep_ops.formatting import in_time
from lockstep_ops.plan.rules.copy_forecast import retention_of
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import CopyForecast, TopicForecast
from lockstep_ops.plan.rules.hazard_checks import Finding
from lockstep_ops.plan.rules.log_growth import stored_per_second
from lockstep_rules.policy import HEARTBEATS
from lockstep_rules.statement_outline import assigned_columns, filters_records

LEAST_ROOM_MS = 3_600_000
"""The time that retention has to keep records of a delayed topic beyond the delay, at least. It is also the delay."""


def find_short_retention(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find delayed topics whose records, or whose tombstones, the source keeps for little longer than the delay."""
    for topic in copy.topics:
        delay_ms = facts.settings.delay_ms(topic.topic)
        for limit in _limits(facts, topic) if delay_ms else ():
            room_ms = limit.kept_ms - delay_ms
            if room_ms < max(LEAST_ROOM_MS, delay_ms):
                room = f"{in_time(room_ms)} are left" if room_ms > 0 else f"{limit.deleted} are deleted {limit.moment}"
                yield topic.topic, f"{topic.topic}: {limit.text}, lockstep.delay is {in_time(delay_ms)}: {room}"


class _Limit(NamedTuple):
    """A limit of retention in words, the milliseconds for which it keeps records, and what is deleted when.

    The latter is said if it is too short.
    """

    text: str
    kept_ms: int
    deleted: str = "records"
    moment: str = "before they are due"


def _limits(facts: FlowFacts, topic: TopicForecast) -> Iterator[_Limit]:
    """Yield each limit of the retention of a topic and of its copy, which goes by the records' timestamps."""
    if topic.retention_ms is not None:
        yield _Limit(f"retention.ms is {in_time(topic.retention_ms)}", topic.retention_ms)
    source_topic = facts.source.topics.get(topic.topic)
    configs = {} if source_topic is None else source_topic.configs
    if "compact" in configs.get("cleanup.policy", "") and (kept := configs.get("delete.retention.ms")):
        yield _Limit(f"delete.retention.ms is {in_time(int(kept))}", int(kept), "tombstones")
    kept_ms, _ = retention_of(facts.target.topics.get(topic.remote))
    is_set_anew = any((each.target, each.key) == (topic.remote, "retention.ms") for each in facts.config_changes)
    if kept_ms is not None and kept_ms != topic.retention_ms and not is_set_anew:
        yield _Limit(f"retention.ms of its copy is {in_time(kept_ms)}", kept_ms, "records", "when they come")
    if topic.retention_bytes is None:
        return
    logs = [facts.logs.get((topic.topic, partition.partition)) for partition in topic.partitions]
    rates = [stored_per_second(log, facts.at_ms) for log in logs if log is not None]
    fastest = max((rate for rate in rates if rate), default=0.0)
    if fastest:
        kept_ms = round(topic.retention_bytes * 1000 / fastest)
        yield _Limit(f"retention.bytes is {topic.retention_bytes:,}, which is {in_time(kept_ms)} of its log", kept_ms)


def find_rebuilt(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics whose batches cannot pass as they are."""
    for topic in copy.topics:
        source_topic = facts.source.topics.get(topic.topic)
        if source_topic is None or not topic.records or topic.topic == HEARTBEATS:
            continue
        reasons = []
        if "compact" in source_topic.configs.get("cleanup.policy", ""):
            reasons.append("cleanup.policy has compact")
        if source_topic.configs.get("message.timestamp.type") == "LogAppendTime":
            reasons.append("message.timestamp.type is LogAppendTime")
        if facts.settings.record_rules(topic.topic) is not None:
            reasons.append("lockstep.filter or lockstep.headers holds for it")
        if (transform := _transform_of(facts, topic.topic)) is not None:
            reasons.append(f"the transform {transform.name} makes its records anew")
        if reasons:
            yield topic.topic, f"{topic.topic}: {' and '.join(reasons)}"


def find_filtered_compacted(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find compacted topics of which some records are dropped, and thus the newest value of a key or its deletion."""
    for topic in copy.topics:
        lost = _lost_records(facts, topic.topic)
        if not lost:
            continue
        names = ((facts.source, topic.topic), (facts.target, facts.settings.remote_topic(topic.topic)))
        present = (cluster.topics[name] for cluster, name in names if name in cluster.topics)
        if any("compact" in topic.configs.get("cleanup.policy", "") for topic in present):
            yield topic.topic, f"{topic.topic} is compacted, and {lost}"


def _lost_records(facts: FlowFacts, topic: str) -> str:
    """Return what rules or a transform may drop of a topic, as a phrase; "": nothing."""
    rules = facts.settings.record_rules(topic)
    if rules is not None and rules.drops_records:
        return f"its rules may drop {'tombstones' if rules.drops_tombstones else 'records, but no tombstones'}"
    transform = _transform_of(facts, topic)
    if (
        transform is None
        or transform.filtered == "tombstone"
        or not (transform.python or filters_records(transform.sql))
    ):
        return ""
    filtered = "records, but no tombstones" if transform.tombstones == "pass" else "tombstones"
    return f"its transform {transform.name}{', a function,' if transform.python else ''} may drop {filtered}"


def find_transformed_identity(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics whose records get another key or another timestamp from a transform."""
    for topic in copy.topics:
        if (transform := _transform_of(facts, topic.topic)) is None:
            continue
        if transform.python:
            yield (
                topic.topic,
                f"{topic.topic}: the transform {transform.name}, a function, may make key or timestamp anew",
            )
        elif made := assigned_columns(transform.sql) & {"key", "timestamp"}:
            names = " and ".join(sorted(made))
            yield topic.topic, f"{topic.topic}: the transform {transform.name} makes {names} anew"


def _transform_of(facts: FlowFacts, topic: str) -> TransformSettings | None:
    """Return the transform of a topic; None: it has none, or nobody can say which one it has."""
    try:
        return facts.settings.data_plane.transform_of(topic)
    except SeveralTransforms:
        return None


def find_disputed_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics that more than one transform selects, or a transform and rules for filters or headers."""
    for topic in facts.selection.topics:
        if dispute := facts.settings.transform_dispute(topic):
            yield topic, f"{topic}: {dispute}"
