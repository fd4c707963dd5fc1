"""The names of topics on the other side, and the clusters in a name (`mm2-behaviour.md` §2.1 and §2.2).

A remote topic carries its history in its name under the default policy (`B.A.t`: from A, by way of B). The identity
policy keeps names and therefore knows no history, except that of heartbeats, which always carry it.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from lockstep_rules.renames import Rename, find_original_name, rename_topic
from lockstep_state.names import Flow

HEARTBEATS = "heartbeats"
KAFKAS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"})


class ReplicationPolicy(Protocol):
    """The names of remote and internal topics. All methods are pure; None means "not a remote topic".

    A custom policy inherits from this and defines the first three. The others are then as in Java's interface: internal
    topics have dots in their names, and are recognized by the rule of MM2 4.0 (KIP-1074).
    """

    __slots__ = ()

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the target's name of `topic` of the cluster `source_alias`."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster from which `topic` was mirrored last."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of `topic` on the cluster from which it was mirrored last."""

    def original_topic(self, topic: str) -> str:
        """Return the name of `topic` on the cluster where it was first written."""
        visited = {topic}
        while (upstream := self.upstream_topic(topic)) is not None and upstream not in visited:
            visited.add(upstream)
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """Return the topic of heartbeats, the same on every cluster."""
        return HEARTBEATS

    def offset_syncs_topic(self, other_alias: str) -> str:
        """Return the topic of offset syncs; `other_alias` is the flow's cluster that does not host it."""
        return f"mm2-offset-syncs.{other_alias}.internal"

    def checkpoints_topic(self, source_alias: str) -> str:
        """Return the target's topic of checkpoints of groups of `source_alias`."""
        return f"{source_alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return whether `topic` is a heartbeats topic, local or copied."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return whether `topic` is some flow's checkpoints topic."""
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Return whether MM2 keeps its own state in `topic`."""
        return (topic.startswith("mm2") and topic.endswith(".internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether `topic` is never mirrored, also if the filters select it."""
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


@dataclass(frozen=True, slots=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """MM2's default policy: remote topics are prefixed with the alias of their source.

    `internal_separator` is `replication.policy.internal.topic.separator.enabled` (KIP-949): False keeps the dot in the
    names of internal topics. `narrow_internal` False is the rule before MM2 4.0. Then every topic that ends in
    `.internal` is MM2's own, and so is any topic of a Connect cluster named by its default. Any topic whose name
    contains the separator counts as remote. With an empty separator, as Java splits names, that is any name of two
    letters or more, its first letter the source.
    """

    separator: str = "."
    internal_separator: bool = True
    narrow_internal: bool = True
    known_aliases: frozenset[str] | None = None
    """The aliases that may precede `heartbeats` in a name of heartbeats (`lockstep.heartbeats.topics=exact`). None, as
    in MM2: any name whose last part is `heartbeats` counts, and with names kept any name that ends so."""

    renames: tuple[Rename, ...] = ()
    """The renames of the names that this policy gives (`lockstep.rename`). Heartbeats and internal topics keep theirs.
    """

    @property
    def keeps_names(self) -> bool | None:
        """True if topics are renamed, so that names do not show where they came from; None: ask for a topic's name."""
        return True if self.renames else None

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        name = self._name_on_target(source_alias, topic)
        if not self.renames or self._is_heartbeats_copy(name) or any(map(self.is_internal_topic, (topic, name))):
            return name
        return rename_topic(self.renames, name)

    def original_topic(self, topic: str) -> str:
        if not self.renames:
            return ReplicationPolicy.original_topic(self, topic)
        # The renames are those of the last flow. Which one brought the topic to that flow's source is not known.
        upstream = self.upstream_topic(topic)
        return topic if upstream is None else without_renames(self).original_topic(upstream)

    def is_renamed(self, source_alias: str, topic: str) -> bool:
        """Return whether a rename changes the target's name of `topic`."""
        return self.format_remote_topic(source_alias, topic) != self._name_on_target(source_alias, topic)

    def _name_on_target(self, source_alias: str, topic: str) -> str:
        """Return the name of a topic on the target before it is renamed."""
        return f"{source_alias}{self.separator}{topic}"

    def name_before_rename(self, topic: str) -> str:
        """Return the name that a topic of the target had before it was renamed, as far as its name shows."""
        if not self.renames or self._is_heartbeats_copy(topic):
            return topic
        name = find_original_name(self.renames, topic)
        return topic if name is None or self._is_heartbeats_copy(name) or self.is_internal_topic(name) else name

    def _is_heartbeats_copy(self, name: str) -> bool:
        """Return whether a topic of the target is never renamed, because it is a copy of heartbeats."""
        return name.endswith(HEARTBEATS) and without_renames(self).is_heartbeats_topic(name)

    def is_heartbeats_topic(self, topic: str) -> bool:
        if self.known_aliases is not None:
            return self.has_heartbeats_name(topic)
        return ReplicationPolicy.is_heartbeats_topic(self, topic)

    def has_heartbeats_name(self, topic: str) -> bool:
        """Return whether a policy that keeps names gives `topic` a prefix all the same."""
        return topic.endswith(HEARTBEATS) and (
            self.known_aliases is None or self.is_heartbeats_through(topic, self.known_aliases)
        )

    def is_heartbeats_through(self, topic: str, aliases: frozenset[str]) -> bool:
        """Return whether `topic` is `heartbeats` behind these aliases only, each with a separator."""
        if not topic.endswith(HEARTBEATS):
            return False
        unmatched = topic.removesuffix(HEARTBEATS)
        starts = sorted((f"{alias}{self.separator}" for alias in aliases), key=len, reverse=True)
        while unmatched:
            start = next((prefix for prefix in starts if prefix and unmatched.startswith(prefix)), None)
            if start is None:
                return False
            unmatched = unmatched.removeprefix(start)
        return True

    def topic_source(self, topic: str) -> str | None:
        topic = self.name_before_rename(topic)
        source, *name_parts = topic.split(self.separator) if self.separator else (topic[:1], topic[1:])
        # Java's String.split drops empty parts at the end: "A." and "A.." have one part and no source.
        return source if any(name_parts) else None

    def upstream_topic(self, topic: str) -> str | None:
        source = DefaultReplicationPolicy.topic_source(self, topic)
        if source is None:
            return None
        return self.name_before_rename(topic)[len(source) + len(self.separator) :]

    def offset_syncs_topic(self, other_alias: str) -> str:
        return self._internal("mm2-offset-syncs", other_alias, "internal")

    def checkpoints_topic(self, source_alias: str) -> str:
        return self._internal(source_alias, "checkpoints", "internal")

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal("", "checkpoints", "internal"))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        of_mm2 = topic.startswith("mm2") or not self.narrow_internal
        return (of_mm2 and topic.endswith(self._internal("", "internal"))) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        if not self.narrow_internal and topic.endswith(("-internal", ".internal")):
            return True
        return ReplicationPolicy.is_internal_topic(self, topic)

    def _internal(self, *parts: str) -> str:
        return (self.separator if self.internal_separator else ".").join(parts)


@dataclass(frozen=True, slots=True, init=False)
class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """The policy that keeps names (KAFKA-9726). As in MM2, every topic counts as coming from `source_alias`.

    Heartbeats are prefixed all the same. No cycle but theirs is visible, so this policy alone does not make two
    opposite flows safe.
    """

    source_alias: str | None = None

    def __init__(
        self,
        source_alias: str | None = None,
        separator: str = ".",
        internal_separator: bool = True,
        narrow_internal: bool = True,
        known_aliases: frozenset[str] | None = None,
        renames: tuple[Rename, ...] = (),
    ) -> None:
        DefaultReplicationPolicy.__init__(self, separator, internal_separator, narrow_internal, known_aliases, renames)
        object.__setattr__(self, "source_alias", source_alias)

    def _name_on_target(self, source_alias: str, topic: str) -> str:
        if self.has_heartbeats_name(topic):
            return DefaultReplicationPolicy._name_on_target(self, source_alias, topic)
        return topic

    def _is_heartbeats_copy(self, name: str) -> bool:
        return self.has_heartbeats_name(name)

    def topic_source(self, topic: str) -> str | None:
        if self.has_heartbeats_name(topic):
            return DefaultReplicationPolicy.topic_source(self, topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        if self.has_heartbeats_name(topic):
            return DefaultReplicationPolicy.upstream_topic(self, topic)
        return self.name_before_rename(topic)


@dataclass(frozen=True, slots=True, init=False)
class LegacyReplicationPolicy(IdentityReplicationPolicy):
    """The policy of MirrorMaker 1: every topic keeps its name, heartbeats too.

    Internal topics are those that no consumer of a pattern reads, Kafka's own. Beyond MirrorMaker 1, those of MM2 and
    of remote log storage are internal too: copies of them would be mistaken for the target's.
    """

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic if self.is_internal_topic(topic) else rename_topic(self.renames, topic)

    def topic_source(self, topic: str) -> str | None:
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return find_original_name(self.renames, topic) or topic

    def is_internal_topic(self, topic: str) -> bool:
        return topic in KAFKAS_OWN or self.is_mm2_internal_topic(topic)


def keeps_names(policy: ReplicationPolicy, source_alias: str = "alias") -> bool:
    """Return whether topics have the same name on both sides, so that names do not show where a record came from.

    The default policy keeps them if both its separator and the source's alias are empty. A policy that keeps some names
    and changes others has an attribute `keeps_names`; the others are asked for the name of a topic.
    """
    own = getattr(policy, "keeps_names", None)
    return policy.format_remote_topic(source_alias, "t") == "t" if own is None else bool(own)


def without_renames(policy: ReplicationPolicy) -> ReplicationPolicy:
    """Return the policy that reads the names of the source's topics: a flow renames the copies on its target only."""
    if isinstance(policy, DefaultReplicationPolicy) and policy.renames:
        return replace(policy, renames=())
    return policy


def hides_origin(policy: ReplicationPolicy, source_alias: str, topic: str) -> bool:
    """Return whether the target's name of a topic of `source_alias` does not show where its records came from.

    Then other programs may write to the topic of that name too, and only producer ids tell their records from ours.
    """
    remote = policy.format_remote_topic(source_alias, topic)
    return remote == topic or (isinstance(policy, DefaultReplicationPolicy) and policy.is_renamed(source_alias, topic))


def is_cycle(
    policy: ReplicationPolicy, topic: str, flow: Flow, *, also_source: bool = False, one_cluster: bool = False
) -> bool:
    """Return whether `topic` of the flow's source has been on the flow's target, by its name.

    See `visited_clusters`.
    """
    return (
        next(visited_clusters(policy, topic, flow, also_source=also_source, one_cluster=one_cluster), None) is not None
    )


def visited_clusters(
    policy: ReplicationPolicy, topic: str, flow: Flow, *, also_source: bool = False, one_cluster: bool = False
) -> Iterator[tuple[str, str | None]]:
    """Yield the clusters on which `topic` of the flow's source has been before, by its name.

    Each comes as its alias and the topic's name there (None: the policy does not know). `flow` has the aliases that
    names are made of. An alias that contains the separator is found as well. MM2 splits a name at each separator, does
    not see `cluster-1` in `cluster-1-orders`, and mirrors that back and forth for ever.

    Args:
        policy: The policy of the flow.
        topic: A topic of the source.
        flow: The flow.
        also_source: The source counts too, the rule of MM2 4.4 (KAFKA-9914). It has no effect on a policy that keeps
            names, under which every topic has been there.
        one_cluster: Both aliases lead to one cluster, so each copy is on the source at once. Then each name that a flow
            made of its source's alias counts, under any policy.
    """
    if one_cluster and isinstance(policy, DefaultReplicationPolicy) and policy.name_before_rename(topic) != topic:
        yield flow.source, policy.upstream_topic(topic)
    policy = without_renames(policy)
    aliases = {flow.target}
    if one_cluster or (also_source and not keeps_names(policy)):
        aliases.add(flow.source)
    if isinstance(policy, DefaultReplicationPolicy) and (policy.has_heartbeats_name(topic) or not keeps_names(policy)):
        separator = policy.separator
        searched = f"{separator}{topic.removesuffix(HEARTBEATS)}"
        for alias in sorted(aliases):
            # With an empty separator an alias would be found in too many names; of heartbeats it is certain.
            hidden = alias and separator in alias and (separator or keeps_names(policy))
            index = searched.find(f"{separator}{alias}{separator}") if hidden else -1
            while index >= 0:
                yield alias, topic[index + len(alias) + len(separator) :]
                index = searched.find(f"{separator}{alias}{separator}", index + 1)
    name: str | None = topic
    visited: set[str] = set()
    # A policy class of the user may lead round in a circle.
    while name is not None and name not in visited:
        visited.add(name)
        source = policy.topic_source(name)
        upstream = None if source is None else policy.upstream_topic(name)
        # A name that is kept does not show that a flow made it.
        if source == flow.target or (source in aliases and upstream != name):
            yield source, upstream
        name = upstream
