"""Which consumer groups of the source get checkpoints, and where these are on the target (`mm2-behaviour.md` §2.3).
Pure.

A group counts under three conditions. It is a consumer group (classic or KIP-848). It passes the group filter. It has
an offset in a topic that passes the topic filter. Its state on the source is irrelevant.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockstep_rules.filters import Names, should_replicate_group
from lockstep_rules.policy import ReplicationPolicy
from lockstep_state.names import Flow
from lockstep_state.offsets import UpstreamOffset

CONSUMER_TYPES = frozenset({"CLASSIC", "CONSUMER", "UNKNOWN", ""})
"""Brokers older than 3.8 do not say; all they have are classic ones."""

OTHER_PROTOCOLS = frozenset({"share", "streams"})
"""What the state of a group of these protocols is, no checkpoint can say: KIP-932, KIP-1071."""


class GroupMembership(Enum):
    """What a look at the target found of a group."""

    ABSENT = "absent"
    EMPTY = "empty"
    ACTIVE = "active"
    """It has members, or is on its way there."""


MEMBERSHIPS = {"DEAD": GroupMembership.ABSENT, "EMPTY": GroupMembership.EMPTY}
"""Every other state means members, or members on their way."""


def group_membership(state: str, members: int) -> GroupMembership:
    """By Kafka's word for the state of a group, in upper case, and its number of members."""
    return GroupMembership.ACTIVE if members else MEMBERSHIPS.get(state, GroupMembership.ACTIVE)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed for one source partition; `offset` is None where the broker knows the partition and no
    offset.
    """

    topic: str
    partition: int
    offset: UpstreamOffset | None
    metadata: str = ""
    log_end: int | None = None
    """The end of the source's log, if the offset is beyond it. -1: the source did not say where its log ends, and the
    offset is beyond all that is known. None: the log reaches so far."""


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    """What decides, apart from offsets: the flow, how it names remote topics, and which source topics it mirrors. The
    flow is by the aliases that names are made of."""

    flow: Flow
    policy: ReplicationPolicy
    topics: Names
    fails_back: bool = False
    """What the flow in the opposite direction writes on the source counts too, where the topic that it comes from
    passes the filter."""

    def counts(self, topic: str) -> bool:
        """Whether a group of the source that consumes the topic is of interest."""
        if self.topics.matches(topic):
            return True
        theirs = came_from(self, topic) if self.fails_back else None
        return theirs is not None and self.topics.matches(theirs)


def consumes_mirrored(committed: Iterable[Committed], rule: CheckpointRule) -> bool:
    """Whether a group is of interest at all: it has an offset in at least one topic that counts (`mm2-behaviour.md`
    §2.3)."""
    return any(rule.counts(position.topic) for position in committed)


def is_consumer_group(group: str, kind: str, groups: Names) -> bool:
    """Whether a listed group may be of interest, as far as the listing shows. `kind` is Kafka's group type in upper
    case.
    """
    return kind in CONSUMER_TYPES and should_replicate_group(group, groups)


def target_topic(rule: CheckpointRule, topic: str) -> str:
    """The name on the target of what a group consumes on the source; what came from the target goes by its original
    name there.
    """
    if rule.policy.topic_source(topic) == rule.flow.target:
        return rule.policy.original_topic(topic)
    return rule.policy.format_remote_topic(rule.flow.source, topic)


def came_from(rule: CheckpointRule, topic: str) -> str | None:
    """The target's topic whose copy on the source `topic` may be, by its name; None when it cannot be one."""
    theirs = target_topic(rule, topic)
    return theirs if rule.policy.format_remote_topic(rule.flow.target, theirs) == topic else None
