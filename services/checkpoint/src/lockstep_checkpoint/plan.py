"""The checkpoints of a group that are due, by MirrorMaker 2's rule (`mm2-behaviour.md` §3.6)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TypeAlias

from lockstep_rules.groups.group_selection import CheckpointRule, Committed, target_topic
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode

Translate: TypeAlias = Callable[[str, int, UpstreamOffset], TranslatedOffset]
"""`OffsetTranslator.translate`, or a function with the same contract."""

KEEPS_CHECKPOINT = frozenset(
    {
        ReasonCode.NOTHING_COPIED,
        ReasonCode.SOURCE_RECREATED,
        ReasonCode.TARGET_END_UNKNOWN,
        ReasonCode.SOURCE_END_UNKNOWN,
        ReasonCode.NO_OFFSET_SYNC,
        ReasonCode.OLDER_THAN_SYNCS,
        ReasonCode.SYNCS_UNREADABLE,
        ReasonCode.FORWARD_UNKNOWN,
        ReasonCode.OPPOSITE_UNREADABLE,
        ReasonCode.OPPOSITE_MISSING,
        ReasonCode.OPPOSITE_NOT_BEGUN,
        ReasonCode.OPPOSITE_COPIED_NOTHING,
        ReasonCode.OPPOSITE_UNKNOWN,
        ReasonCode.OPPOSITE_SOURCE_RECREATED,
    }
)
"""Reason codes of a partition without a new translated offset whose last checkpoint is right all the same. The source
may be away for good. Any other code, and one that this release does not know, means: do not commit the checkpoint."""


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """The due checkpoints and the translated offsets of one group."""

    due: tuple[Checkpoint, ...]
    """Checkpoints to write, ordered by target topic and partition."""
    translated_offsets: tuple[tuple[TopicPartition, TranslatedOffset], ...] = ()
    """The state of each partition with a committed offset once the due checkpoints are written, ordered by target topic
    and partition."""


def plan_checkpoints(
    group: str,
    committed: Iterable[Committed],
    previous: Mapping[TopicPartition, Checkpoint],
    rule: CheckpointRule,
    translate: Translate,
) -> CheckpointPlan:
    """Return the checkpoints of `group` that are more recent than the `previous` acknowledged ones.

    Planning again after the due ones are written finds nothing due.
    """
    due: list[Checkpoint] = []
    translated_offsets: dict[TopicPartition, TranslatedOffset] = {}
    for position in committed:
        if position.offset is None or not rule.counts(position.topic):
            continue
        translated = _within_source(position, translate(position.topic, position.partition, position.offset))
        tp = (target_topic(rule, position.topic), position.partition)
        if translated.offset is None:
            translated_offsets[tp] = translated
            continue
        checkpoint = Checkpoint(group, *tp, position.offset, translated.offset, position.metadata)
        before = previous.get(tp)
        if is_more_recent(checkpoint, before):
            due.append(checkpoint)
            translated_offsets[tp] = translated
        else:
            translated_offsets[tp] = _not_beyond_exact(translated, before)
    due.sort(key=attrgetter("tp"))
    return CheckpointPlan(tuple(due), tuple(sorted(translated_offsets.items(), key=itemgetter(0))))


def _within_source(position: Committed, translated: TranslatedOffset) -> TranslatedOffset:
    """Return the translated offset, or none for an offset that the source's log does not reach."""
    if translated.offset is None or position.offset is None or position.log_end is None:
        return translated
    if position.log_end < 0:
        return TranslatedOffset(None, reason=ReasonCode.SOURCE_END_UNKNOWN.to_reason(offset=position.offset))
    reason = ReasonCode.BEYOND_SOURCE_END.to_reason(offset=position.offset, end=position.log_end)
    return TranslatedOffset(None, reason=reason)


def split_by_log_end(
    due: Iterable[Checkpoint], ends: Mapping[TopicPartition, int]
) -> tuple[tuple[Checkpoint, ...], tuple[Checkpoint, ...]]:
    """Split checkpoints into those within the target's logs and all others.

    A log whose end is unknown contains none. The other checkpoints show that the log has changed or does not exist.
    """
    kept: list[Checkpoint] = []
    beyond_end: list[Checkpoint] = []
    for checkpoint in due:
        (kept if checkpoint.downstream <= ends.get(checkpoint.tp, -1) else beyond_end).append(checkpoint)
    return tuple(kept), tuple(beyond_end)


def beyond_log_end(
    checkpoint: Checkpoint,
    ends: Mapping[TopicPartition, int],
    troubles: Mapping[TopicPartition, Exception] = MappingProxyType({}),
) -> TranslatedOffset:
    """Return the state of a partition whose checkpoint `split_by_log_end` kept back.

    `troubles` has the errors of the partitions whose end is unknown.
    """
    end = ends.get(checkpoint.tp)
    if end is None:
        trouble = troubles.get(checkpoint.tp)
        reason = ReasonCode.TARGET_END_UNKNOWN.to_reason(text="" if trouble is None else str(trouble))
    else:
        reason = ReasonCode.BEYOND_TARGET_END.to_reason(offset=checkpoint.downstream, end=end)
    return TranslatedOffset(None, reason=reason)


def misplaces_checkpoint(reason: Reason) -> bool:
    """Return whether a partition that waits for this reason may have its last checkpoint in another log.

    Such a checkpoint is not committed.
    """
    return reason.code not in KEEPS_CHECKPOINT


def _not_beyond_exact(translated: TranslatedOffset, previous: Checkpoint | None) -> TranslatedOffset:
    """Return the translated offset, or none if the last checkpoint is beyond the exact offset.

    That checkpoint was right before the target was truncated or re-created.
    """
    exact = translated.offset if translated.exact and translated.by_runs else None
    if previous is None or exact is None or previous.downstream <= exact:
        return translated
    reason = ReasonCode.BEYOND_EXACT_OFFSET.to_reason(checkpoint=previous.downstream, exact=exact)
    return TranslatedOffset(None, reason=reason, exact_offset=exact)


def is_more_recent(checkpoint: Checkpoint, previous: Checkpoint | None) -> bool:
    """Return whether a checkpoint is due after the `previous` one of its partition.

    It is due if it is the first, further downstream, or further *back* upstream. In the last case the group was rewound
    on the source and may go back downstream. In all other cases the store only lost precision, and it is suppressed.
    """
    return previous is None or checkpoint.upstream < previous.upstream or checkpoint.downstream > previous.downstream
