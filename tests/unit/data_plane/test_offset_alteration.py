"""What altering an offset makes of a partition's row: it says where to begin, and claims nothing of what is there."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from lockstep_data_plane.admin.offset_admin import (
    altered_rows,
    connect_entry,
    not_located,
    partitions_to_check,
    refuse_beyond,
    reset_rows,
)
from lockstep_data_plane.record_batch.outgoing_batch import EPOCHS
from lockstep_rules.offsets.run_translator import NoRun, RunTranslator, TranslatedOffset, UpstreamPosition
from lockstep_state.codecs.connect_offsets import OffsetChange, RefusedOffsets
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress
from tests.support.reasons import reported

COPIED = PartitionProgress(
    topic="orders",
    partition=3,
    upstream=99,
    upstream_epoch=4,
    downstream=99,
    producer_id=7,
    producer_epoch=2,
    sequence=99,
    others=((9, 4),),
    source_topic_id="s",
    target_topic_id="t",
    open_run=(0, 0, 100),
    source_end=120,
    skips=((101, 101),),
    given_up=5,
    phase="halted",
    cause=reported("records are gone"),
    case="records-gone",
)


def change(offset: int | None, partition: int = 3, cluster: str = "A", topic: str = "orders") -> OffsetChange:
    return OffsetChange({"cluster": cluster, "partition": partition, "topic": topic}, offset)


@pytest.mark.parametrize(("offset", "begins"), [(10, "altered"), (119, "altered"), (None, "reset")])
def test_the_row_begins_an_epoch_of_which_nothing_is_there(offset: int | None, begins: str) -> None:
    (row,) = altered_rows([replace(COPIED, located=True)], "A", [change(offset)])
    assert not row.located, "it does not claim that the copy ends there"
    assert (row.begins, row.upstream, row.producer_epoch) == (begins, -1 if offset is None else offset, 3)
    assert not row.begun
    assert (row.open_run, row.skips, row.upstream_epoch) == ((), (), -1)
    assert (row.phase, row.reason, row.case) == ("stopped", "", "")
    assert row.given_up == 5, "what happened in the partition's life"
    assert row.lag_records == 120 - 1 - row.upstream


def test_altered_rows_repeated_are_unchanged_and_keep_their_epoch() -> None:
    (row,) = altered_rows([COPIED], "A", [change(10)])
    assert altered_rows([row], "A", [change(10)]) == []
    (again,) = altered_rows([row], "A", [change(50)])
    assert (again.upstream, again.producer_epoch) == (50, 3)
    (reset,) = reset_rows([again])
    assert (reset.begins, reset.producer_epoch) == ("reset", 3)
    assert reset_rows([reset]) == []


def test_altered_rows_have_the_last_offset_and_ignore_foreign_partitions() -> None:
    (row,) = altered_rows([COPIED], "A", [change(10), change(20)])
    assert row.upstream == 20
    for foreign in (change(1, partition=4), change(1, cluster="C"), change(1, topic="x"), OffsetChange({"a": 1}, None)):
        assert altered_rows([COPIED], "A", [foreign]) == []
    assert altered_rows([COPIED], "A", [OffsetChange(None, None)]) == []


@pytest.mark.parametrize(
    ("end", "offset", "sentence"),
    [
        (120, 119, ""),
        (120, 120, "orders-3 has no offset 120 on A, and would halt as truncated; its last offset is 119"),
        (1_200, 5_000, "no offset 5,000 on A, .* last offset is 1,199: name that one at most"),
        (0, 0, "it is empty: reset it"),
        (0, None, ""),
    ],
)
def test_an_offset_that_the_source_has_not_written_is_refused(end: int, offset: int | None, sentence: str) -> None:
    changes = [change(5, topic="away"), change(0, cluster="C"), OffsetChange({"a": 1}, None), change(offset)]
    with pytest.raises(RefusedOffsets, match=sentence) if sentence else nullcontext():
        refuse_beyond(changes, "A", {("orders", 3): end})


def test_offset_lookup_covers_existing_partitions_with_an_offset_only() -> None:
    topics = [
        MirroredTopic(source_topic="orders", target_topic="A.orders", partitions=4, phase="failed"),
        MirroredTopic(source_topic="gone", target_topic="A.gone", partitions=4, phase="deleted"),
    ]
    rubbish = [OffsetChange(None, None), change(1, cluster="C"), change(1, topic="unknown"), change(1, topic="gone")]
    changes = [*rubbish, change(7), change(7, partition=4), change(None, partition=2)]
    assert partitions_to_check(changes, "A", topics) == {("orders", 3)}


def test_without_an_epoch_left_it_is_refused() -> None:
    with pytest.raises(RefusedOffsets, match="orders-3"):
        reset_rows([replace(COPIED, producer_epoch=EPOCHS)])


def test_altered_row_is_listed_as_connect_lists_it() -> None:
    assert connect_entry(COPIED, "A").offset == 99
    (altered,) = altered_rows([COPIED], "A", [change(10)])
    assert connect_entry(altered, "A").offset == 10
    (reset,) = reset_rows([COPIED])
    assert connect_entry(reset, "A").offset is None
    assert connect_entry(PartitionProgress(topic="new", partition=0), "A").offset is None


def test_a_row_of_the_epoch_before_does_not_undo_it() -> None:
    (row,) = altered_rows([COPIED], "A", [change(10)])
    assert COPIED.is_outdated_by(row)
    assert not row.is_outdated_by(COPIED)
    for other in (
        replace(COPIED, producer_id=8),
        replace(COPIED, source_topic_id="new"),
        replace(COPIED, target_topic_id="new"),
    ):
        assert not other.continues(row)
        assert not other.is_outdated_by(row), "another chain"


@pytest.mark.parametrize("offset", [10, 119, None])
def test_altered_row_gives_no_group_position_of_the_former_chain(offset: int | None) -> None:
    (row,) = altered_rows([COPIED], "A", [change(offset)])
    translator = RunTranslator()
    topic = MirroredTopic(source_topic="orders", target_topic="A.orders", source_topic_id="s", target_topic_id="t")
    translator.load([topic, replace(COPIED, phase="copying"), row])
    assert translator.translate("orders", 3, UpstreamOffset(60)) == TranslatedOffset(
        None, reason=ReasonCode.NOTHING_COPIED.to_reason()
    )
    begun = replace(row, begins="", phase="copying", upstream=10, downstream=99)
    translator.apply(begun)
    translated = translator.translate("orders", 3, UpstreamOffset(60))
    assert isinstance(translated, TranslatedOffset)
    assert (translated.offset, translated.behind) == (100, 49), "no further than what will be appended"


def test_altered_rows_left_half_way_are_completed_by_a_repeat() -> None:
    rows = [replace(COPIED, partition=number) for number in range(3)]
    changes = [change(10, partition=number) for number in range(3)]
    wanted = altered_rows(rows, "A", changes)
    half = [*wanted[:1], *rows[1:]]
    assert altered_rows(half, "A", changes) == wanted[1:]
    assert reset_rows([*reset_rows(rows[:1]), *rows[1:]]) == reset_rows(rows[1:])


def test_not_located_rows_are_listed_with_doubtful_ones_last() -> None:
    topics = [MirroredTopic(source_topic="orders", target_topic="A.orders")]
    doubt, copied = COPIED, replace(COPIED, partition=4, phase="copying")
    located = replace(copied, located=True)
    assert not_located([doubt, copied], topics) == [copied, doubt]
    assert not_located([located, replace(copied, begins="altered")], topics) == []
    assert not_located([copied], []) == [], "what is mirrored no more is nobody's to find"
    assert not_located([copied], [replace(topics[0], phase="deleted")]) == []


AT_REST = replace(COPIED, phase="stopped", cause=NO_REASON, case="", skips=())
RUNS = OffsetRuns(
    topic="orders",
    partition=3,
    chunk=0,
    generation=2,
    producer_id=7,
    source_topic_id="s",
    target_topic_id="t",
    runs=((0, 0, 40),),
)
TOPIC = MirroredTopic(source_topic="orders", target_topic="A.orders", source_topic_id="s", target_topic_id="t")


@pytest.mark.parametrize("offset", [99, 119])
def test_row_altered_to_an_offset_further_on_keeps_its_runs(offset: int) -> None:
    at_rest = replace(AT_REST, open_run=(50, 40, 50), downstream=89)
    (row,) = altered_rows([at_rest], "A", [change(offset)])
    assert (row.open_run, row.producer_epoch, row.begun) == ((50, 40, 50), 3, False)
    for rows in ([TOPIC, RUNS, at_rest, row], [TOPIC, RUNS, row], [TOPIC, row, RUNS]):
        translator = RunTranslator()
        translator.load(rows)
        for position, place in ((7, 7), (60, 50), (100, 90), (offset + 1, 90)):
            assert translator.translate("orders", 3, UpstreamOffset(position)) == TranslatedOffset(
                DownstreamOffset(place)
            )
        back = translator.translate_upstream("orders", 3, 95)
        assert back == UpstreamPosition(UpstreamOffset(100), follows=True, known_until=90, left_out_until=offset + 1)
        at_the_end = translator.translate_upstream("orders", 3, 90)
        assert at_the_end == UpstreamPosition(UpstreamOffset(100), follows=True, known_until=90)


def test_row_altered_twice_keeps_its_runs_only_behind_them() -> None:
    (row,) = altered_rows([AT_REST], "A", [change(119)])
    (nearer,) = altered_rows([row], "A", [change(105)])
    assert (nearer.open_run, nearer.upstream, nearer.producer_epoch) == ((0, 0, 100), 105, 3)
    (before,) = altered_rows([nearer], "A", [change(98)])
    assert before.open_run == ()
    (reset,) = reset_rows([nearer])
    assert reset.open_run == ()


def test_rows_of_the_epoch_that_follows_an_alteration_count_alone() -> None:
    (row,) = altered_rows([AT_REST], "A", [change(119)])
    begun = replace(row, begins="", phase="copying", sequence=9, upstream=129, downstream=139, open_run=(120, 130, 10))
    translator = RunTranslator()
    translator.load([TOPIC, row, begun])
    assert translator.translate("orders", 3, UpstreamOffset(125)) == TranslatedOffset(DownstreamOffset(135))
    assert isinstance(translator.translate("orders", 3, UpstreamOffset(60)), NoRun), "the slot writes these runs again"
    back = translator.translate_upstream("orders", 3, 140)
    assert isinstance(back, UpstreamPosition)
    assert back.left_out_until == 0
