"""Checks of the limits of both clusters: sizes, replicas, quotas, timestamps, elections. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import SHOWN, CheckFinding
from lockstep_ops.formatting import count_text, in_bytes, shorten
from lockstep_rules.clusters.client_quotas import CONSUMER, PRODUCER, ClientQuota, effective_quota

MESSAGE_MAX = "message.max.bytes"
UNCLEAN = "unclean.leader.election.enable"
TIMESTAMP_TYPES = ("log.message.timestamp.type", "message.timestamp.type")
LOG_APPEND = "LogAppendTime"

DEFAULT_BATCH_BYTES = 1_048_588
"""`message.max.bytes` of a broker that does not set it."""


@dataclass(frozen=True, slots=True)
class SideLimits:
    """The limits of one cluster.

    `factors` are the replication factors of topics that the flow creates on it, by key. `configs` is None if the
    configs of brokers are not known; `configs_trouble` says why. The same holds for `quotas`. `user` and `client_id`
    are those of the connections that copy records.
    """

    alias: str
    brokers: int
    factors: Mapping[str, int]
    configs: Mapping[str, str] | None
    quotas: tuple[ClientQuota, ...] | None
    user: str = ""
    client_id: str = ""
    configs_trouble: str = ""
    configs_fix: str = ""
    quotas_trouble: str = ""
    quotas_fix: str = ""

    def number(self, key: str) -> int | None:
        """Return the broker config of this name as a number, or None if it is not known."""
        text = (self.configs or {}).get(key, "")
        return int(text) if text.isdigit() else None


@dataclass(frozen=True, slots=True)
class TopicPair:
    """A topic and its copy.

    `copy_bytes` is None if there is no copy yet, or if its configs are not known. With `is_own` the topic sets
    `max.message.bytes` itself, and the copy gets the same value.
    """

    topic: str
    copy: str
    source_bytes: int
    copy_bytes: int | None
    is_own: bool = False
    copy_timestamps: str = ""
    source_timestamps: str = ""


@dataclass(frozen=True, slots=True)
class TopicFault:
    """A fault of a control topic, and the command that repairs it.

    With `ends_work` the flow does not run until that is done.
    """

    sentence: str
    command: str
    ends_work: bool = True


@dataclass(frozen=True, slots=True)
class FlowLimits:
    """The limits of both clusters of one flow.

    `pairs` are those of the `topics` mirrored topics whose configs were read. `request_bytes` is `max.request.size` of
    the file.
    """

    flow: str
    source: SideLimits
    target: SideLimits
    pairs: tuple[TopicPair, ...] = ()
    topics: int = 0
    request_bytes: int | None = None
    control_faults: tuple[TopicFault, ...] = ()
    """The faults of control topics that exist."""
    refused_topics: tuple[str, ...] = ()
    """Sentences about control topics that a cluster would not create."""
    changed_topics: tuple[str, ...] = ()
    """Sentences about control topics that would be created with other configs than wanted."""
    new_topics: int = 0
    """Control topics that are missing."""


def judge_limits(facts: FlowLimits) -> Iterator[CheckFinding]:
    """Yield the findings about one flow, in their order."""
    yield _message_size(facts)
    yield _request_size(facts)
    for side in (facts.source, facts.target):
        if side.factors:
            yield _replication(facts.flow, side)
    yield _quota(facts, facts.source, CONSUMER, "reading from")
    yield _quota(facts, facts.target, PRODUCER, "writing to")
    yield _timestamps(facts)
    for side in (facts.source, facts.target):
        yield _unclean(facts.flow, side)
    yield from _control_topics(facts)
    yield from _new_control_topics(facts)


def _control_topics(facts: FlowLimits) -> Iterator[CheckFinding]:
    check = registry.CONTROL_TOPICS
    for fault in facts.control_faults:
        yield (check.failed if fault.ends_work else check.warning)(facts.flow, fault.sentence, fault.command)
    if not facts.control_faults:
        yield check.ok(facts.flow, "those that exist are as they have to be")


def _new_control_topics(facts: FlowLimits) -> Iterator[CheckFinding]:
    check = registry.NEW_CONTROL_TOPICS
    for sentence in facts.refused_topics:
        yield check.failed(facts.flow, sentence)
    for sentence in facts.changed_topics:
        yield check.ok(facts.flow, sentence)
    if not facts.refused_topics and not facts.changed_topics:
        text = f"{count_text(facts.new_topics, 'topic')} would be created" if facts.new_topics else "all are there"
        yield check.ok(facts.flow, text)


def _message_size(facts: FlowLimits) -> CheckFinding:
    check = registry.MESSAGE_SIZE
    target_max, source_max = facts.target.number(MESSAGE_MAX), facts.source.number(MESSAGE_MAX)
    smaller = [pair for pair in facts.pairs if _copy_limit(pair, target_max) < pair.source_bytes]
    if smaller:
        texts = [
            f"{pair.copy} on {facts.target.alias} takes {in_bytes(int(_copy_limit(pair, target_max)))}, "
            f"{pair.topic} on {facts.source.alias} {in_bytes(pair.source_bytes)}"
            for pair in sorted(smaller, key=lambda pair: pair.copy)
        ]
        return check.warning(facts.flow, shorten(texts, SHOWN, "; "))
    if target_max is not None and source_max is not None and target_max < source_max:
        text = f"{MESSAGE_MAX} is {in_bytes(target_max)} on {facts.target.alias}, and {in_bytes(source_max)} on"
        return check.warning(facts.flow, f"{text} {facts.source.alias}")
    comparable = [pair for pair in facts.pairs if _copy_limit(pair, target_max) < UNLIMITED]
    if target_max is None and len(comparable) < len(facts.pairs):
        without_copy = count_text(len(facts.pairs) - len(comparable), "topic")
        text = f"of {without_copy} without a copy: {facts.target.configs_trouble}"
        return check.unknown(facts.flow, text, facts.target.configs_fix)
    if target_max is None and not comparable:
        return check.unknown(facts.flow, facts.target.configs_trouble, facts.target.configs_fix)
    if source_max is None and not facts.pairs:
        return check.unknown(facts.flow, facts.source.configs_trouble, facts.source.configs_fix)
    compared = f"{len(facts.pairs):,} of " if len(facts.pairs) < facts.topics else ""
    broker = "" if target_max is None else f"{facts.target.alias} takes {in_bytes(target_max)}; "
    return check.ok(facts.flow, f"{broker}compared {compared}{count_text(facts.topics, 'mirrored topic')}")


UNLIMITED = float("inf")


def _copy_limit(pair: TopicPair, broker_bytes: int | None) -> float:
    """Return the largest batch that the copy takes or will take. It is UNLIMITED if that is not known."""
    if pair.copy_bytes is not None:
        return pair.copy_bytes
    if pair.is_own:
        return pair.source_bytes
    return UNLIMITED if broker_bytes is None else broker_bytes


def _request_size(facts: FlowLimits) -> CheckFinding:
    check = registry.REQUEST_SIZE
    if facts.request_bytes is None:
        return check.skipped(facts.flow, "not set; the target's limit counts")
    target_max = facts.target.number(MESSAGE_MAX)
    if target_max is None:
        return check.unknown(facts.flow, facts.target.configs_trouble, facts.target.configs_fix)
    text = f"it is {in_bytes(facts.request_bytes)}, and {facts.target.alias} takes {in_bytes(target_max)}"
    return check.warning(facts.flow, text) if facts.request_bytes > target_max else check.ok(facts.flow, text)


def _replication(flow: str, side: SideLimits) -> CheckFinding:
    check = registry.REPLICATION_FACTOR
    high = {key: factor for key, factor in side.factors.items() if factor > side.brokers}
    brokers = count_text(side.brokers, "broker")
    if high:
        keys = ", ".join(f"{key} is {factor}" for key, factor in high.items())
        text = f"{side.alias} has {brokers}, and {keys}: new topics get {side.brokers}"
        return check.warning(flow, text)
    return check.ok(
        flow, f"{side.alias} has {brokers}, and the largest replication factor is {max(side.factors.values())}"
    )


def _quota(facts: FlowLimits, side: SideLimits, key: str, doing: str) -> CheckFinding:
    check = registry.QUOTAS
    if side.quotas is None:
        return check.unknown(facts.flow, f"{doing} {side.alias}: {side.quotas_trouble}", side.quotas_fix)
    quota_and_rate = effective_quota(side.quotas, side.user, side.client_id, key)
    if quota_and_rate is None:
        return check.ok(facts.flow, f"{doing} {side.alias} has no quota")
    quota, rate = quota_and_rate
    largest = side.number(MESSAGE_MAX) or DEFAULT_BATCH_BYTES
    text = f"{doing} {side.alias}: {key} of {quota.entity} is {in_bytes(int(rate))}/s"
    if rate < largest:
        return check.warning(facts.flow, f"{text}, less than the largest batch ({in_bytes(largest)})")
    return check.ok(facts.flow, text)


def _timestamps(facts: FlowLimits) -> CheckFinding:
    check, target = registry.TIMESTAMPS, facts.target
    redated = [
        pair.copy
        for pair in facts.pairs
        if pair.copy_timestamps == LOG_APPEND and pair.source_timestamps != pair.copy_timestamps
    ]
    if redated:
        text = f"{target.alias} dates the records of {shorten(redated, SHOWN, '; ')}"
        return check.warning(facts.flow, text)
    if target.configs is None:
        if facts.pairs and all(pair.copy_timestamps for pair in facts.pairs):
            return check.ok(facts.flow, "copies keep the timestamps of records")
        return check.unknown(facts.flow, target.configs_trouble, target.configs_fix)
    default = next((target.configs[key] for key in TIMESTAMP_TYPES if target.configs.get(key)), "")
    if default == LOG_APPEND:
        text = f"{target.alias} dates the records of new topics ({TIMESTAMP_TYPES[0]}={LOG_APPEND})"
        return check.warning(facts.flow, text)
    return check.ok(facts.flow, "copies keep the timestamps of records")


def _unclean(flow: str, side: SideLimits) -> CheckFinding:
    check = registry.UNCLEAN_ELECTION
    if side.configs is None or UNCLEAN not in side.configs:
        text = side.configs_trouble or f"no broker of {side.alias} has {UNCLEAN}"
        return check.unknown(flow, text, side.configs_fix)
    if side.configs[UNCLEAN].lower() == "true":
        return check.warning(flow, f"{UNCLEAN} is true on {side.alias}")
    return check.ok(flow, f"off on {side.alias}")
