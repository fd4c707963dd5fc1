"""The view that this process has of a group, and the row made from it (no I/O, no clock)."""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lockstep_checkpoint.plan import misplaces_checkpoint
from lockstep_rules.groups.group_sync import Ahead, find_rewinds
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.group_rows import AHEAD_ON_TARGET
from lockstep_state.rows.state_rows import GroupStatus

SHOWN = 3
"""Reasons that the sentence of a row names. It counts the others."""

LISTED = 50
"""Partitions in each list of a row. The row counts the others."""


@dataclass(frozen=True, slots=True)
class TranslationState:
    """The translated offsets of a group that could be read, by target partition, in order."""

    translated_offsets: tuple[tuple[TopicPartition, TranslatedOffset], ...] = ()

    def keep_back(self, others: Mapping[TopicPartition, TranslatedOffset]) -> "TranslationState":
        """Return the state with other offsets for the partitions whose checkpoints were not written."""
        return TranslationState(tuple((tp, others.get(tp, translated)) for tp, translated in self.translated_offsets))


class ReadingTime(NamedTuple):
    """The start of a reading of the source by both clocks: monotonic seconds, and Unix milliseconds."""

    monotonic_s: float
    wall_ms: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """The knowledge of this process about a group, beside its checkpoints."""

    failure: Reason = NO_REASON
    """The reason why the source could not be asked about the group."""
    translation: TranslationState = TranslationState()
    read_at: float | None = None
    """The monotonic time when this process last read the group's offsets on the source; None: it has not."""
    read_ms: int = 0
    """The same time in Unix milliseconds, or the one that an earlier process recorded; 0: unknown."""
    earlier: GroupStatus | None = None
    """The row of an earlier process or another replica, until this one reads the group. Its facts about the source
    stay."""
    synced: bool = False
    held: str = ""
    """The state of `HELD` that keeps the group from being written, or "". `held_reason` has its sentence."""
    held_reason: str = ""
    held_cause: Reason = NO_REASON
    ahead: tuple[Ahead, ...] = ()
    rewound: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The result of `rewinds`."""
    positions: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """(upstream, downstream) of the checkpoints as of the last call of `with_checkpoints`."""

    @classmethod
    def from_row(cls, row: GroupStatus | None, *, syncs: bool) -> "GroupView":
        """Return the view that an earlier process or another replica recorded.

        Without `syncs` no round reads the target any more, so what the row says about it is dropped.
        """
        if row is None:
            return cls()
        return cls(
            earlier=None if row.is_gone else row,
            read_ms=row.read_ms,
            synced=row.synced,
            held=row.held if syncs else "",
            held_reason=row.held_reason if syncs else "",
            held_cause=row.held_cause if syncs else NO_REASON,
            ahead=tuple(
                Ahead((name, number), offset, translated_offset, state)
                for name, number, offset, translated_offset, state in row.ahead
                if syncs
            ),
            rewound={(topic, partition): offset for topic, partition, offset in row.rewound},
            positions={(topic, partition): (up, down) for topic, partition, up, down in row.positions},
        )

    def failing(self, failure: Reason) -> "GroupView":
        """Return the view with the reason why the source could not be asked about the group."""
        return replace(self, failure=failure)

    def read(self, translation: TranslationState, began: ReadingTime | None) -> "GroupView":
        """Return the view after a reading of the source; `began` None: the offsets are those read before."""
        view = self if began is None else replace(self, read_at=began.monotonic_s, read_ms=began.wall_ms)
        return replace(view, failure=NO_REASON, translation=translation, earlier=None)

    def with_checkpoints(self, written: Mapping[TopicPartition, Checkpoint]) -> "GroupView":
        """Return the view with the checkpoints that are acknowledged now."""
        marks = find_rewinds(self.rewound, self.positions, written)
        positions = {tp: (int(checkpoint.upstream), int(checkpoint.downstream)) for tp, checkpoint in written.items()}
        return replace(self, rewound=marks, positions={**self.positions, **positions})

    def misplaced(self, written: Set[TopicPartition]) -> Mapping[TopicPartition, tuple[Reason, int | None]]:
        """Return the partitions whose last checkpoint is or may be wrong on the target (`misplaces_checkpoint`).

        Each has the reason and its exact offset; None: unknown. `written` has the partitions with a checkpoint.
        """
        if self.earlier is not None:
            return {tp: (reason, None) for tp, reason in _misplaced_by_row(self.earlier, written).items()}
        return {
            tp: (translated.reason, translated.exact_offset)
            for tp, translated in self.translation.translated_offsets
            if translated.offset is None and misplaces_checkpoint(translated.reason)
        }

    def reads(self, tp: TopicPartition, mirrored: Collection[str] | None = None) -> bool:
        """Return whether the group has an offset on the source for this partition of the target.

        Until its offsets are read, a topic counts if it is one of `mirrored`; None: every topic counts.
        """
        if self.read_at is None:
            return mirrored is None or tp[0] in mirrored
        return any(tp == translated_tp for translated_tp, _ in self.translation.translated_offsets)

    @property
    def words(self) -> frozenset[str]:
        """The words of `HELD` that say why the target's group stays, or is beyond its checkpoints."""
        contested = {str(ReasonCode.CONTESTED)} if self.held_cause.code == ReasonCode.CONTESTED else set()
        return frozenset({self.held, *(ahead.state for ahead in self.ahead), *contested} - {""})

    @property
    def is_left_alone(self) -> bool:
        """The target's group stays as it is, at least in some partitions."""
        return bool(self.held or self.held_cause or self.ahead)

    @property
    def left_alone(self) -> str:
        """The sentence that says why the target's group stays as it is; "" if it is at its checkpoints."""
        return join_sentences((*([self.held_reason] if self.held_reason else []), *map(str, self.ahead)))

    def row(self, group: str, written: Mapping[TopicPartition, Checkpoint]) -> GroupStatus:
        """Return the row to write, with the acknowledged checkpoints of the group."""
        row = self._of_source(group, written) if self.earlier is None else self._as_earlier(self.earlier)
        if self.failure:
            is_placed = self.earlier is None or self.earlier.is_placed
            code = ReasonCode.REPORTED if is_placed else ReasonCode.GROUP_NOT_PLACED
            cause = code.because(self.failure)
            row = replace(row, phase="failing", reason=format_sentence(cause), cause=cause)
        # Those that `follow` and `--rewind-groups` do not set back come first: the list may be cut.
        ahead = sorted(self.ahead, key=lambda part: part.state != AHEAD_ON_TARGET)
        return replace(
            row,
            synced=self.synced,
            held=self.held,
            held_reason=self.held_reason,
            held_cause=self.held_cause,
            ahead=tuple((*part.tp, part.offset, part.translated_offset, part.state) for part in ahead[:LISTED]),
            more_ahead=len(ahead[LISTED:]),
            rewound=tuple((*tp, downstream) for tp, downstream in sorted(self.rewound.items())),
            read_ms=self.read_ms,
        )

    def _of_source(self, group: str, written: Mapping[TopicPartition, Checkpoint]) -> GroupStatus:
        ahead = {part.tp for part in self.ahead}
        behind, waits = _behind(self.translation, ahead), _waits(self.translation)
        return GroupStatus(
            group=group,
            phase="translated" if written else "waiting",
            reason=join_sentences(sentences_by_partition({(topic, number): reason for topic, number, reason in waits})),
            positions=tuple((*tp, int(part.upstream), int(part.downstream)) for tp, part in sorted(written.items())),
            exact=sum(translated.exact for tp, translated in self.translation.translated_offsets if tp not in ahead),
            behind=behind[:LISTED],
            waiting=tuple((topic, number, format_sentence(reason)) for topic, number, reason in waits[:LISTED]),
            more_behind=len(behind[LISTED:]),
            more_waiting=len(waits[LISTED:]),
            cause=waits[0][2] if waits else NO_REASON,
            causes=waits[:LISTED],
        )

    def _as_earlier(self, row: GroupStatus) -> GroupStatus:
        """Return the row with the source facts of an earlier one.

        A partition that is ahead is neither exact nor behind.
        """
        ahead = {part.tp for part in self.ahead}
        listed = {(topic, partition) for topic, partition, *_ in (*row.behind, *row.waiting, *row.ahead)}
        return GroupStatus(
            group=row.group,
            phase=row.phase,
            reason=row.reason,
            positions=tuple((*tp, *offsets) for tp, offsets in sorted(self.positions.items())),
            exact=max(0, row.exact - len(ahead - listed)),
            behind=tuple(part for part in row.behind if part[:2] not in ahead),
            waiting=row.waiting,
            more_behind=row.more_behind,
            more_waiting=row.more_waiting,
            cause=row.cause,
            causes=row.causes,
        )


def sentences_by_partition(reasons: Mapping[TopicPartition, Reason]) -> tuple[str, ...]:
    """Return one sentence for each partition, in order."""
    return tuple(
        f"{topic}-{partition}: {format_sentence(reason)}" for (topic, partition), reason in sorted(reasons.items())
    )


def join_sentences(reasons: tuple[str, ...]) -> str:
    """Return the first sentences as one text, with the count of the others."""
    more = len(reasons) - SHOWN
    return "; ".join(reasons[:SHOWN]) + (f"; and {more} partitions more" if more > 0 else "")


def _behind(translation: TranslationState, ahead: Collection[TopicPartition]) -> tuple[tuple[str, int, int], ...]:
    behind = [
        (*tp, translated.behind)
        for tp, translated in translation.translated_offsets
        if tp not in ahead and translated.offset is not None and translated.behind
    ]
    return tuple(sorted(behind, key=lambda entry: -entry[2]))


def _waits(translation: TranslationState) -> tuple[tuple[str, int, Reason], ...]:
    """Return the partitions without a translated offset, misplaced ones first: a row may list only some."""
    waits = [(*tp, translated.reason) for tp, translated in translation.translated_offsets if translated.offset is None]
    return tuple(sorted(waits, key=lambda wait: not misplaces_checkpoint(wait[2])))


def _misplaced_by_row(row: GroupStatus, written: Set[TopicPartition]) -> dict[TopicPartition, Reason]:
    """Return the checkpoints that may be wrong by the row of an earlier process."""
    if not row.is_placed:
        return dict.fromkeys(written, row.stated_cause or ReasonCode.GROUP_NOT_PLACED.to_reason())
    waits = {(topic, number): reason for topic, number, reason in row.waits}
    misplaced = {tp: reason for tp, reason in waits.items() if misplaces_checkpoint(reason)}
    if not row.more_waiting:
        return misplaced
    listed = waits.keys() | {(topic, number) for topic, number, _ in row.behind}
    cut = ReasonCode.WAITING_NOT_LISTED.to_reason(count=row.more_waiting)
    return misplaced | dict.fromkeys(written - listed, cut)
