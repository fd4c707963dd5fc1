"""The consumer groups of the source that get checkpoints (`mm2-behaviour.md` §2.3). Pure.

A group counts under three conditions. It is a consumer group (classic or KIP-848). It passes the group filter. It has
an offset in a topic that passes the topic filter. Its state on the source is irrelevant.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockstep_rules.filters import Names, should_replicate_group
from lockstep_rules.policy import ReplicationPolicy, hides_origin, without_renames
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition, UpstreamOffset

CONSUMER_TYPES = frozenset({"CLASSIC", "CONSUMER", "UNKNOWN", ""})
"""Kafka's types of consumer groups. Brokers older than 3.8 do not say a type, and have only classic groups."""

OTHER_PROTOCOLS = frozenset({"share", "streams"})
"""Protocols whose groups have a state that no checkpoint can express: KIP-932, KIP-1071."""


class GroupMembership(Enum):
    """The state of a group on the target, as far as commits depend on it."""

    ABSENT = "absent"
    EMPTY = "empty"
    ACTIVE = "active"
    """The group has members, or members are joining."""


MEMBERSHIPS = {"DEAD": GroupMembership.ABSENT, "EMPTY": GroupMembership.EMPTY}
"""Kafka's states of groups without members. In every other state members exist or are joining."""


def group_membership(state: str, members: int) -> GroupMembership:
    """Return the membership by Kafka's state of the group, in upper case, and its number of members."""
    return GroupMembership.ACTIVE if members else MEMBERSHIPS.get(state, GroupMembership.ACTIVE)


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed offset of a group in one source partition; None: the broker knows the partition, but no offset."""

    topic: str
    partition: int
    offset: UpstreamOffset | None
    metadata: str = ""
    log_end: int | None = None
    """The end of the source's log, if the offset is beyond it. -1: the source did not say where its log ends, and the
    offset is beyond the known end. None: the log reaches so far."""

    @property
    def tp(self) -> TopicPartition:
        """The partition of the source."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    """The settings that decide apart from offsets. `flow` has the aliases that topic names are made of."""

    flow: Flow
    policy: ReplicationPolicy
    topics: Names
    fails_back: bool = False
    """A topic that the reverse flow writes on the source counts too, if the topic that it comes from passes the filter.
    """

    def counts(self, topic: str) -> bool:
        """Return whether groups of the source that consume the topic get checkpoints."""
        if self.topics.matches(topic):
            return True
        origin = reverse_source_topic(self, topic) if self.fails_back else None
        return origin is not None and self.topics.matches(origin)


def consumes_mirrored(committed: Iterable[Committed], rule: CheckpointRule) -> bool:
    """Return whether a group has an offset in at least one topic that counts (`mm2-behaviour.md` §2.3)."""
    return any(rule.counts(position.topic) for position in committed)


def is_consumer_group(group: str, kind: str, groups: Names) -> bool:
    """Return whether a listed group may get checkpoints. `kind` is Kafka's group type in upper case."""
    return kind in CONSUMER_TYPES and should_replicate_group(group, groups)


def target_topic(rule: CheckpointRule, topic: str) -> str:
    """Return the target's name of a topic that a group consumes on the source.

    A copy from the target has its original name there.
    """
    on_source = without_renames(rule.policy)
    if on_source.topic_source(topic) == rule.flow.target:
        return on_source.original_topic(topic)
    return rule.policy.format_remote_topic(rule.flow.source, topic)


def reverse_source_topic(rule: CheckpointRule, topic: str) -> str | None:
    """Return the topic of the target whose copy on the source `topic` may be, by its name; None if it cannot be one.

    If names do not show origins, each flow may write to the topic that the other one copies. Only the rows of the
    reverse flow say whether it does.
    """
    origin = target_topic(rule, topic)
    if hides_origin(rule.policy, rule.flow.source, topic):
        return origin
    return origin if without_renames(rule.policy).format_remote_topic(rule.flow.target, origin) == topic else None
