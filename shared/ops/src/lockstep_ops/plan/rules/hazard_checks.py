"""The functions that find the hazards of a plan, except those of `cluster_hazards`. Pure.

Each function gets the facts of a flow and the forecast of its copy. It yields a subject and a sentence for each place.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from lockstep_config.text.values import LONGEST_TOPIC
from lockstep_ops.formatting import count_text, in_time
from lockstep_ops.plan.rules.flow_facts import FlowFacts, TopicFacts
from lockstep_ops.plan.rules.flow_plan import MOVED, CopyForecast
from lockstep_rules.policy import HEARTBEATS
from lockstep_rules.selection_count import GROUP_KEYS, TOPIC_KEYS, count_topics
from lockstep_rules.topic_plan import possible_factor
from lockstep_state.names import Flow, progress_topic, state_topic

Finding = tuple[str, str]
Check = Callable[[FlowFacts, CopyForecast], Iterator[Finding]]


def find_cycle(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find another deployment that already feeds the source from the target, while topics keep their names."""
    flow, settings = facts.settings.flow, facts.settings
    if not settings.keeps_names or facts.opposite or facts.one_cluster:
        return
    back = Flow(settings.aliases.target, settings.aliases.source)
    signs = {state_topic(back): "Lockstep", progress_topic(back): "MirrorMaker 2"}
    for topic, program in signs.items():
        if topic in facts.source.names:
            yield (
                str(flow),
                f"{topic} on {flow.source} is that of {program} for {back}: records would go round between both",
            )


def find_one_cluster(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find aliases that lead to one cluster."""
    if facts.one_cluster:
        a, b = facts.source, facts.target
        yield str(facts.settings.flow), f"{a.alias} at {a.bootstrap} and {b.alias} at {b.bootstrap} are {a.cluster_id}"


def find_foreign_data(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find remote topics with records that neither Lockstep nor MM2 is known to have copied."""
    if facts.settings.keeps_names and facts.opposite:
        return  # both sides write to topics of these names
    for remote, records in facts.unaccounted.items():
        yield (
            remote,
            f"{remote} on {facts.target.alias} has {count_text(records, 'record')}, and no progress of this flow is "
            "known: the copy is appended behind them",
        )


def find_unfit_control_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find control topics that exist and do not keep, or do not take, their records."""
    for topic, sentence, command in facts.control_faults:
        yield topic, f"{sentence}. {command}"


def find_collisions(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics that get one name on the target, or names that Kafka takes for one."""
    target, flow = facts.target.alias, facts.settings.flow
    sources = defaultdict[str, list[str]](list)
    for name, remote in facts.selection.topics.items():
        sources[remote].append(name)
    for remote, names in {**sources, **facts.selection.collisions}.items():
        if len(names) > 1:
            yield remote, f"{' and '.join(sorted(names))} would all be {remote} on {target}"
        if remote in facts.claims and not facts.settings.keeps_names:
            yield remote, f"{facts.claims[remote].flow} writes to {remote} on {target} too"
    there = defaultdict[str, set[str]](set)
    for name in (*facts.target.names, *sources):
        there[name.replace(".", "_")].add(name)
    for new in facts.partitions.create:
        others = sorted(there[new.target.replace(".", "_")] - {new.target})
        if others:
            yield (
                new.target,
                f"{new.target} of {flow} and {', '.join(others)} differ in . and _ alone, and {target} has one of "
                "them only",
            )


def find_fan_in(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics of the target that another flow writes too, by the same name, and groups that both flows move."""
    if not facts.settings.keeps_names:
        return
    flow, source, target = str(facts.settings.flow), facts.source.alias, facts.target.alias
    ours = {group.group for group in facts.groups if group.fate in MOVED}
    shared: dict[str, str] = {}
    for name, remote in facts.selection.topics.items():
        if (claim := facts.claims.get(remote)) is not None:
            differs = "".join(_differences(facts.source.topics.get(name), claim.topic, source, claim.source))
            yield remote, f"{flow} and {claim.flow} write to one log of {remote} on {target}{differs}"
            shared |= dict.fromkeys(ours & claim.groups, claim.flow)
    for group, other in sorted(shared.items()):
        yield (
            group,
            f"group {group} is moved on {target} by {flow} and by {other}: it goes to the earlier place of both, reads "
            "records again, and waits as contested where one of them knows no place",
        )


def _differences(ours: TopicFacts | None, theirs: TopicFacts | None, source: str, other: str) -> Iterator[str]:
    """Yield the differences between the topics of two sources, each as the end of a sentence."""
    if ours is None or theirs is None:
        return
    if ours.partitions != theirs.partitions:
        yield f"; it has {count_text(ours.partitions, 'partition')} on {source} and {theirs.partitions} on {other}"
    for key in sorted(ours.configs.keys() | theirs.configs.keys()):
        if ours.configs.get(key) != theirs.configs.get(key):
            values = [facts.configs.get(key, "not known") for facts in (ours, theirs)]
            yield f"; {key} is {values[0]} on {source} and {values[1]} on {other}"


def find_long_names(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics whose names on the target are longer than Kafka permits."""
    for name, remote in facts.selection.topics.items():
        if len(remote) > LONGEST_TOPIC:
            yield name, f"{name} would have {len(remote)} characters on {facts.target.alias}"


def find_few_brokers(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find new topics that get fewer replicas than asked for."""
    wanted, brokers = facts.settings.topic_sync.replication_factor, facts.target.brokers
    if facts.partitions.create and wanted > brokers:
        yield (
            facts.target.alias,
            f"replication.factor is {wanted}, {facts.target.alias} has {count_text(brokers, 'broker')}: new topics get "
            f"{brokers}",
        )
    have = {facts.source.alias: facts.source.brokers, facts.target.alias: brokers}
    for one in facts.control_topics:
        if one.replication_factor > have[one.alias]:
            yield (
                one.name,
                f"{one.name} wants {one.replication_factor} replicas, {one.alias} has "
                f"{count_text(have[one.alias], 'broker')}: it gets {have[one.alias]}",
            )


def find_smaller_messages(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics whose records fit on the source and may not fit on the target."""
    creations = {new.source for new in facts.partitions.create}
    changed = {(one.source, one.key): one.after for one in facts.config_changes}
    for name, remote in facts.copied.items():
        source, target = facts.source.topics.get(name), facts.target.topics.get(remote)
        ours = None if source is None else _number(source.configs.get("max.message.bytes"))
        theirs = facts.target.message_max
        if name in creations and source is not None:
            theirs = _number(source.own.get("max.message.bytes")) or theirs
        elif target is not None:
            theirs = _number(target.configs.get("max.message.bytes")) or theirs
            theirs = _number(changed.get((name, "max.message.bytes"))) or theirs
        if ours is not None and theirs is not None and theirs < ours:
            yield name, f"{name} takes {ours:,} bytes on {facts.source.alias}, {remote} takes {theirs:,}"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def find_losses(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find partitions of which retention removes records before the copy is there."""
    for topic in copy.topics:
        for one in topic.partitions:
            if not one.loses_ms:
                continue
            kept = [] if topic.retention_ms is None else [f"retention.ms is {in_time(topic.retention_ms)}"]
            kept += [] if topic.retention_bytes is None else [f"retention.bytes is {topic.retention_bytes:,}"]
            needs = "never ends" if one.seconds is None else f"needs {in_time(round(one.seconds * 1000))}"
            yield (
                f"{topic.topic}-{one.partition}",
                f"{topic.topic}-{one.partition} loses {in_time(one.loses_ms)} "
                f"({count_text(one.loses_records or 0, 'record')}) at most before the copy gets there: "
                f"{', '.join(kept)}, the copy {needs}",
            )


def find_left_out(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find selected topics whose names make them copies from the target."""
    for name, why in facts.selection.left_out.items():
        yield name, f"{name}: {why.rule}"


def find_active_groups(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find groups with members on the target."""
    yield from _groups(facts, "active")


def find_other_protocols(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find share groups and Streams groups."""
    yield from _groups(facts, "other-protocol")


def find_excluded_groups(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find groups that read mirrored topics, and that the filter leaves out."""
    yield from _groups(facts, "excluded")


def find_unreadable_groups(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find groups whose offsets we may not read."""
    yield from _groups(facts, "unreadable")


def _groups(facts: FlowFacts, fate: str) -> Iterator[Finding]:
    return ((one.group, f"{one.group}: {one.reason}") for one in facts.groups if one.fate == fate)


def find_rebuilt(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics whose batches cannot pass as they are."""
    for topic in copy.topics:
        known = facts.source.topics.get(topic.topic)
        if known is None or not topic.records or topic.topic == HEARTBEATS:
            continue
        reasons = []
        if "compact" in known.configs.get("cleanup.policy", ""):
            reasons.append("cleanup.policy has compact")
        if known.configs.get("message.timestamp.type") == "LogAppendTime":
            reasons.append("message.timestamp.type is LogAppendTime")
        if reasons:
            yield topic.topic, f"{topic.topic}: {' and '.join(reasons)}"


def find_gone(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find partitions that halt when they begin, because their next record is gone."""
    for topic in copy.topics:
        for one in topic.partitions:
            if one.gone:
                yield (
                    f"{topic.topic}-{one.partition}",
                    f"{topic.topic}-{one.partition} goes on at offset {one.start:,}, and {facts.source.alias} has lost "
                    f"{count_text(one.gone, 'offset')} from there on",
                )


def find_unreadable_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find selected topics of which nothing can be said."""
    for topic, why in facts.unreadable.items():
        yield topic, f"{topic}: {why}"


def find_endless_copy(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find a flow whose producers are faster than the copy."""
    if copy.growth is not None and copy.growth >= copy.rate and copy.records:
        yield (
            str(facts.settings.flow),
            f"producers add {copy.growth:,} bytes/s to these topics on average, and the copy has {copy.rate:,}",
        )


def find_running_mirror_maker(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find an MM2 that copies the same flow."""
    for one in facts.mirror_makers:
        if one.members:
            yield one.group, f"group {one.group} on {facts.target.alias} has {count_text(one.members, 'member')}"


def find_progress_elsewhere(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find progress of MM2 that does not count until it is taken over."""
    for one in facts.mirror_makers:
        if not one.own and one.partitions:
            yield (
                one.place,
                f"{one.place} on {facts.target.alias} has offsets of {count_text(one.partitions, 'partition')}; the "
                "flow keeps its own elsewhere and does not read them",
            )


def find_empty_selections(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find selections that select none of the existing topics or groups."""
    settings, source = facts.settings, facts.source
    if settings.enabled and settings.data_plane.enabled:
        topics = count_topics(source.names, settings.topics, settings.policy)
        if topics.is_nothing:
            yield "topics", topics.sentence("topics", source.alias, TOPIC_KEYS)
    if facts.group_count.is_nothing:
        yield "groups", facts.group_count.sentence("groups", source.alias, GROUP_KEYS)


def find_few_replicas(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find copies with fewer replicas than have to be in sync."""
    brokers = facts.target.brokers
    factor = possible_factor(facts.settings.topic_sync.replication_factor, brokers)
    creations = {new.source for new in facts.partitions.create}
    for name, remote in facts.copied.items():
        source, target = facts.source.topics.get(name), facts.target.topics.get(remote)
        replicas = factor if name in creations else 0 if target is None else target.replicas
        least = facts.target.min_insync
        if name in creations and source is not None:
            least = _number(source.own.get("min.insync.replicas")) or least
        elif target is not None:
            least = _number(target.configs.get("min.insync.replicas")) or least
        if least is not None and 0 < replicas < least:
            yield (
                remote,
                f"{remote} on {facts.target.alias} has {count_text(replicas, 'replica')}, and min.insync.replicas is "
                f"{least}",
            )
