"""What this process knows of a group, and the row that says it (no I/O, no clock)."""

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lockstep_checkpoint.plan import is_misplaced
from lockstep_rules.groups.group_sync import Ahead, rewinds
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.group_rows import AHEAD_ON_TARGET
from lockstep_state.rows.state_rows import GroupStatus

SHOWN = 3
"""Reasons a row spells out; the rest is counted."""

LISTED = 50
"""Partitions a row lists that are behind, and as many that wait; the rest is counted."""


@dataclass(frozen=True, slots=True)
class TranslationState:
    """The position of a group that could be described: `places` are by target partition, in order."""

    places: tuple[tuple[TopicPartition, TranslatedOffset], ...] = ()

    def keep_back(self, others: Mapping[TopicPartition, TranslatedOffset]) -> "TranslationState":
        """Return it with these places instead: their checkpoints were not written."""
        return TranslationState(tuple((where, others.get(where, translated)) for where, translated in self.places))


class ReadingTime(NamedTuple):
    """Hold when a reading of the source began, by both clocks: in seconds, and in Unix milliseconds."""

    monotonic_s: float
    wall_ms: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """What this process knows of a group beside its checkpoints."""

    failure: Reason = NO_REASON
    """Why the source could not be asked about the group."""
    translation: TranslationState = TranslationState()
    read_at: float | None = None
    """When this process asked last for the group's position on the source and got it, by the monotonic clock; None: it
    has not read it."""
    read_ms: int = 0
    """The same by the wall clock, Unix milliseconds, or as an earlier process wrote it down; 0: not known."""
    earlier: GroupStatus | None = None
    """The row of an earlier process or another replica, until the position is read. Its words about the source stay."""
    synced: bool = False
    held: str = ""
    """One of `HELD`, with the reason beside it."""
    held_reason: str = ""
    held_cause: Reason = NO_REASON
    ahead: tuple[Ahead, ...] = ()
    rewound: Mapping[TopicPartition, int] = field(default_factory=dict)
    """See `rewinds`; `positions`: (upstream, downstream) of the checkpoints when it was asked last."""
    positions: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: GroupStatus | None, *, syncs: bool) -> "GroupView":
        """What an earlier process or another replica knew. Without `syncs` no round describes the target any more."""
        if row is None:
            return cls()
        return cls(
            earlier=None if row.is_gone else row,
            read_ms=row.read_ms,
            synced=row.synced,
            held=row.held if syncs else "",
            held_reason=row.held_reason if syncs else "",
            held_cause=row.held_cause if syncs else NO_REASON,
            ahead=tuple(Ahead((name, number), at, place, how) for name, number, at, place, how in row.ahead if syncs),
            rewound={(topic, partition): at for topic, partition, at in row.rewound},
            positions={(topic, partition): (up, down) for topic, partition, up, down in row.positions},
        )

    def failing(self, failure: Reason) -> "GroupView":
        """Return the view with why the source could not be asked about the group."""
        return replace(self, failure=failure)

    def read(self, translation: TranslationState, began: ReadingTime | None) -> "GroupView":
        """Note that a reading of the source that `began` then read the group; None: the reading of before counts."""
        view = self if began is None else replace(self, read_at=began.monotonic_s, read_ms=began.wall_ms)
        return replace(view, failure=NO_REASON, translation=translation, earlier=None)

    def after(self, written: Mapping[TopicPartition, Checkpoint]) -> "GroupView":
        """With the checkpoints that are acknowledged now."""
        marks = rewinds(self.rewound, self.positions, written)
        positions = {where: (int(one.upstream), int(one.downstream)) for where, one in written.items()}
        return replace(self, rewound=marks, positions={**self.positions, **positions})

    def misplaced(self, written: Set[TopicPartition]) -> Mapping[TopicPartition, tuple[Reason, int | None]]:
        """Return the partitions whose last checkpoint is not right on the target, or may not be (`is_misplaced`). Each
        has the reason and its exact place; None: unknown. `written`: those that have a checkpoint."""
        if self.earlier is not None:
            return {where: (reason, None) for where, reason in _misplaced_by_row(self.earlier, written).items()}
        waits = ((where, translated) for where, translated in self.translation.places if translated.at is None)
        return {where: (place.reason, place.exact_at) for where, place in waits if is_misplaced(place.reason)}

    def reads(self, where: TopicPartition, mirrored: Collection[str] | None = None) -> bool:
        """Whether the group has an offset on the source for this partition of the target. Until its offsets are read
        there: whether the topic is one of `mirrored`. None: it may be."""
        if self.read_at is None:
            return mirrored is None or where[0] in mirrored
        return any(where == known for known, _ in self.translation.places)

    @property
    def words(self) -> frozenset[str]:
        """Return the words of `HELD` that explain why the target's group stays as it is, or is beyond its places."""
        contested = {str(ReasonCode.CONTESTED)} if self.held_cause.code == ReasonCode.CONTESTED else set()
        return frozenset({self.held, *(ahead.state for ahead in self.ahead), *contested} - {""})

    @property
    def is_left_alone(self) -> bool:
        """Return whether the target's group stays as it is."""
        return bool(self.held or self.held_cause or self.ahead)

    @property
    def left_alone(self) -> str:
        """Why the target's group stays as it is; "" where it is at its places."""
        return joined((*([self.held_reason] if self.held_reason else []), *map(str, self.ahead)))

    def row(self, group: str, written: Mapping[TopicPartition, Checkpoint]) -> GroupStatus:
        """As it is to be written, with the acknowledged checkpoints of the group."""
        row = self._of_source(group, written) if self.earlier is None else self._as_earlier(self.earlier)
        if self.failure:
            is_placed = self.earlier is None or self.earlier.is_placed
            code = ReasonCode.REPORTED if is_placed else ReasonCode.GROUP_NOT_PLACED
            cause = code.because(self.failure)
            row = replace(row, phase="failing", reason=format_sentence(cause), cause=cause)
        # Those that `follow` and `--rewind-groups` do not set back come first: the list may be cut.
        ahead = sorted(self.ahead, key=lambda one: one.state != AHEAD_ON_TARGET)
        return replace(
            row,
            synced=self.synced,
            held=self.held,
            held_reason=self.held_reason,
            held_cause=self.held_cause,
            ahead=tuple((*one.where, one.offset, one.place, one.state) for one in ahead[:LISTED]),
            more_ahead=len(ahead[LISTED:]),
            rewound=tuple((*where, at) for where, at in sorted(self.rewound.items())),
            read_ms=self.read_ms,
        )

    def _of_source(self, group: str, written: Mapping[TopicPartition, Checkpoint]) -> GroupStatus:
        ahead = {one.where for one in self.ahead}
        behind, waits = _behind(self.translation, ahead), _waits(self.translation)
        return GroupStatus(
            group=group,
            phase="translated" if written else "waiting",
            reason=joined(by_partition({(topic, number): reason for topic, number, reason in waits})),
            positions=tuple((*where, int(one.upstream), int(one.downstream)) for where, one in sorted(written.items())),
            exact=sum(place.exact for where, place in self.translation.places if where not in ahead),
            behind=behind[:LISTED],
            waiting=tuple((topic, number, format_sentence(reason)) for topic, number, reason in waits[:LISTED]),
            more_behind=len(behind[LISTED:]),
            more_waiting=len(waits[LISTED:]),
            cause=waits[0][2] if waits else NO_REASON,
            causes=waits[:LISTED],
        )

    def _as_earlier(self, row: GroupStatus) -> GroupStatus:
        """As the row says of the source. A partition that is ahead is neither exact nor behind."""
        ahead = {one.where for one in self.ahead}
        listed = {(topic, partition) for topic, partition, *_ in (*row.behind, *row.waiting, *row.ahead)}
        return GroupStatus(
            group=row.group,
            phase=row.phase,
            reason=row.reason,
            positions=tuple((*where, *place) for where, place in sorted(self.positions.items())),
            exact=max(0, row.exact - len(ahead - listed)),
            behind=tuple(one for one in row.behind if one[:2] not in ahead),
            waiting=row.waiting,
            more_behind=row.more_behind,
            more_waiting=row.more_waiting,
            cause=row.cause,
            causes=row.causes,
        )


def by_partition(reasons: Mapping[TopicPartition, Reason]) -> tuple[str, ...]:
    """Return a sentence for each partition, in order."""
    return tuple(
        f"{topic}-{partition}: {format_sentence(reason)}" for (topic, partition), reason in sorted(reasons.items())
    )


def joined(reasons: tuple[str, ...]) -> str:
    """The first of them as one text."""
    more = len(reasons) - SHOWN
    return "; ".join(reasons[:SHOWN]) + (f"; and {more} partitions more" if more > 0 else "")


def _behind(known: TranslationState, ahead: Collection[TopicPartition]) -> tuple[tuple[str, int, int], ...]:
    places = [(where, place) for where, place in known.places if where not in ahead]
    found = [(*where, place.behind) for where, place in places if place.at is not None and place.behind]
    return tuple(sorted(found, key=lambda one: -one[2]))


def _waits(translation: TranslationState) -> tuple[tuple[str, int, Reason], ...]:
    """Return those without a place. First come those whose checkpoint is wrong: a row may list some only."""
    waits = [(*where, translated.reason) for where, translated in translation.places if translated.at is None]
    return tuple(sorted(waits, key=lambda wait: not is_misplaced(wait[2])))


def _misplaced_by_row(row: GroupStatus, written: Set[TopicPartition]) -> dict[TopicPartition, Reason]:
    """Return which checkpoints are not known to be right by the row of an earlier process."""
    if not row.is_placed:
        return dict.fromkeys(written, row.why or ReasonCode.GROUP_NOT_PLACED.to_reason())
    waits = {(topic, number): reason for topic, number, reason in row.waits}
    misplaced = {where: reason for where, reason in waits.items() if is_misplaced(reason)}
    if not row.more_waiting:
        return misplaced
    listed = waits.keys() | {(topic, number) for topic, number, _ in row.behind}
    cut = ReasonCode.WAITING_NOT_LISTED.to_reason(count=row.more_waiting)
    return misplaced | dict.fromkeys(written - listed, cut)
