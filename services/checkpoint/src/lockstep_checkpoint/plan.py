"""Which checkpoints of a group are due, by MirrorMaker 2's rule (`mm2-behaviour.md` §3.6), and how well its places are
known."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
"""Codes of a partition without a new place whose last checkpoint is right all the same: the source may be away for
good. Every other code, and one that this release does not know, means: do not commit it."""


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """One look at a group."""

    due: tuple[Checkpoint, ...]
    """To be written, ordered by target topic and partition."""
    places: tuple[tuple[TopicPartition, TranslatedOffset], ...] = ()
    """The state of each partition with an offset once the due ones are written, ordered by target topic and
    partition."""


def plan_checkpoints(
    group: str,
    committed: Iterable[Committed],
    last: Mapping[TopicPartition, Checkpoint],
    rule: CheckpointRule,
    translate: Translate,
) -> CheckpointPlan:
    """The checkpoints of `group` that are more recent than the `last` acknowledged ones of the same target partitions.

    Planning again with the due ones taken into `last` finds nothing due.
    """
    due: list[Checkpoint] = []
    places: dict[TopicPartition, TranslatedOffset] = {}
    for position in committed:
        if position.offset is None or not rule.counts(position.topic):
            continue
        translated = _within_source(position, translate(position.topic, position.partition, position.offset))
        where = (target_topic(rule, position.topic), position.partition)
        if translated.at is None:
            places[where] = translated
            continue
        checkpoint = Checkpoint(group, *where, position.offset, translated.at, position.metadata)
        before = last.get(where)
        if is_more_recent(checkpoint, before):
            due.append(checkpoint)
            places[where] = translated
        else:
            places[where] = _held(translated, before)
    due.sort(key=lambda checkpoint: (checkpoint.topic, checkpoint.partition))
    return CheckpointPlan(tuple(due), tuple(sorted(places.items(), key=_where)))


def _within_source(position: Committed, translated: TranslatedOffset) -> TranslatedOffset:
    """Return the place, or none for an offset that the source's log does not reach."""
    if translated.at is None or position.offset is None or position.log_end is None:
        return translated
    if position.log_end < 0:
        return TranslatedOffset(None, reason=ReasonCode.SOURCE_END_UNKNOWN.to_reason(offset=position.offset))
    reason = ReasonCode.BEYOND_SOURCE_END.to_reason(offset=position.offset, end=position.log_end)
    return TranslatedOffset(None, reason=reason)


def within(
    due: Iterable[Checkpoint], ends: Mapping[TopicPartition, int]
) -> tuple[tuple[Checkpoint, ...], tuple[Checkpoint, ...]]:
    """The checkpoints that lie within the target's logs, and those that do not, or whose log's end is not known. The
    second say that what they were computed from no longer holds, or that the log is not there.
    """
    kept: list[Checkpoint] = []
    others: list[Checkpoint] = []
    for one in due:
        (kept if one.downstream <= ends.get((one.topic, one.partition), -1) else others).append(one)
    return tuple(kept), tuple(others)


def beyond(
    checkpoint: Checkpoint,
    ends: Mapping[TopicPartition, int],
    troubles: Mapping[TopicPartition, Exception] = MappingProxyType({}),
) -> TranslatedOffset:
    """The state of a partition whose checkpoint was kept back by `within`. `troubles`: why ends are not known."""
    end = ends.get((checkpoint.topic, checkpoint.partition))
    if end is None:
        trouble = troubles.get((checkpoint.topic, checkpoint.partition))
        reason = ReasonCode.TARGET_END_UNKNOWN.to_reason(text="" if trouble is None else str(trouble))
    else:
        reason = ReasonCode.BEYOND_TARGET_END.to_reason(offset=checkpoint.downstream, end=end)
    return TranslatedOffset(None, reason=reason)


def is_misplaced(reason: Reason) -> bool:
    """Return whether the last checkpoint of a partition that waits for this reason is, or may be, a place in another
    log. Then it is not committed."""
    return reason.code not in KEEPS_CHECKPOINT


def _held(place: TranslatedOffset, before: Checkpoint | None) -> TranslatedOffset:
    """A checkpoint beyond the exact place was right once, before the target was truncated or created anew."""
    if before is None or place.at is None or not (place.exact and place.by_runs) or before.downstream <= place.at:
        return place
    reason = ReasonCode.BEYOND_EXACT_OFFSET.to_reason(checkpoint=before.downstream, exact=place.at)
    return TranslatedOffset(None, reason=reason, exact_at=place.at)


def _where(one: tuple[TopicPartition, TranslatedOffset]) -> TopicPartition:
    return one[0]


def is_more_recent(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Whether a checkpoint says something `last` did not.

    A checkpoint is due if it is the first of its partition, further downstream, or further *upstream back*. In the last
    case the group was rewound on the source and may go backwards downstream. In all other cases the store only lost
    precision, and the checkpoint is suppressed.
    """
    return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream
