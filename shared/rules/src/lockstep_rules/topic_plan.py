"""The plan of topic-sync, by the topics of both clusters (`mm2-behaviour.md` §2.3, §4.2, §4.3, §4.5). Pure.

Nothing is ever deleted on the target: not topics, not partitions, not configs that the filter excludes. A topic with
more partitions than its source keeps them. Everything that exists already is left out, so the usual plan is empty.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lockstep_rules.filters import ConfigPropertyFilter, Names, passes_selection
from lockstep_rules.policy import (
    DefaultReplicationPolicy,
    ReplicationPolicy,
    keeps_names,
    visited_clusters,
    without_renames,
)
from lockstep_state.names import LOCKSTEP_PREFIX, Flow, is_topic_name
from lockstep_state.rows.state_rows import MirroredTopic
from lockstep_state.topic_config import TopicConfig

RENAME_KEY = "lockstep.rename"

MESSAGE_FORMAT_CONFIGS = frozenset({"message.format.version"})
"""Configs that are never copied, unlike in MM2 (brokers before 4.0 have them). All copies are of format 2, and a topic
of an older format takes no idempotent appends."""

_Visited: TypeAlias = Sequence[tuple[str, str | None]]
"""The clusters that a topic has been on, each with its name there (`visited_clusters`)."""
_Listings: TypeAlias = Mapping[str, Collection[str] | None]
"""The topics of each cluster by its alias; None: unknown."""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings that decide which topics are mirrored, and how.

    With `same_cluster` both aliases lead to one cluster (their cluster ids are equal). `flow` has the aliases that
    names are made of.
    """

    flow: Flow
    policy: ReplicationPolicy
    topics: Names
    config_properties: ConfigPropertyFilter
    replication_factor: int = 2
    heartbeats_replicated: bool = True
    cycle_by_source: bool = False
    """See `visited_clusters`."""
    cycles_exact: bool = False
    """A name alone makes no copy: the topic that it names has to exist (`lockstep.cycles=exact`)."""
    same_cluster: bool = False
    aliases: frozenset[str] = frozenset()
    """The aliases of all clusters of the file. Heartbeats may have come from any of them."""


@dataclass(frozen=True, slots=True)
class Create:
    """A missing remote topic. Its configs are decided once the source's are read (`creation_configs`)."""

    source: str
    target: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Grow:
    """A remote topic with fewer partitions than its source topic."""

    source: str
    target: str
    before: int
    total: int


@dataclass(frozen=True, slots=True)
class Alter:
    """Configs of a remote topic that differ: a value to set, or None to delete the override."""

    source: str
    target: str
    changes: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicSyncPlan:
    """The topics to create and to grow, in the order of the source names."""

    create: tuple[Create, ...] = ()
    grow: tuple[Grow, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOutTopic:
    """The rule by which a selected topic is not mirrored.

    `original` is the topic of the other cluster that it is a copy of; "" if none was found.
    """

    rule: str
    original: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """The source's topics that the filters select."""

    topics: Mapping[str, str]
    """Mirrored topics: source name to target name, sorted."""
    left_out: Mapping[str, LeftOutTopic] = field(default_factory=dict)
    """Topics that are not mirrored, because their names say that they are copies from the target."""
    collisions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names on the target that a rename gives to several topics of the source, each with these topics, sorted."""
    no_copies: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Topics of both that have the name of a copy although no original exists, with the names that the original would
    have on the target."""


def select_topics(
    rules: TopicRules,
    names: Iterable[str],
    *,
    target: Collection[str] | None = None,
    copies: Mapping[str, str] | None = None,
    own: Collection[str] | None = None,
    owners: Mapping[str, str] | None = None,
) -> Selection:
    """Return the selection among the source's topics.

    Of several topics that a rename gives one name, only the one that is copied there already is selected. That holds
    too once the source has that one no more, until the target's topic is deleted.

    Args:
        rules: The settings.
        names: The topics of the source.
        target: The topics of the target; None: unknown, so that each name counts.
        copies: With `cycles_exact`, topics that are known to be copies, each with its original, which may be deleted.
        own: With `cycles_exact`, topics that are known to be no copies. None: all of `no_copies`.
        owners: `name_owners` of the rows.
    """
    topics: dict[str, str] = {}
    left_out: dict[str, LeftOutTopic] = {}
    no_copies: dict[str, frozenset[str]] = {}
    source, copies, exact = frozenset(names), copies or {}, rules.cycles_exact and not rules.same_cluster
    listings = {rules.flow.source: source, rules.flow.target: source if rules.same_cluster else target}
    for name in sorted(source):
        if not passes_selection(
            name,
            rules.topics,
            rules.policy,
            rules.flow,
            heartbeats_replicated=rules.heartbeats_replicated,
            one_cluster=rules.same_cluster,
        ):
            continue
        visited = tuple(
            visited_clusters(
                rules.policy, name, rules.flow, also_source=rules.cycle_by_source, one_cluster=rules.same_cluster
            )
        )
        original = copies.get(name, "") or _find_original(visited, listings)
        if visited and not original and _is_listed_wholly(visited, listings):
            no_copies[name] = frozenset(
                upstream for alias, upstream in visited if upstream and alias == rules.flow.target
            )
        is_own = own is not None and name in own and name not in copies
        if not visited or (exact and (is_own or (own is None and name in no_copies))):
            topics[name] = rules.policy.format_remote_topic(rules.flow.source, name)
        elif not rules.policy.is_heartbeats_topic(name):
            left_out[name] = LeftOutTopic(_cycle_note(rules, *visited[0], is_copy=name not in no_copies), original)
    return _with_rename_rules(rules, Selection(topics, left_out, no_copies=no_copies), target, owners or {})


def _find_original(visited: _Visited, listings: _Listings) -> str:
    """Return the topic that a copy was made of, by the listings of both clusters; "" if none has it."""
    for alias, upstream in visited:
        if upstream is not None and upstream in (listings[alias] or ()):
            return upstream
    return ""


def _is_listed_wholly(visited: _Visited, listings: _Listings) -> bool:
    """Return whether the original's name and the topics of its cluster are known for each visited cluster."""
    return all(upstream is not None and listings[alias] is not None for alias, upstream in visited)


def _with_rename_rules(
    rules: TopicRules, selection: Selection, target: Collection[str] | None, owners: Mapping[str, str]
) -> Selection:
    """Return the selection without topics whose new name is reserved, or is that of another topic as well."""
    policy, topics = rules.policy, selection.topics
    if not isinstance(policy, DefaultReplicationPolicy) or not policy.renames:
        return selection
    collisions = _collisions(topics)
    left_out = {**selection.left_out, **_left_out_by_renames(rules, policy, topics, collisions, target, owners)}
    kept = {name: remote for name, remote in topics.items() if name not in left_out}
    return Selection(kept, left_out, collisions, selection.no_copies)


def _left_out_by_renames(
    rules: TopicRules,
    policy: DefaultReplicationPolicy,
    topics: Mapping[str, str],
    collisions: Mapping[str, tuple[str, ...]],
    target: Collection[str] | None,
    owners: Mapping[str, str],
) -> dict[str, LeftOutTopic]:
    """Return the topics that are left out because of their names on the target."""
    copies_on_source = {remote for name, remote in topics.items() if remote != name} | owners.keys()
    left_out: dict[str, str] = {}
    for name, remote in topics.items():
        owner = owners.get(remote)
        is_renamed = remote != name and policy.is_renamed(rules.flow.source, name)
        if is_renamed and not is_topic_name(remote):
            left_out[name] = f"makes it {remote!r}, which no topic may be called"
        elif is_renamed and _is_reserved(policy, remote):
            left_out[name] = f"makes it {remote}, which is no name for a copy"
        elif remote in collisions and owner != name:
            others = " and ".join(sorted({*collisions[remote]} - {name}))
            left_out[name] = f"makes it {remote}, and {others} as well" if is_renamed else f"gives {others} its name"
        elif owner not in (name, None) and (target is None or remote in target):
            does = "makes" if is_renamed else "leaves"
            left_out[name] = f"{does} it {remote}, which has the records of {owner}"
        elif rules.same_cluster and name in copies_on_source:
            left_out[name] = "has made it: it is a copy on the same cluster"
    return {name: LeftOutTopic(f"{RENAME_KEY} {rule}") for name, rule in left_out.items()}


NOT_COPIED = ("failed", "creating")
"""Phases of topics whose copy does not exist yet, as far as topic-sync knows."""


def copy_owners(rows: Iterable[MirroredTopic]) -> Mapping[str, str]:
    """Return the copies on the target, each with the topic of the source whose records it has, by topic-sync's rows.

    A row stays if its topic is deleted on the source or no longer selected.
    """
    return name_owners(row for row in rows if row.phase not in NOT_COPIED)


def name_owners(rows: Iterable[MirroredTopic]) -> Mapping[str, str]:
    """Return the names on the target that belong to a topic of the source, each with that topic.

    These are the copies, names whose copy is being created or could not be created yet, and names of before a rename
    was changed. If a request failed or topic-sync was killed, the copy may exist all the same.
    """
    owners: dict[str, str] = {}
    rows = list(rows)
    for row in rows:
        owners |= dict.fromkeys(row.earlier_names, row.source_topic)
    ranks = {**dict.fromkeys(NOT_COPIED, 0), "mirrored": 2}
    named = sorted((row for row in rows if row.target_topic), key=lambda row: ranks.get(row.phase, 1))
    return owners | {row.target_topic: row.source_topic for row in named}


def _collisions(topics: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    sources: dict[str, list[str]] = {}
    for name, remote in topics.items():
        sources.setdefault(remote, []).append(name)
    return {remote: tuple(sorted(names)) for remote, names in sources.items() if len(names) > 1}


def _is_reserved(policy: ReplicationPolicy, remote: str) -> bool:
    """Return whether the target's topic of this name belongs to Kafka, MM2 or Lockstep."""
    return remote.startswith(LOCKSTEP_PREFIX) or policy.is_internal_topic(remote) or policy.is_heartbeats_topic(remote)


def _cycle_note(rules: TopicRules, alias: str, upstream: str | None, *, is_copy: bool) -> str:
    original = "a topic" if upstream is None else upstream
    note = f"its name says that it is a copy of {original} of {alias} (cycle detection, as in MirrorMaker)"
    if not is_copy:
        note += f", but {alias} has no such topic: lockstep.cycles=exact mirrors it"
    return note


def heartbeats_note(rules: TopicRules, name: str, remote: str) -> str:
    """Return the note about a user's topic that MM2 takes for heartbeats by its name; "" for any other."""
    policy = rules.policy
    if not isinstance(policy, DefaultReplicationPolicy) or policy.is_heartbeats_through(name, rules.aliases):
        return ""
    off = "lockstep.heartbeats.topics=exact turns that off"
    source = rules.flow.source
    if keeps_names(without_renames(policy), source) and remote != name and not policy.is_renamed(source, name):
        return f"renamed although names are kept: MirrorMaker takes a name that ends in heartbeats for its own; {off}"
    if policy.is_heartbeats_topic(name) and not rules.topics.matches(name):
        return f"mirrored although not selected: MirrorMaker takes a name that ends in heartbeats for its own; {off}"
    return ""


def partition_plan(
    topics: Mapping[str, str],
    source: Mapping[str, int],
    target: Mapping[str, int],
    *,
    not_now: frozenset[str],
    keeps_counts: bool = False,
) -> TopicSyncPlan:
    """Return the remote topics to create and to grow.

    Args:
        topics: `Selection.topics`.
        source: Partition counts on the source by name, just read.
        target: Partition counts on the target by name, just read.
        not_now: Source topics that wait for their retry.
        keeps_counts: Existing topics keep their number of partitions.
    """
    create, grow = [], []
    for name, remote in topics.items():
        source_count = source.get(name, 0)
        if name in not_now or source_count < 1:
            continue
        present = target.get(remote)
        if present is None:
            create.append(Create(name, remote, source_count))
        elif present < source_count and not keeps_counts:
            grow.append(Grow(name, remote, present, source_count))
    return TopicSyncPlan(tuple(create), tuple(grow))


def possible_factor(requested: int, brokers: int) -> int:
    """Return the replication factor of a new topic: at most the number of brokers. -1, the brokers' default, stays."""
    return min(requested, brokers)


def factor_words(factor: int) -> str:
    """Return a replication factor for people."""
    return "its own default" if factor == -1 else f"a replication factor of {factor}"


def creation_configs(rules: TopicRules, configs: Iterable[TopicConfig]) -> dict[str, str]:
    """Return the configs of a new remote topic: the copied overrides of its source topic.

    With `use.defaults.from=source` the source's defaults as well.
    """
    return {
        config.name: config.value
        for config in configs
        if _is_copied(rules, config)
        and (not config.is_default or rules.config_properties.should_replicate_source_default(config.name))
    }


def alterations(
    rules: TopicRules, source: Iterable[TopicConfig], target: Iterable[TopicConfig]
) -> dict[str, str | None]:
    """Return the configs of an existing remote topic that differ: values to set, and None for overrides to delete.

    MM2 sends all of them each time. A value set by hand on the remote topic is reverted, and so is one that was deleted
    at the source. Excluded configs are left alone. Broker-wide values of the source that are not in its file count as
    set (they do not exist on the target's brokers).
    """
    overrides = {config.name: config.value for config in target if config.is_topics}
    changes: dict[str, str | None] = {}
    for config in source:
        if not _is_copied(rules, config):
            continue
        if config.is_default and not rules.config_properties.should_replicate_source_default(config.name):
            if config.name in overrides:
                changes[config.name] = None
        elif overrides.get(config.name) != config.value:
            changes[config.name] = config.value
    return changes


def _is_copied(rules: TopicRules, config: TopicConfig) -> bool:
    if config.name in MESSAGE_FORMAT_CONFIGS:
        return False
    return config.copyable and rules.config_properties.should_replicate_config_property(config.name)
