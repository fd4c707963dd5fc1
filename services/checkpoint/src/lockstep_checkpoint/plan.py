"""Which checkpoints of a group are due, by MirrorMaker 2's rule (`mm2.md` §3.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lockstep_checkpoint.translation import TOO_OLD
from lockstep_protocol.filters import NameFilter
from lockstep_protocol.names import Flow
from lockstep_protocol.offsets import DownstreamOffset, UpstreamOffset
from lockstep_protocol.policy import ReplicationPolicy
from lockstep_protocol.records import Checkpoint

__all__ = [
    "CheckpointPlan",
    "CheckpointRule",
    "Committed",
    "TargetPartition",
    "Translate",
    "consumes_mirrored",
    "is_more_recent",
    "plan_checkpoints",
    "target_topic",
]

TargetPartition: TypeAlias = tuple[str, int]
"""Topic by its name on the target, and partition."""

Translate: TypeAlias = Callable[[str, int, UpstreamOffset], DownstreamOffset | None]
"""`OffsetSyncStore.translate_downstream`, or whatever answers like it."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed for one source partition; `offset` is None where the broker knows the partition and no
    offset.
    """

    topic: str
    partition: int
    offset: UpstreamOffset | None
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    """What decides, apart from offsets: the flow, how it names remote topics, and which source topics it mirrors."""

    flow: Flow
    policy: ReplicationPolicy
    topics: NameFilter


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """One look at a group."""

    due: tuple[Checkpoint, ...]
    """To be written, ordered by target topic and partition."""
    untranslated: tuple[str, ...] = ()
    """Why partitions got none although the group has an offset there: sentences for people. Suppressed ones are not
    here.
    """


def consumes_mirrored(committed: Iterable[Committed], topics: NameFilter) -> bool:
    """Whether a group is of interest at all: it has an offset in at least one topic that passes the filter (`mm2.md`
    §2.3).
    """
    return any(topics.matches(position.topic) for position in committed)


def plan_checkpoints(
    group: str,
    committed: Iterable[Committed],
    last: Mapping[TargetPartition, Checkpoint],
    rule: CheckpointRule,
    translate: Translate,
) -> CheckpointPlan:
    """The checkpoints of `group` that are more recent than the `last` acknowledged ones of the same target partitions.

    Planning again with the due ones taken into `last` finds nothing due.
    """
    due: list[Checkpoint] = []
    untranslated: list[str] = []
    for position in committed:
        if position.offset is None or not rule.topics.matches(position.topic):
            continue
        downstream = translate(position.topic, position.partition, position.offset)
        if downstream is None or downstream < 0:
            untranslated.append(_why(position, downstream))
            continue
        topic = target_topic(rule, position.topic)
        checkpoint = Checkpoint(group, topic, position.partition, position.offset, downstream, position.metadata)
        if is_more_recent(checkpoint, last.get((topic, position.partition))):
            due.append(checkpoint)
    due.sort(key=lambda checkpoint: (checkpoint.topic, checkpoint.partition))
    return CheckpointPlan(tuple(due), tuple(sorted(untranslated)))


def is_more_recent(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Whether a checkpoint says something `last` did not.

    The first of a partition does, one further downstream does, and so does one further *upstream back*: the group was
    rewound on the source and may go backwards downstream. Everything else is the store having lost precision, and is
    suppressed.
    """
    return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream


def target_topic(rule: CheckpointRule, topic: str) -> str:
    """The name on the target of what a group consumes on the source; what came from the target goes by its original
    name there.
    """
    if rule.policy.topic_source(topic) == rule.flow.target:
        return rule.policy.original_topic(topic)
    return rule.policy.format_remote_topic(rule.flow.source, topic)


def _why(position: Committed, downstream: DownstreamOffset | None) -> str:
    where = f"{position.topic}-{position.partition}"
    if downstream == TOO_OLD:
        return f"{where}: offset {position.offset} is older than the oldest usable offset sync"
    return f"{where}: no offset sync yet"
