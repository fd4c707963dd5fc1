"""The run translator is exact or earlier than exact, never too far (issue 5, decision 0021)."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.run_translator import NoRun, RunTranslator, TranslatedOffset
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, OffsetRuns, PartitionProgress, Row
from tests.support.offset_truth import FIRST, Copied, Stretch, exact_places, logs
from tests.support.reasons import reported

TOPIC = MirroredTopic(
    source_topic="t", target_topic="A.t", source_topic_id="source", target_topic_id="target", partitions=1
)
GAP = ((10, 5, 10), (21, 15, 4))
"""A marker at upstream 20."""


def folded(*rows: Row) -> RunTranslator:
    translator = RunTranslator()
    for row in rows:
        translator.apply(row)
    return translator


def at(translator: RunTranslator, upstream: int) -> TranslatedOffset | NoRun:
    return translator.translate("t", 0, UpstreamOffset(upstream))


def copied(stretches: Iterable[Stretch]) -> Copied:
    partition = Copied()
    partition.copies(list(stretches))
    partition.writes()
    return partition


def exactly(downstream: int) -> TranslatedOffset:
    return TranslatedOffset(DownstreamOffset(downstream))


@pytest.mark.parametrize(
    ("upstream", "wanted"),
    [
        (10, exactly(5)),
        (19, exactly(14)),
        (20, exactly(15)),
        (21, exactly(15)),
        (25, exactly(19)),
        (26, TranslatedOffset(DownstreamOffset(19), behind=1)),
        (99, TranslatedOffset(DownstreamOffset(19), behind=74)),
        (9, NoRun(DownstreamOffset(5))),
        (0, NoRun(DownstreamOffset(5))),
    ],
)
def test_group_position_is_translated_from_runs(upstream: int, wanted: TranslatedOffset | NoRun) -> None:
    assert at(folded(TOPIC, *copied(GAP).log), upstream) == wanted


def test_behind_counts_from_the_last_skipped_record() -> None:
    partition = copied(GAP)
    partition.passes_over(3)
    partition.writes()
    translator = folded(TOPIC, *partition.log)
    assert at(translator, 28) == exactly(19)
    assert at(translator, 30) == TranslatedOffset(DownstreamOffset(19), behind=2)


def test_a_partition_without_a_row_is_not_ours_to_say() -> None:
    """What MirrorMaker 2 copies, and what the data plane has not begun with."""
    assert at(folded(TOPIC), 5) == NoRun()
    assert folded(TOPIC, *copied(GAP).log).translate("t", 1, UpstreamOffset(15)) == NoRun()


def test_mm2_166_an_empty_partition_has_a_place() -> None:
    assert at(folded(TOPIC, replace(FIRST, upstream=-1, downstream=-1)), 0) == exactly(0)


def test_group_position_of_a_halted_partition_with_no_copy_has_a_reason() -> None:
    row = replace(FIRST, upstream=99, downstream=-1, phase="halted", cause=reported("records 5 to 9 are gone"))
    assert at(folded(TOPIC, row), 100) == TranslatedOffset(
        None, reason=ReasonCode.NOTHING_COPIED.to_reason(text="records 5 to 9 are gone")
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"source_topic_id": "new"}, ReasonCode.SOURCE_RECREATED),
        ({"target_topic_id": "new"}, ReasonCode.TARGET_RECREATED),
    ],
)
def test_rows_about_a_topic_that_was_created_anew_count_for_nothing(change: dict[str, str], code: str) -> None:
    """Nor may offset syncs answer: they are about the old one."""
    translator = folded(TOPIC, *copied(GAP).log)
    translator.apply(replace(TOPIC, **change))  # type: ignore[arg-type]  # two of its texts
    translated = at(translator, 15)
    assert isinstance(translated, TranslatedOffset)
    assert translated.offset is None
    assert translated.reason.code == code
    again = replace(FIRST, **change, upstream=-1, downstream=-1)  # type: ignore[arg-type]  # two of its texts
    translator.apply(again)
    assert at(translator, 0) == exactly(0), "the new topic's own rows do"
    assert at(translator, 15) == TranslatedOffset(DownstreamOffset(0), behind=15)


def test_group_position_without_a_topic_row_is_unknown() -> None:
    translated = at(folded(*copied(GAP).log), 15)
    assert isinstance(translated, TranslatedOffset)
    assert translated.offset is None
    assert translated.reason == ReasonCode.TOPIC_UNKNOWN.to_reason()


def test_brokers_without_topic_ids() -> None:
    topic = replace(TOPIC, source_topic_id="", target_topic_id="")
    rows = [
        replace(row, source_topic_id="", target_topic_id="")
        for row in copied(GAP).log
        if isinstance(row, PartitionProgress | OffsetRuns)
    ]
    assert at(folded(topic, *rows), 15) == exactly(10)


def test_a_truncated_target_makes_what_was_known_unknown() -> None:
    partition = copied(GAP)
    partition.begins_again(25, 3, in_place=False)
    partition.writes()
    translator = folded(TOPIC, *partition.log)
    assert at(translator, 25) == exactly(3)
    translated = at(translator, 15)
    assert isinstance(translated, NoRun) or (translated.offset is not None and translated.offset <= 3)


def test_a_slot_that_woke_late_changes_nothing() -> None:
    partition = copied(GAP)
    late = partition.log[-1]
    partition.begins_again(25, 3, in_place=False)
    partition.writes()
    translator = folded(TOPIC, *partition.log, late)
    assert at(translator, 25) == exactly(3)
    other = folded(TOPIC, *partition.log)
    assert at(other, 25) == exactly(3)
    other.apply(late)
    assert at(other, 25) == exactly(3)


def test_translator_changes_are_kept_by_topic() -> None:
    translator = folded(TOPIC)
    before, aside = translator.changes(["t", "t"]), translator.changes(["other"])
    translator.apply(copied(GAP).log[-1])
    assert translator.changes(["t", "t"]) != before
    assert translator.changes(["other"]) == aside
    before = translator.changes(["t"])
    translator.apply(GroupStatus(group="t", phase="waiting"))
    assert translator.changes(["t"]) == before


def test_beginning_again_forgets_what_the_topic_no_longer_holds() -> None:
    translator = folded(TOPIC, *copied(GAP).log)
    translator.load([TOPIC])
    assert at(translator, 15) == NoRun()


@given(logs(), st.data())
def test_group_position_is_exact_after_every_row(stretches: list[Stretch], data: st.DataObject) -> None:
    """Asked between the rows, now and then, so that maps go on from what was put together before."""
    partition, translator, rows_read = Copied(), folded(TOPIC), 0
    for stretch in stretches:
        partition.copies([stretch])
        if data.draw(st.booleans()):
            partition.dies_and_goes_on()
        partition.writes()
        for row in partition.log[rows_read:]:
            translator.apply(row)
        rows_read = len(partition.log)
        if data.draw(st.booleans()):
            at(translator, 0)
        true = exact_places(partition.stretches)
        last = max(up + count for up, _, count in partition.stretches)
        for position, place in true.items():
            translated = at(translator, position)
            assert isinstance(translated, TranslatedOffset)
            assert translated.offset == place
            if position > last:
                assert translated.behind == position - last
            elif any(up <= position <= up + count for up, _, count in partition.stretches):
                assert translated.exact


@given(logs(), st.data())
def test_rows_that_are_late_twice_or_missing_never_lead_too_far(stretches: list[Stretch], data: st.DataObject) -> None:
    partition = Copied()
    for stretch in stretches:
        partition.copies([stretch])
        partition.writes()
    seen = data.draw(st.lists(st.sampled_from(partition.log), max_size=2 * len(partition.log)))
    translator = folded(TOPIC)
    true = exact_places(stretches)
    for row in seen:
        translator.apply(row)
        before = -1
        for position, place in true.items():
            translated = at(translator, position)
            if isinstance(translated, TranslatedOffset) and translated.offset is not None:
                assert before <= translated.offset <= place
                between = sum(max(0, min(place, d + n) - max(translated.offset, d)) for _, d, n in stretches)
                assert between <= translated.behind, "it is at most so much behind"
                before = translated.offset
            elif isinstance(translated, NoRun) and translated.most is not None:
                assert translated.most >= place, "what offset syncs may say is not cut too short"
