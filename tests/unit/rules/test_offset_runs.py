"""Offset runs translate exactly, and never too far from any part of the rows (`architecture.md` §5)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.offset_runs import (
    Run,
    RunMap,
    Translation,
    UpstreamTranslation,
    decode_runs,
    encode_runs,
    merge_runs,
    translate,
    translate_upstream,
)
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress
from tests.support.offset_truth import FIRST, Copied, Stretch, exact_places, logs, read, translated

RUNS = (Run(10, 5, 10), Run(21, 15, 4), Run(30, 30, 1))
"""Between them: one upstream offset without a record, five upstream and eleven downstream ones."""


def copied(stretches: list[Stretch], draw: st.DataObject) -> Copied:
    """Copied, written down now and then, and killed now and then."""
    partition = Copied()
    for stretch in stretches:
        partition.copies([stretch])
        for what in draw.draw(st.lists(st.sampled_from(("write", "only runs", "die")), max_size=2)):
            if what == "die":
                partition.dies_and_goes_on()
            else:
                partition.writes(only_runs=what == "only runs")
    partition.passes_over(draw.draw(st.integers(0, 1)))
    partition.writes()
    return partition


def never_too_far(run_map: RunMap, places: dict[int, int]) -> None:
    """Also from before the first record that still counts: a group there has to see that one."""
    first = min(places)
    for position, translation in translated(run_map, range(max(places) + 1)):
        assert translation is None or translation.downstream <= places[max(position, first)]


@pytest.mark.parametrize(
    ("upstream", "wanted"),
    [
        (9, None),
        (10, (5, False, 0)),
        (19, (14, False, 0)),
        (20, (15, False, 0)),
        (21, (15, False, 0)),
        (24, (18, False, 0)),
        (25, (19, False, 0)),
        (26, (19, False, 11)),
        (29, (19, False, 11)),
        (30, (30, False, 0)),
        (31, (31, False, 0)),
        (32, (31, True, 0)),
        (99, (31, True, 0)),
    ],
)
def test_upstream_offset_in_runs_is_translated(upstream: int, wanted: tuple[int, bool, int] | None) -> None:
    translation = translate(RUNS, UpstreamOffset(upstream))
    assert translation == (None if wanted is None else Translation(DownstreamOffset(wanted[0]), *wanted[1:]))


def test_runs_translate_nothing_behind_the_decided_offset() -> None:
    """The last offset of a transaction is its marker, and committed offsets are behind it."""
    assert translate(RUNS, UpstreamOffset(32), decided=31) == Translation(DownstreamOffset(31), False, 0)
    assert translate(RUNS, UpstreamOffset(33), decided=31) == Translation(DownstreamOffset(31), True, 0)


def test_no_runs_translate_nothing() -> None:
    assert translate((), UpstreamOffset(0)) is None


def test_runs_travel_as_steps() -> None:
    row = OffsetRuns(topic="t", partition=0, chunk=0, upstream=10, downstream=5, runs=encode_runs(RUNS))
    assert row.runs == ((0, 0, 10), (1, 0, 4), (5, 11, 1))
    assert tuple(decode_runs(row)) == RUNS
    assert encode_runs(()) == ()


def test_union_of_what_two_writers_knew() -> None:
    assert merge_runs(RUNS[:2], RUNS[1:], [Run(15, 10, 3)]) == RUNS
    assert merge_runs([Run(0, 0, 5)], [Run(3, 3, 9)], [Run(12, 12, 1)], [Run(14, 13, 1)]) == (
        Run(0, 0, 13),
        Run(14, 13, 1),
    )


@given(logs(), st.data())
def test_every_position_translates_exactly_whatever_happened_meanwhile(
    stretches: list[Stretch], data: st.DataObject
) -> None:
    run_map = read(copied(stretches, data).log)
    places = exact_places(stretches)
    last = max(u + n for u, _, n in stretches)
    for position, translation in translated(run_map, places):
        assert translation is not None
        assert (translation.downstream, translation.behind) == (
            places[position],
            position > max(last, run_map.decided + 1),
        )
    assert run_map.translate(UpstreamOffset(min(places) - 1)) is None


@given(logs(), st.data())
def test_twice_out_of_order_and_missing_never_lead_too_far(stretches: list[Stretch], data: st.DataObject) -> None:
    log = copied(stretches, data).log
    seen = data.draw(st.lists(st.sampled_from(log), max_size=2 * len(log)))
    run_map = read(seen)
    places = exact_places(stretches)
    before = -1
    for position, translation in translated(run_map, places):
        if translation is not None:
            assert before <= translation.downstream <= places[position]
            between = sum(
                max(0, min(places[position], d + n) - max(translation.downstream, d)) for _, d, n in stretches
            )
            assert translation.behind or between <= translation.reread
            before = translation.downstream
    for row in seen:
        again = run_map.fold(row) if isinstance(row, OffsetRuns) else run_map.fold_progress(row)
        assert again == run_map, "twice changes nothing"


@given(logs(), st.data())
def test_runs_are_independent_of_the_order_of_rows(stretches: list[Stretch], data: st.DataObject) -> None:
    log = copied(stretches, data).log
    assert read(data.draw(st.permutations(log))).runs == read(log).runs
    rows = [row for row in log if isinstance(row, OffsetRuns)]
    progress = next(row for row in reversed(log) if isinstance(row, PartitionProgress))
    assert RunMap.build(progress, rows).runs == read(log).runs


@given(logs(), st.booleans(), st.booleans(), st.data())
def test_runs_of_a_new_generation_replace_invalid_ones(
    stretches: list[Stretch], write_before: bool, in_place: bool, data: st.DataObject
) -> None:
    """The target was truncated, the source begins elsewhere: of the old runs counts what lies below both."""
    partition = copied(stretches, data)
    before = list(partition.log)
    up, down, count = stretches[-1]
    begin = data.draw(st.integers(0, up + count + 5)), data.draw(st.integers(0, down + count))
    after = data.draw(logs(begin))
    if write_before:
        partition.writes()
    partition.begins_again(*begin, in_place=in_place)
    partition.copies(after)
    partition.writes()
    places = exact_places(partition.stretches)
    assert {p: t.downstream for p, t in translated(read(partition.log), places) if t is not None} == places

    new = [row for row in partition.log if row not in before]
    seen = data.draw(st.lists(st.sampled_from(partition.log), max_size=10))
    seen.insert(data.draw(st.integers(0, len(seen))), data.draw(st.sampled_from(new)))
    never_too_far(read(seen), places)


@given(logs(), st.data())
def test_killed_after_a_new_generation_began(stretches: list[Stretch], data: st.DataObject) -> None:
    """Whatever was written by then, what no longer holds does not come back."""
    partition = copied(stretches, data)
    up, down, count = stretches[-1]
    begin = data.draw(st.integers(0, up + count + 5)), data.draw(st.integers(0, down + count))
    partition.begins_again(*begin, in_place=data.draw(st.booleans()))
    after = data.draw(logs(begin))
    half = data.draw(st.integers(0, len(after)))
    partition.copies(after[:half])
    if data.draw(st.booleans()):
        partition.writes(only_runs=data.draw(st.booleans()))
    partition.dies_and_goes_on()
    partition.copies(after[half:])
    partition.writes()
    never_too_far(read(partition.log), exact_places(partition.stretches))
    new = exact_places(after)
    assert {p: t.downstream for p, t in translated(read(partition.log), new) if t is not None} == new


def test_rows_of_an_ended_generation_are_not_used_by_the_next_slot() -> None:
    """The target was emptied, so nothing of the old runs holds; their chunk stays in the topic until its place is
    used."""
    partition = Copied()
    partition.copies([(0, 0, 5), (6, 5, 5)])
    partition.writes()
    partition.begins_again(20, 0, in_place=False)
    partition.copies([(20, 0, 9)])
    partition.writes()
    partition.dies_and_goes_on()
    partition.copies([(30, 9, 1), (32, 10, 1)])
    partition.writes()
    run_map = read(partition.log)
    assert run_map.runs == (Run(20, 0, 9), Run(30, 9, 1), Run(32, 10, 1))
    assert run_map.translate(UpstreamOffset(3)) is None


@pytest.mark.parametrize("change", [{"source_topic_id": "x"}, {"target_topic_id": "x"}, {"producer_id": 1}])
def test_rows_of_other_logs_do_not_count(change: dict[str, str | int]) -> None:
    partition = Copied()
    partition.copies([(0, 0, 5), (6, 5, 5)])
    partition.writes()
    run_map = read(partition.log)
    chunk, progress = partition.log
    assert isinstance(chunk, OffsetRuns)
    assert isinstance(progress, PartitionProgress)
    assert run_map.fold(replace(chunk, generation=9, **change)) == run_map  # type: ignore[arg-type]  # one of three fields
    assert run_map.fold_progress(replace(progress, producer_epoch=9, **change)) == run_map  # type: ignore[arg-type]  # as above
    assert run_map.fold(replace(chunk, generation=-1, edition=9)) == run_map, "nor of a lower generation"


# -- a partition without records ---------------------------------------------------------------------------------------


def waiting(upstream: int, downstream: int, **more: object) -> PartitionProgress:
    """A progress row of an epoch in which nothing was appended yet."""
    return replace(FIRST, upstream=upstream, downstream=downstream, **more)  # type: ignore[arg-type]  # as the test names them


@pytest.mark.parametrize(
    ("upstream", "wanted"), [(99, None), (100, (57, False, 0)), (101, (57, True, 0)), (500, (57, True, 0))]
)
def test_mm2_166_first_record_has_a_place_without_any_append(
    upstream: int, wanted: tuple[int, bool, int] | None
) -> None:
    translation = RunMap.build(waiting(99, 56)).translate(UpstreamOffset(upstream))
    assert translation == (None if wanted is None else Translation(DownstreamOffset(wanted[0]), *wanted[1:]))


def test_mm2_166_group_of_an_empty_partition_is_at_0() -> None:
    assert RunMap.build(waiting(-1, -1)).translate(UpstreamOffset(0)) == Translation(DownstreamOffset(0), False, 0)


def test_records_skipped_before_the_first_one_have_a_translation() -> None:
    """Two rows of one epoch, in either order: between what they say nothing lies downstream."""
    rows = waiting(99, 56), waiting(103, 56)
    for first, second in (rows, rows[::-1]):
        run_map = RunMap.build(first).fold_progress(second)
        assert run_map.translate(UpstreamOffset(100)) == Translation(DownstreamOffset(57), False, 0)
        assert run_map.translate(UpstreamOffset(104)) == Translation(DownstreamOffset(57), False, 0)
        assert run_map.translate(UpstreamOffset(105)) == Translation(DownstreamOffset(57), True, 0)


def test_partition_halted_before_its_begin_has_no_translation() -> None:
    assert RunMap.build(waiting(99, -1, phase="halted")).translate(UpstreamOffset(100)) is None


# -- back --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("downstream", "wanted"),
    [
        (4, None),
        (5, (10, False, 0)),
        (14, (19, False, 0)),
        (15, (20, False, 1)),  # offset 20 is nowhere downstream: read it rather than leave it out
        (16, (22, False, 0)),
        (19, (25, False, 5)),
        (29, (25, False, 5)),
        (30, (25, False, 5)),
        (31, (31, False, 0)),
        (32, (31, True, 0)),
    ],
)
def test_downstream_offset_in_runs_is_translated_back(downstream: int, wanted: tuple[int, bool, int] | None) -> None:
    translation = translate_upstream(RUNS, DownstreamOffset(downstream))
    assert translation == (None if wanted is None else UpstreamTranslation(UpstreamOffset(wanted[0]), *wanted[1:]))


def test_no_runs_translate_nothing_back() -> None:
    assert translate_upstream((), DownstreamOffset(0)) is None
    assert translate_upstream(RunMap.build(waiting(99, 56)).runs, DownstreamOffset(57)) == UpstreamTranslation(
        UpstreamOffset(100), False, 0
    )


def unread(stretches: list[Stretch], downstream: int) -> int:
    """The upstream offset of the first record that a group at `downstream` has not read."""
    positions = [up + max(0, downstream - down) for up, down, count in stretches if downstream < down + count]
    return positions[0] if positions else stretches[-1][0] + stretches[-1][2]


@given(logs(), st.data())
def test_back_is_exact_with_all_rows_and_never_too_far_with_some(stretches: list[Stretch], data: st.DataObject) -> None:
    log = copied(stretches, data).log
    whole = read(log)
    partial = read(data.draw(st.lists(st.sampled_from(log), max_size=2 * len(log))))
    before = -1
    for at in range(stretches[-1][1] + stretches[-1][2] + 2):
        first_unread = unread(stretches, at)
        back = translate_upstream(whole.runs, DownstreamOffset(at))
        assert (back is None) == (at < stretches[0][1])
        if back is not None:
            assert back.upstream <= first_unread <= back.upstream + back.reread
        guess = translate_upstream(partial.runs, DownstreamOffset(at))
        if guess is not None:
            assert before <= guess.upstream <= first_unread
            at_the_end = at >= partial.runs[-1].downstream_end
            assert at_the_end or first_unread <= guess.upstream + guess.reread
            before = guess.upstream


@given(logs(), st.integers(0, 120), st.data())
def test_runs_there_and_back_never_lead_further(stretches: list[Stretch], position: int, data: st.DataObject) -> None:
    """A group that fails over and back without reading has its offset from before, or an earlier one."""
    run_map = read(copied(stretches, data).log)
    translation = run_map.translate(UpstreamOffset(position))
    if translation is not None:
        back = translate_upstream(run_map.runs, translation.downstream)
        assert back is not None
        assert back.upstream <= position
        again = run_map.translate(back.upstream)
        assert again is not None
        assert again.downstream == translation.downstream
