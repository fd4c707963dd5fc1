"""Failback of groups: no unread record is skipped, and records read again are counted (decision 0025)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_data_plane.admin.offset_admin import with_position
from lockstep_rules.offsets.failback import translate_failback
from lockstep_rules.offsets.offset_sync_store import OffsetSyncStore
from lockstep_rules.offsets.offset_translator import OffsetTranslator, ReverseTranslation
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row
from tests.support.offset_truth import FIRST, Copied

TOPIC = MirroredTopic(
    source_topic="t", target_topic="t", source_topic_id="source", target_topic_id="target", partitions=1
)
RENAMED = replace(TOPIC, target_topic="B.t")


def folded(rows: Iterable[Row]) -> RunTranslator:
    translator = RunTranslator()
    translator.load(rows)
    return translator


NOTHING = folded(())
UNREADABLE = ReasonCode.OPPOSITE_UNREADABLE.to_reason(text="rows of B->A: not read to their end yet")


@dataclass
class Log:
    """What lies in a log: where each record was written first, and its number there."""

    name: str
    records: list[tuple[str, int]] = field(default_factory=list)
    written: int = 0

    def produce(self) -> None:
        self.records.append((self.name, self.written))
        self.written += 1

    def offset_of(self, record: tuple[str, int]) -> int:
        """The end of the log, where it is not there yet."""
        return self.records.index(record) if record in self.records else len(self.records)


class Copier:
    """A flow that copies what originated on its source."""

    def __init__(self, source: Log, target: Log) -> None:
        self.source, self.target = source, target
        self.read = 0
        self.copied: Copied | None = None

    def by_another_mirror(self, records: int) -> None:
        """What was copied before we took over."""
        for record in self.source.records[self.read : self.read + records]:
            self._append(record)
        self.read = min(len(self.source.records), self.read + records)

    def _append(self, record: tuple[str, int]) -> bool:
        if record[0] == self.source.name:
            self.target.records.append(record)
        return record[0] == self.source.name

    def copies(self, records: int) -> None:
        rows = self._begun()
        for record in self.source.records[self.read : self.read + records]:
            if self._append(record):
                rows.copies([(self.read, len(self.target.records) - 1, 1)])
            else:
                rows.passes_over(1)
            self.read += 1

    def writes(self) -> None:
        self._begun().writes()

    def _begun(self) -> Copied:
        if self.copied is None:
            progress = replace(FIRST, upstream=self.read - 1, downstream=len(self.target.records) - 1)
            self.copied = Copied(progress=progress)
            self.copied.writes()
        return self.copied

    def rows(self, *, only_last: bool) -> list[Row]:
        """All that was ever written, or what compaction leaves of it."""
        if self.copied is None:
            return [TOPIC]
        return [TOPIC, *(self.copied.present().values() if only_last else self.copied.log)]


def never_skips(
    a: Log, b: Log, reverse: RunTranslator, forward: RunTranslator, left_out: Collection[tuple[str, int]] = ()
) -> None:
    """Check each committed offset on a: its place on b skips no unread record, and re-reads at most `behind`."""
    everything = [(log.name, number) for log in (a, b) for number in range(log.written)]
    for position in range(len(a.records) + 1):
        place = translate_failback(reverse, "t", forward, "t", 0, UpstreamOffset(position))
        if place.offset is None:
            continue
        unread = [record for record in everything if a.offset_of(record) >= position and record not in left_out]
        assert all(b.offset_of(record) >= place.offset for record in unread), (position, place, a, b)
        again = [r for r in everything if a.offset_of(r) < position and b.offset_of(r) >= place.offset]
        assert len(again) <= place.behind, (position, place, a, b)


STEPS = st.lists(st.tuples(st.sampled_from("aabbABABxy"), st.integers(1, 4)), max_size=60)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), STEPS, st.booleans())
@settings(max_examples=400)
def test_failback_between_two_identity_flows_never_skips_a_record(
    at_a: int, at_b: int, taken_a: int, taken_b: int, steps: Sequence[tuple[str, int]], only_last: bool
) -> None:
    a, b = Log("a"), Log("b")
    forth, back = Copier(a, b), Copier(b, a)
    for _ in range(at_a):
        a.produce()
    for _ in range(at_b):
        b.produce()
    forth.by_another_mirror(taken_a)
    back.by_another_mirror(taken_b)
    run_steps(steps, forth, back)
    reverse, forward = folded(back.rows(only_last=only_last)), folded(forth.rows(only_last=only_last))
    never_skips(a, b, reverse, forward)


@given(st.integers(0, 6), st.integers(0, 6), STEPS, STEPS, st.booleans())
@settings(max_examples=400)
def test_failback_without_records_left_out_never_skips_others(
    at_a: int, at_b: int, steps: Sequence[tuple[str, int]], later: Sequence[tuple[str, int]], only_last: bool
) -> None:
    """As above, and an operator decides meanwhile that the flow from b goes on behind what b has then."""
    a, b = Log("a"), Log("b")
    forth, back = Copier(a, b), Copier(b, a)
    for log, count in ((a, at_a), (b, at_b)):
        for _ in range(count):
            log.produce()
    run_steps(steps, forth, back)
    back.writes()
    left_out = {record for record in b.records[back.read :] if record[0] == "b"}
    before = back.rows(only_last=only_last)
    row = next(row for row in reversed(before) if isinstance(row, PartitionProgress))
    altered = with_position(replace(row, phase="stopped"), len(b.records) - 1)
    run_steps([step for step in later if step[0] in "abAx"], forth, back)
    forth.writes()
    reverse, forward = folded([*before, altered]), folded(forth.rows(only_last=only_last))
    never_skips(a, b, reverse, forward, left_out)


@pytest.mark.parametrize("left_out", [0, 3])
def test_failback_of_a_group_goes_on_behind_records_left_out(left_out: int) -> None:
    """A failover from b to a, which lost the last records of b: a group has read all that was written on a since."""
    a, b = Log("a"), Log("b")
    forth, back = Copier(a, b), Copier(b, a)
    run_steps([("b", 5), ("B", 5)], forth, back)
    forth.copies(5)  # they came from b
    run_steps([("b", left_out), ("a", 7), ("y", 1), ("A", 7), ("x", 1)], forth, back)
    (*before, row) = back.rows(only_last=True)
    assert isinstance(row, PartitionProgress)
    altered = with_position(replace(row, phase="stopped"), len(b.records) - 1)
    reverse, forward = folded([*before, altered]), folded(forth.rows(only_last=True))
    for read, place in ((5, 5 + left_out), (6, 6 + left_out), (12, 12 + left_out)):
        assert translate_failback(reverse, "t", forward, "t", 0, UpstreamOffset(read)) == TranslatedOffset(
            DownstreamOffset(place)
        )


def run_steps(steps: Iterable[tuple[str, int]], forth: Copier, back: Copier) -> None:
    """Lower case: records are written on that side. Upper case: the flow from there copies. x, y: rows are written."""
    for step, number in steps:
        for _ in range(number if step in "ab" else 0):
            (forth if step == "a" else back).source.produce()
        match step:
            case "A":
                forth.copies(number)
            case "B":
                back.copies(number)
            case "x":
                forth.writes()
            case "y":
                back.writes()


@given(STEPS)
def test_names_of_their_own(steps: Sequence[tuple[str, int]]) -> None:
    """What B.t on A holds all came from B: with all rows written each position is exact."""
    a, b = Log("a"), Log("b")
    back = Copier(b, a)
    for step, number in steps:
        for _ in range(number if step == "b" else 0):
            b.produce()
        if step == "B":
            back.copies(number)
    back.writes()
    reverse = folded([RENAMED, *back.rows(only_last=True)[1:]])
    for position in range(len(a.records) + 1):
        place = translate_failback(reverse, "t", NOTHING, "B.t", 0, UpstreamOffset(position))
        assert place == TranslatedOffset(DownstreamOffset(position if a.records else 0))


class TestAPairOfWhichOneSideIsPassive:
    """Everything is written on B, a mirror of the same names leads to A, and groups moved to A."""

    def translator(self, *, records: int, copied: int) -> tuple[RunTranslator, RunTranslator]:
        a, b = Log("a"), Log("b")
        forth, back = Copier(a, b), Copier(b, a)
        for _ in range(records):
            b.produce()
        forth.copies(0)
        back.copies(copied)
        forth.copies(copied)
        forth.writes()
        back.writes()
        return folded(back.rows(only_last=True)), folded(forth.rows(only_last=True))

    def test_failback_of_a_group_is_at_the_exact_record(self) -> None:
        reverse, forward = self.translator(records=100, copied=100)
        assert translate_failback(reverse, "t", forward, "t", 0, UpstreamOffset(60)) == TranslatedOffset(
            DownstreamOffset(60)
        )
        assert translate_failback(reverse, "t", forward, "t", 0, UpstreamOffset(100)).offset == 100

    def test_failback_of_a_group_that_moved_before_any_write_there(self) -> None:
        """The same pair seen from the other side: all records of the log are its own."""
        reverse, forward = self.translator(records=100, copied=100)
        assert translate_failback(forward, "t", reverse, "t", 0, UpstreamOffset(60)) == TranslatedOffset(
            DownstreamOffset(60)
        )


class TestWhoAnswers:
    def translator(self, opposite: ReverseTranslation | None) -> OffsetTranslator:
        store = OffsetSyncStore(keep_only_newest=False)
        store.finish_reading()
        return OffsetTranslator(NOTHING, store, reverse=opposite, origin={"B.t": "t"}.get)

    def test_the_reverse_flow_for_what_it_writes(self) -> None:
        partition = Copied()
        partition.copies([(10, 0, 20)])
        partition.writes()
        translator = self.translator(ReverseTranslation(folded([RENAMED, *partition.log])))
        assert translator.translate("B.t", 0, UpstreamOffset(5)) == TranslatedOffset(DownstreamOffset(15))
        assert translator.translate("u", 0, UpstreamOffset(5)).reason.code == "no-offset-sync"

    def test_failback_without_readable_rows_is_unknown_with_its_reason(self) -> None:
        translator = self.translator(ReverseTranslation(unreadable=UNREADABLE))
        assert format_sentence(translator.translate("B.t", 0, UpstreamOffset(5)).reason) == (
            "rows of B->A: not read to their end yet"
        )
        assert translator.translate("u", 0, UpstreamOffset(5)).reason.code == "no-offset-sync"

    @pytest.mark.parametrize("opposite", [None, ReverseTranslation(), ReverseTranslation(NOTHING)])
    def test_failback_without_a_reverse_flow_is_unknown_with_its_reason(
        self, opposite: ReverseTranslation | None
    ) -> None:
        place = self.translator(opposite).translate("B.t", 0, UpstreamOffset(5))
        assert place.reason.code == "opposite-missing"


def test_a_topic_created_anew_waits() -> None:
    partition = Copied()
    partition.copies([(0, 0, 20)])
    partition.writes()
    translator = folded([replace(RENAMED, source_topic_id="another"), *partition.log])
    place = translate_failback(translator, "t", NOTHING, "B.t", 0, UpstreamOffset(5))
    assert place.offset is None
    assert place.reason.code == "opposite-target-recreated"


def test_failback_before_the_first_known_record_is_unknown() -> None:
    """Of a copy that another mirror began."""
    partition = Copied(progress=replace(FIRST, upstream=99, downstream=49))
    partition.copies([(100, 50, 20)])
    partition.writes()
    translator = folded([RENAMED, *partition.log])
    assert translate_failback(translator, "t", NOTHING, "B.t", 0, UpstreamOffset(49)).offset is None
    assert translate_failback(translator, "t", NOTHING, "B.t", 0, UpstreamOffset(50)) == TranslatedOffset(
        DownstreamOffset(100)
    )
