"""The changes that the services of a flow would make, in the order in which they are shown. Pure."""

from collections.abc import Iterator

from lockstep_ops.formatting import count_text
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import (
    ACL,
    ALTER,
    CONFIG,
    CONTROL_TOPIC,
    CREATE,
    DELETE,
    GROUP,
    PARTITIONS,
    SIGNS,
    TOPIC,
    PlannedChange,
)
from lockstep_rules.topic_plan import possible_factor


def planned_changes(facts: FlowFacts) -> tuple[PlannedChange, ...]:
    """Return the changes of topics, partitions, configs, ACLs, groups, and control topics.

    What the target would refuse is left out: that is a hazard.
    """
    return (*_topics(facts), *_configs(facts), *_acls(facts), *_groups(facts), *_control_topics(facts))


def change_text(change: PlannedChange) -> str:
    """Return a change as a line with its sign.

    An example is `+ topic A.orders on B: 3 partitions, replication factor 2, from orders`.
    """
    return f"{SIGNS[change.action]} {change.kind} {change.name} on {change.cluster}{_detail(change)}"


def _detail(change: PlannedChange) -> str:
    match change.kind:
        case "topic" | "control-topic":
            configs = [f"{key}={value}" for key, value in sorted(change.configs.items())]
            factor = f"replication factor {change.replication_factor}"
            if change.replication_factor < 0:
                factor = "the brokers' replication factor"
            came = [f"from {change.source}"] if change.source else []
            return ": " + ", ".join([count_text(change.partitions, "partition"), factor, *configs, *came])
        case "partitions":
            return f": {change.before} -> {change.after}, as {change.source} has"
        case "config":
            before = "unset" if change.before is None else change.before
            after = "the brokers' default" if change.after is None else change.after
            return f": {change.key} {before} -> {after}, as {change.source} has"
        case "group":
            return ": with its offsets, translated"
    return ""


def _topics(facts: FlowFacts) -> Iterator[PlannedChange]:
    target, wanted = facts.target, facts.settings.topic_sync.replication_factor
    for new in facts.partitions.create:
        if new.target not in facts.refused and new.source not in facts.unreadable:
            source_topic = facts.source.topics.get(new.source)
            own = {} if source_topic is None else source_topic.own
            refused = facts.refused_configs.get(new.target, {})
            yield PlannedChange(
                action=CREATE,
                kind=TOPIC,
                cluster=target.alias,
                name=new.target,
                source=new.source,
                partitions=new.partitions,
                replication_factor=facts.factors.get(new.target, possible_factor(wanted, target.brokers)),
                configs={key: value for key, value in own.items() if key not in refused},
            )
    for grown in facts.partitions.grow:
        yield PlannedChange(
            action=ALTER,
            kind=PARTITIONS,
            cluster=target.alias,
            name=grown.target,
            source=grown.source,
            before=str(grown.before),
            after=str(grown.total),
            partitions=grown.total,
        )


def _configs(facts: FlowFacts) -> Iterator[PlannedChange]:
    for change in facts.config_changes:
        yield PlannedChange(
            action=ALTER,
            kind=CONFIG,
            cluster=facts.target.alias,
            name=change.target,
            source=change.source,
            key=change.key,
            before=change.before,
            after=change.after,
        )


def _acls(facts: FlowFacts) -> Iterator[PlannedChange]:
    alias = facts.target.alias
    for binding in facts.acls.missing:
        yield PlannedChange(action=CREATE, kind=ACL, cluster=alias, name=str(binding), after=str(binding))
    for binding in facts.acls.taken_back:
        yield PlannedChange(action=DELETE, kind=ACL, cluster=alias, name=str(binding), before=str(binding))


def _groups(facts: FlowFacts) -> Iterator[PlannedChange]:
    for group in facts.groups:
        if group.fate == CREATE:
            yield PlannedChange(action=CREATE, kind=GROUP, cluster=facts.target.alias, name=group.group)


def _control_topics(facts: FlowFacts) -> Iterator[PlannedChange]:
    brokers = {facts.source.alias: facts.source.brokers, facts.target.alias: facts.target.brokers}
    for topic in facts.control_topics:
        if topic.name in facts.refused:
            continue
        factor = possible_factor(topic.replication_factor, brokers[topic.alias])
        yield PlannedChange(
            action=CREATE,
            kind=CONTROL_TOPIC,
            cluster=topic.alias,
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=facts.factors.get(topic.name, factor),
            configs=dict(topic.configs),
        )
