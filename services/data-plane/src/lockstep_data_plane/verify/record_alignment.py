"""The pairing of a source partition's records with those of its copy, to find where they differ (no I/O).

Two records are a pair if their contents are equal and all records before them are paired too. Where contents differ,
both logs are searched a little ahead for the next place from which they agree again. What is before it is the
difference. The offset runs then say what became of a record that only one log has. If no such place is near, the
alignment is lost, and both logs are searched as far as they go (`agreement_search.py`).
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.verify.agreement_search import CONFIRMED, Agreement
from lockstep_data_plane.verify.difference import Content, Difference, changed_parts
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_state.reasons.verification_reason import DifferenceKind, NotComparedReason

AHEAD = 256
"""The number of records of each log that are searched for the next place where both agree. It is also the largest
distance at which a record counts as moved.
"""


class AlignedRecord(NamedTuple):
    """A record of either log."""

    offset: int
    content: Content
    is_ours: bool = True
    """True if the flow's producer has appended it. Always true for the source's records."""
    has_own_time: bool = True
    """True if it has the timestamp of its producer, false if the target's broker has set it."""


def as_aligned(record: PlainRecord, *, is_ours: bool = True, has_own_time: bool = True) -> AlignedRecord:
    """Return the aligned record of a record that was read from a batch."""
    key = None if record.key is None else bytes(record.key)
    value = None if record.value is None else bytes(record.value)
    content = record.timestamp, key, value, tuple(record.headers)
    return AlignedRecord(record.offset, content, is_ours, has_own_time)


@dataclass(frozen=True, slots=True)
class TargetRules:
    """The expectations of the target's log.

    If `is_compacted`, a record may be missing because of a later one with its key. If `has_foreign_writers`, records
    of other clients are expected.
    """

    is_compacted: bool = False
    has_foreign_writers: bool = False


class Findings(NamedTuple):
    """The callbacks for the findings of an alignment.

    `not_compared` gets the reason and the record's offsets on source and target, -1 if there is none. `pair` is
    called for each record that both logs have, equal or not.
    """

    difference: Callable[[Difference], None]
    not_compared: Callable[[NotComparedReason, int, int], None]
    pair: Callable[[], None]


class _Lone(NamedTuple):
    """A record that one log alone has, as far as was searched. `since` is the number of pairs at that time."""

    record: AlignedRecord
    is_source: bool
    since: int


class RecordAlignment:
    """The records of both logs that are not paired yet. Add to `source` and `target`, then call `align`."""

    def __init__(
        self,
        rules: TargetRules,
        offsets: OffsetMap,
        findings: Findings,
        begin: tuple[int, int],
        shift: int = 0,
        agreement: Agreement | None = None,
    ) -> None:
        """Begin between two places of the logs.

        Args:
            rules: The expectations of the target's log.
            offsets: The offset runs of the partition.
            findings: The callbacks for findings.
            begin: The offsets of the first records to compare.
            shift: The shift of the records before them.
            agreement: The place up to which both logs differ from `begin` on.
        """
        self._rules = rules
        self._offsets = offsets
        self._findings = findings
        self.source: deque[AlignedRecord] = deque()
        self.target: deque[AlignedRecord] = deque()
        self._lone: list[_Lone] = []
        self._pairs = 0
        self._passed = begin[0] - 1, begin[1] - 1
        """The offsets of the last record of each log that was paired or passed."""
        self.shift = shift
        """The distance of the last record's target offset from the one that the offset runs name."""
        self._agreement = agreement
        if agreement is not None:  # as many records of each log, so that both are as far from where they agree
            slack = min(agreement.slack, agreement.source - begin[0], agreement.target - begin[1])
            self._agreement = agreement._replace(slack=max(0, slack))
        self.is_lost = False
        """True if both logs differ for longer than `AHEAD`, so that the next agreement has to be searched."""
        self.may_be_lost = True
        """True if `is_lost` may be set. Otherwise records are passed: findings after the position were reported."""
        self.ended = [False, False]
        """Two flags that say whether source and target have no records after the waiting ones."""
        self.unreadable: list[tuple[int, int]] = []
        """The first and last offsets of the target's batches whose records could not be read. They are reported
        already.
        """

    @property
    def is_settled(self) -> bool:
        """Return whether all findings so far are reported."""
        return not self._lone

    @property
    def has_waiting(self) -> bool:
        """Return whether a record waits for its counterpart."""
        return bool(self.source or self.target)

    def pair_batches(self, source: tuple[int, int], target: tuple[int, int], records: int) -> None:
        """Pair two whole batches that are equal, while no record waits.

        Args:
            source: The first and last offset of the source's batch.
            target: The first and last offset of the target's batch.
            records: The number of records of each.
        """
        self._pairs += records
        self._passed = source[1], target[1]
        for source_offset, target_offset in zip(source, target, strict=True):
            self._check_offset(source_offset, target_offset)
        self._report_lone(at_end=False)

    def align(self, *, at_end: bool) -> None:
        """Pair as many records as possible.

        Args:
            at_end: No more records come before the end of the comparison, so each waiting record is decided.
        """
        self._pass_first()
        while self._pass_to_agreement(at_end=at_end) and self.source and self.target and not self.is_lost:
            if self._pass_removed(self.source[0], self.target[0]):
                continue
            if _are_equal(self.source[0], self.target[0]):
                self._pair(self.source.popleft(), self.target.popleft())
            elif not at_end and not self._sees_enough():
                return
            else:
                self._differ_or_lose(at_end=at_end)
        if at_end and not self.is_lost:
            self._differ(len(self.source), len(self.target))
        self._report_lone(at_end=at_end or self.is_lost)

    def _sees_enough(self) -> bool:
        """Return whether each log has as many records here as are searched, or has ended."""
        logs = zip((self.source, self.target), self.ended, strict=True)
        return all(ended or len(log) > AHEAD for log, ended in logs)

    def _differ_or_lose(self, *, at_end: bool) -> None:
        """Pass what differs up to the next agreement, or set `is_lost` if none is near."""
        sources, targets = self._find_agreement()
        near = (sources, targets) != (min(len(self.source), AHEAD), min(len(self.target), AHEAD))
        is_all = (at_end or all(self.ended)) and max(len(self.source), len(self.target)) <= AHEAD
        if near or is_all:
            self._differ(sources, targets)
        elif self._agreement is not None or not self.may_be_lost:
            self._differ(min(sources, targets), min(sources, targets))
        else:
            self.is_lost = True

    def _pass_to_agreement(self, *, at_end: bool) -> bool:
        """Pass the records before the known agreement. Return False if more has to be read first."""
        if self._agreement is None:
            return True
        agreed, logs = self._agreement[:2], (self.source, self.target)
        limits = [offset - self._agreement.slack for offset in agreed]
        while True:
            counts = [_count_before(log, limit) for log, limit in zip(logs, limits, strict=True)]
            reached = [
                at_end or ended or len(log) > count for log, count, ended in zip(logs, counts, self.ended, strict=True)
            ]
            if all(counts):
                self._differ(min(counts), min(counts))
            elif (counts[0] and reached[1]) or (counts[1] and reached[0]):
                self._differ(*counts)
            else:
                break
        if all(reached) and any(log and log[0].offset >= offset for log, offset in zip(logs, agreed, strict=True)):
            self._agreement = None
        return all(reached)

    def _pass_first(self) -> None:
        """Pass the source's records before the first offset run, since their target offsets are not known."""
        first_run = self._offsets.runs[0].upstream if self._offsets.runs else 0
        while self.source and self.source[0].offset < first_run:
            record = self.source.popleft()
            self._findings.not_compared(NotComparedReason.BEFORE_THE_RUNS, record.offset, -1)
            self._passed = record.offset, self._passed[1]

    def _pass_removed(self, source: AlignedRecord, target: AlignedRecord) -> bool:
        """Pass the first record of a log if the other log has lost its counterpart by the offset runs.

        Contents cannot decide that, because equal records may follow each other.
        """
        if source.offset - self._passed[0] == target.offset - self._passed[1]:
            return False  # as far from the last pair in both logs
        origin = self._offsets.find_source(target.offset - self.shift) if target.is_ours else None
        if origin is not None and self._passed[0] < origin < source.offset:
            self._findings.not_compared(NotComparedReason.REMOVED_ON_SOURCE, origin, target.offset)
            self._passed = origin, self.target.popleft().offset
            return True
        named = self._offsets.find_target(source.offset) if self._rules.is_compacted else None
        if named is not None and self._passed[1] < named + self.shift < target.offset:
            self._findings.not_compared(NotComparedReason.REMOVED_ON_TARGET, source.offset, -1)
            self._passed = self.source.popleft().offset, named + self.shift
            return True
        return False

    def _pair(self, source: AlignedRecord, target: AlignedRecord) -> None:
        if not target.has_own_time:
            self._findings.not_compared(NotComparedReason.TIMESTAMP, source.offset, target.offset)
        self._add_pair(source.offset, target.offset)

    def _add_pair(self, source: int, target: int) -> None:
        self._pairs += 1
        self._passed = source, target
        self._findings.pair()
        self._check_offset(source, target)

    def _check_offset(self, source: int, target: int) -> None:
        """Report a record whose target offset is not the one that the offset runs name, once for each distance."""
        named = self._offsets.find_target(source)
        if named is None:
            return
        if target - named not in (0, self.shift):
            self._findings.difference(Difference(DifferenceKind.OFFSET.value, source, target))
        self.shift = target - named

    def _find_agreement(self) -> tuple[int, int]:
        """Return how many records of each log to pass until both agree, or all that were searched if they do not."""
        source = [record for record, _ in zip(self.source, range(AHEAD), strict=False)]
        target = [record for record, _ in zip(self.target, range(AHEAD), strict=False)]
        indexes: dict[object, list[int]] = {}
        for index, record in enumerate(target):
            indexes.setdefault(record.content[1:], []).append(index)
        best = len(source), len(target)
        for i, record in enumerate(source):
            if i >= sum(best):
                break
            for j in indexes.get(record.content[1:], ()):
                if i + j >= sum(best):
                    break
                pairs = zip(source[i : i + 1 + CONFIRMED], target[j : j + 1 + CONFIRMED], strict=False)
                if all(_are_equal(source_record, target_record) for source_record, target_record in pairs):
                    best = i, j
                    break
        return best

    def _differ(self, sources: int, targets: int) -> None:
        """Take the next records of each log, which do not agree, and report each as pair, difference or lone record."""
        source = [self.source.popleft() for _ in range(sources)]
        target = [self.target.popleft() for _ in range(targets)]
        behind = self.source[0].offset if self.source else None
        pairs = self._counterparts(source, target)
        paired = {counterpart.offset for counterpart in pairs.values()}
        present = {record.offset for record in source}
        passed = self._passed[0]
        for record in source:
            counterpart = pairs.get(record.offset)
            if counterpart is None:
                self._report_only_source(record)
            elif _are_equal(record, counterpart):
                self._pair(record, counterpart)
            else:
                parts = changed_parts(record.content, counterpart.content, timestamps=counterpart.has_own_time)
                self._findings.difference(Difference(parts, record.offset, counterpart.offset))
                self._add_pair(record.offset, counterpart.offset)
        for counterpart in target:
            if counterpart.offset not in paired:
                self._report_only_target(counterpart, passed, present, behind)
        self._passed = (
            source[-1].offset if source else self._passed[0],
            target[-1].offset if target else self._passed[1],
        )

    def _counterparts(
        self, source: Sequence[AlignedRecord], target: Sequence[AlignedRecord]
    ) -> dict[int, AlignedRecord]:
        """Return the target's records in the places of the source's, by source offset.

        A record whose content is in both logs at different places was moved, so it has none.
        """
        own_records = {copy.offset: copy for copy in target if copy.is_ours}
        named = {record.offset: self._offsets.find_target(record.offset) for record in source}
        if len(source) == len(target) == len(own_records) and None in named.values():
            counterparts = {record.offset: copy for record, copy in zip(source, target, strict=True)}
        else:
            counterparts = {
                offset: own_records[target_offset + self.shift]
                for offset, target_offset in named.items()
                if target_offset is not None and target_offset + self.shift in own_records
            }
        contents = {record.content for record in source} & {copy.content for copy in target}
        by_offset = {record.offset: record for record in source}
        return {
            offset: copy
            for offset, copy in counterparts.items()
            if _are_equal(by_offset[offset], copy)
            or not (by_offset[offset].content in contents or copy.content in contents)
        }

    # -- what only one log has -----------------------------------------------------------------------------------------

    def _report_only_source(self, record: AlignedRecord) -> None:
        named = self._offsets.find_target(record.offset)
        absence = self._offsets.explain_absence(record.offset)
        if absence is not None:
            self._findings.not_compared(absence, record.offset, -1)
        elif named is not None and any(first <= named + self.shift <= last for first, last in self.unreadable):
            self._findings.not_compared(NotComparedReason.UNREADABLE, record.offset, named + self.shift)
        elif self._rules.is_compacted and named is not None:
            self._findings.not_compared(NotComparedReason.REMOVED_ON_TARGET, record.offset, -1)
        else:
            self._add_lone(record, is_source=True)

    def _report_only_target(
        self, record: AlignedRecord, passed: int, present: Collection[int], behind: int | None
    ) -> None:
        """Report a record that only the target has.

        Args:
            record: The record.
            passed: The source's last offset before the records that differ.
            present: The offsets of the source's records that differ.
            behind: The source's first offset after them.
        """
        if not record.is_ours:
            if not self._rules.has_foreign_writers:
                self._findings.difference(Difference(DifferenceKind.FOREIGN.value, -1, record.offset))
            return
        origin = self._offsets.find_source(record.offset - self.shift)
        if origin is not None and origin not in present and passed < origin and (behind is None or origin < behind):
            self._findings.not_compared(NotComparedReason.REMOVED_ON_SOURCE, origin, record.offset)
        else:
            self._add_lone(record, is_source=False)

    def _add_lone(self, record: AlignedRecord, *, is_source: bool) -> None:
        for index, lone in enumerate(self._lone):
            if lone.is_source is not is_source and lone.record.content == record.content:
                del self._lone[index]
                source, target = (record, lone.record) if is_source else (lone.record, record)
                self._findings.difference(Difference(DifferenceKind.ORDER.value, source.offset, target.offset))
                return
        self._lone.append(_Lone(record, is_source, self._pairs))
        if len(self._lone) > 2 * AHEAD:
            self._report(self._lone.pop(0))

    def _report_lone(self, *, at_end: bool) -> None:
        """Report lone records that are in no other place of the other log, as far as it is searched."""
        while self._lone and (at_end or self._pairs - self._lone[0].since > AHEAD):
            self._report(self._lone.pop(0))

    def _report(self, lone: _Lone) -> None:
        missing, extra = DifferenceKind.MISSING.value, DifferenceKind.EXTRA.value
        offset = lone.record.offset
        self._findings.difference(Difference(missing, offset) if lone.is_source else Difference(extra, -1, offset))


def _count_before(log: deque[AlignedRecord], limit: int) -> int:
    """Return how many of the first records are before the offset."""
    return next((number for number, record in enumerate(log) if record.offset >= limit), len(log))


def _are_equal(source: AlignedRecord, target: AlignedRecord) -> bool:
    """Return whether two records are equal. Producer ids do not count, since a flow may have had others before."""
    if target.has_own_time:
        return source.content == target.content
    return source.content[1:] == target.content[1:]
