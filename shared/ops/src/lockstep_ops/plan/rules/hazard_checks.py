"""The functions that find the hazards of a plan. Pure.

Each function gets the facts of a flow and the forecast of its copy. It yields a subject and a sentence for each place.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from lockstep_ops.formatting import count_text, in_time
from lockstep_ops.plan.rules.flow_facts import FlowFacts, TopicFacts
from lockstep_ops.plan.rules.flow_plan import MOVED, CopyForecast
from lockstep_rules.selection_count import GROUP_KEYS, TOPIC_KEYS, count_topics
from lockstep_rules.topic_plan import factor_words, possible_factor
from lockstep_state.names import LONGEST_TOPIC, Flow, progress_topic, state_topic

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
        if len(names) > 1 and not _come_back(facts, remote, names):
            yield remote, f"{' and '.join(sorted(names))} would all be {remote} on {target}"
        if remote in facts.claims and not facts.settings.keeps_names:
            yield remote, f"{facts.claims[remote].flow} writes to {remote} on {target} too"
    lookalikes = defaultdict[str, set[str]](set)
    for name in (*facts.target.names, *sources):
        lookalikes[name.replace(".", "_")].add(name)
    for new in facts.partitions.create:
        others = sorted(lookalikes[new.target.replace(".", "_")] - {new.target})
        if others:
            yield (
                new.target,
                f"{new.target} of {flow} and {', '.join(others)} differ in . and _ alone, and {target} has one of "
                "them only",
            )


def _come_back(facts: FlowFacts, remote: str, names: Collection[str]) -> bool:
    """Return whether one of the topics is copied, and the opposite flow has made all others of that copy.

    These are left out, and no record is missing.
    """
    others = set(names) - facts.selection.topics.keys()
    return len(others) == len(names) - 1 and all(facts.comes_back.get(name) == remote for name in others)


def find_former_names(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics that the flow has copied to another name."""
    for name, former in facts.former_names.items():
        remote = facts.selection.topics[name]
        yield name, f"{name} was copied to {former} on {facts.target.alias}, and would be copied to {remote} now"


def find_fan_in(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics of the target that another flow writes too, by the same name, and groups that both flows move."""
    if not facts.settings.keeps_names:
        return
    flow, source, target = str(facts.settings.flow), facts.source.alias, facts.target.alias
    moved = {group.group for group in facts.groups if group.fate in MOVED}
    shared: dict[str, str] = {}
    for name, remote in facts.selection.topics.items():
        if (claim := facts.claims.get(remote)) is not None:
            differs = "".join(_differences(facts.source.topics.get(name), claim.topic, source, claim.source))
            yield remote, f"{flow} and {claim.flow} write to one log of {remote} on {target}{differs}"
            shared |= dict.fromkeys(moved & claim.groups, claim.flow)
    for group, other_flow in sorted(shared.items()):
        yield (
            group,
            f"group {group} is moved on {target} by {flow} and by {other_flow}: it goes to the earlier place of both, "
            "reads records again, and waits as contested where one of them knows no place",
        )


def _differences(own: TopicFacts | None, other: TopicFacts | None, source: str, other_source: str) -> Iterator[str]:
    """Yield the differences between the topics of two sources, each as the end of a sentence."""
    if own is None or other is None:
        return
    if own.partitions != other.partitions:
        yield f"; it has {count_text(own.partitions, 'partition')} on {source} and {other.partitions} on {other_source}"
    for key in sorted(own.configs.keys() | other.configs.keys()):
        if own.configs.get(key) != other.configs.get(key):
            values = [facts.configs.get(key, "not known") for facts in (own, other)]
            yield f"; {key} is {values[0]} on {source} and {values[1]} on {other_source}"


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
    brokers_by_cluster = {facts.source.alias: facts.source.brokers, facts.target.alias: brokers}
    for topic in facts.control_topics:
        if topic.replication_factor > brokers_by_cluster[topic.alias]:
            yield (
                topic.name,
                f"{topic.name} wants {topic.replication_factor} replicas, {topic.alias} has "
                f"{count_text(brokers_by_cluster[topic.alias], 'broker')}: it gets {brokers_by_cluster[topic.alias]}",
            )


def find_smaller_messages(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics whose records fit on the source and may not fit on the target."""
    creations = {new.source for new in facts.partitions.create}
    changed = {(change.source, change.key): change.after for change in facts.config_changes}
    for name, remote in facts.copied.items():
        source, target = facts.source.topics.get(name), facts.target.topics.get(remote)
        source_max = None if source is None else _number(source.configs.get("max.message.bytes"))
        target_max = facts.target.message_max
        if name in creations and source is not None:
            target_max = _number(source.own.get("max.message.bytes")) or target_max
        elif target is not None:
            target_max = _number(target.configs.get("max.message.bytes")) or target_max
            target_max = _number(changed.get((name, "max.message.bytes"))) or target_max
        if source_max is not None and target_max is not None and target_max < source_max:
            yield name, f"{name} takes {source_max:,} bytes on {facts.source.alias}, {remote} takes {target_max:,}"


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def find_losses(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find partitions of which retention removes records before the copy is there."""
    for topic in copy.topics:
        for partition in topic.partitions:
            if not partition.loses_ms:
                continue
            kept = [] if topic.retention_ms is None else [f"retention.ms is {in_time(topic.retention_ms)}"]
            kept += [] if topic.retention_bytes is None else [f"retention.bytes is {topic.retention_bytes:,}"]
            needs = "never ends" if partition.seconds is None else f"needs {in_time(round(partition.seconds * 1000))}"
            yield (
                f"{topic.topic}-{partition.partition}",
                f"{topic.topic}-{partition.partition} loses {in_time(partition.loses_ms)} "
                f"({count_text(partition.loses_records or 0, 'record')}) at most before the copy gets there: "
                f"{', '.join(kept)}, the copy {needs}",
            )


def find_left_out(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find selected topics whose names make them copies from the target."""
    for name, origin in facts.selection.left_out.items():
        yield name, f"{name}: {origin.rule}"


def groups_with(fate: str) -> Check:
    """Return the check that finds the groups of this fate (`PlannedGroup.fate`)."""

    def find_groups(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
        return ((group.group, f"{group.group}: {group.reason}") for group in facts.groups if group.fate == fate)

    return find_groups


def find_gone(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find partitions that halt when they begin, because their next record is gone."""
    for topic in copy.topics:
        for partition in topic.partitions:
            if partition.gone:
                yield (
                    f"{topic.topic}-{partition.partition}",
                    f"{topic.topic}-{partition.partition} goes on at offset {partition.start:,}, and "
                    f"{facts.source.alias} has lost {count_text(partition.gone, 'offset')} from there on",
                )


def find_unreadable_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find selected topics of which nothing can be said."""
    for topic, reason in facts.unreadable.items():
        yield topic, f"{topic}: {reason}"


def find_endless_copy(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find a flow whose producers are faster than the copy."""
    if copy.growth is not None and copy.growth >= copy.rate and copy.records:
        yield (
            str(facts.settings.flow),
            f"producers add {copy.growth:,} bytes/s to these topics on average, and the copy has {copy.rate:,}",
        )


def find_running_mirror_maker(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find an MM2 that copies the same flow."""
    for mirror_maker in facts.mirror_makers:
        if mirror_maker.members:
            members = count_text(mirror_maker.members, "member")
            yield mirror_maker.group, f"group {mirror_maker.group} on {facts.target.alias} has {members}"


def find_progress_elsewhere(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find progress of MM2 that does not count until it is taken over."""
    for mirror_maker in facts.mirror_makers:
        if not mirror_maker.own and mirror_maker.partitions:
            yield (
                mirror_maker.place,
                f"{mirror_maker.place} on {facts.target.alias} has offsets of "
                f"{count_text(mirror_maker.partitions, 'partition')}; the flow keeps its own elsewhere and does not "
                "read them",
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


def find_refused_topics(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics that a cluster would not create."""
    long = {remote for remote in facts.selection.topics.values() if len(remote) > LONGEST_TOPIC}
    own = {topic.name: topic.alias for topic in facts.control_topics}
    for topic, reason in facts.refused.items():
        if topic in own:
            yield topic, f"{topic} on {own[topic]}, a topic of Lockstep without which the flow does not start: {reason}"
        elif topic not in long:
            yield topic, f"{topic}: {reason}"


def find_refused_configs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find configs of mirrored topics that the target does not take."""
    own = {topic.name for topic in facts.control_topics}
    for remote, refused in facts.refused_configs.items():
        if remote not in own:
            yield remote, f"{remote}: {_refusals(refused)}"


def find_refused_control_configs(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find configs of control topics that a cluster does not take."""
    for topic in facts.control_topics:
        if refused := facts.refused_configs.get(topic.name):
            yield topic.name, f"{topic.name} on {topic.alias} is created without {_refusals(refused)}"


def _refusals(refused: Mapping[str, str]) -> str:
    return "; ".join(f"{key} ({reason})" for key, reason in refused.items())


def find_demanded_factors(facts: FlowFacts, copy: CopyForecast) -> Iterator[Finding]:
    """Find topics for which a cluster takes another replication factor than the wanted one."""
    own = {topic.name: topic.alias for topic in facts.control_topics}
    for topic, factor in facts.factors.items():
        yield topic, f"{topic}: {own.get(topic, facts.target.alias)} takes {factor_words(factor)}"
