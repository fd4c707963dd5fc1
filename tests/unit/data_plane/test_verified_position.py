"""How far a copy is verified goes on from its row, begins with the first pair, and names what it cannot compare."""

from dataclasses import replace

import pytest

from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.verified_position import (
    ComparisonStretch,
    CopyState,
    LogRanges,
    add_comparison,
    add_counts,
    comparable_from,
    finish_comparison,
    is_enough,
    needs_comparison,
    next_stretch,
    row_to_compare,
    waits_for_copy,
    with_beyond,
)
from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.rows.state_rows import PartitionProgress, Verification, VerifiedPartition
from tests.support.batch_bytes import records
from tests.support.reasons import reported
from tests.unit.data_plane.verify_scene import FOREIGN, as_copy, copied, in_batches, verified

PROGRESS = PartitionProgress(
    topic="orders", partition=3, source_topic_id="S", target_topic_id="T", upstream=199, downstream=99
)
REQUEST = Verification(id="one", depth="bytes")
ROW = VerifiedPartition(
    topic="orders",
    partition=3,
    source_topic_id="S",
    target_topic_id="T",
    first=100,
    upstream=149,
    downstream=49,
    records=50,
    differences=(("value", 1),),
)
RUNS = OffsetMap([Run(100, 0, 100)], decided=199)
WHOLE = LogRanges(0, 0, 200, 200, 100)
COPY = CopyState(PROGRESS, RUNS, WHOLE, 1234)


def requested(
    row: VerifiedPartition | None, *, copy: CopyState = COPY, request: Verification = REQUEST
) -> VerifiedPartition:
    return row_to_compare(row, copy, request.depth, request)


def stretch_of(
    row: VerifiedPartition | None, *, offsets: OffsetMap = RUNS, logs: LogRanges = WHOLE
) -> ComparisonStretch:
    copy = replace(COPY, offsets=offsets, logs=logs)
    return next_stretch(requested(row, copy=copy), copy)


# -- which row ---------------------------------------------------------------------------------------------------------


def test_request_of_a_partition_never_compared_begins_anew() -> None:
    row = requested(None)
    assert (row.request, row.depth, row.upstream, row.upstream_end, row.downstream_end) == ("one", "bytes", -1, 199, 99)
    assert (row.source_end, row.verified_ms) == (200, 1234)


def test_request_goes_on_from_what_is_verified() -> None:
    row = requested(ROW)
    assert (row.upstream, row.records, row.differences) == (149, 50, ROW.differences)


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (replace(ROW, depth="crc"), REQUEST),
        (ROW, replace(REQUEST, again=True)),
        (replace(ROW, target_topic_id="U"), REQUEST),
        (replace(ROW, decisions=1), REQUEST),
    ],
)
def test_request_that_is_closer_or_for_other_logs_begins_anew(known: VerifiedPartition, asked: Verification) -> None:
    row = requested(known, request=asked)
    assert (row.upstream, row.records, row.differences) == (-1, 0, ())


def test_request_that_is_less_close_keeps_what_is_verified() -> None:
    row = requested(replace(ROW, depth="record"), request=replace(REQUEST, depth="crc"))
    assert (row.depth, row.upstream) == ("record", 149)


def test_request_for_everything_again_goes_on_after_a_kill() -> None:
    again = replace(REQUEST, again=True)
    begun = replace(requested(ROW, request=again), first=100, upstream=120, downstream=20)
    assert requested(begun, request=again).upstream == 120


def test_end_of_a_request_is_where_the_source_was_at_first() -> None:
    grown = replace(COPY, logs=LogRanges(0, 0, 500, 500, 100))
    assert requested(requested(ROW), copy=grown).source_end == 200
    assert requested(ROW, copy=grown).source_end == 500
    truncated = replace(COPY, logs=LogRanges(0, 0, 180, 180, 100))
    assert requested(requested(ROW), copy=truncated).source_end == 180


def test_copy_that_grows_is_followed_to_its_present_end() -> None:
    row = row_to_compare(ROW, COPY, "bytes")
    assert (row.upstream, row.upstream_end, row.request) == (149, 199, "")
    assert row_to_compare(ROW, COPY, "record").upstream == 149, "equal bytes are equal records"
    assert row_to_compare(replace(ROW, depth="count"), COPY, "bytes").upstream == -1


def test_copy_that_was_begun_again_is_compared_again() -> None:
    """The copy was put back to source offset 120, so the target has those records a second time."""
    again = OffsetMap([Run(100, 0, 20), Run(120, 60, 40)], generation=1)
    assert requested(ROW, copy=replace(COPY, offsets=again)).upstream == -1
    onward = OffsetMap([Run(100, 0, 100)], generation=1)
    assert requested(ROW, copy=replace(COPY, offsets=onward)).upstream == 149


def test_followed_copy_needs_comparison_only_if_something_is_new() -> None:
    whole = replace(ROW, upstream=199)
    assert not needs_comparison(whole, PROGRESS, "bytes")
    for row in (
        *(None, ROW, replace(whole, depth="crc"), replace(whole, cause=reported("cluster B does not answer"))),
        replace(whole, source_topic_id="U"),
    ):
        assert needs_comparison(row, PROGRESS, "bytes")
    assert needs_comparison(whole, replace(PROGRESS, gaps=(("target-truncated", 1),)), "bytes")


# -- the next stretch --------------------------------------------------------------------------------------------------


def test_stretch_of_a_known_row_goes_on_behind_it() -> None:
    stretch = stretch_of(ROW)
    assert (stretch.begin, stretch.end) == ((150, 50), (200, 100))
    assert stretch.row.not_verified == ()


def test_first_stretch_begins_with_the_first_pair_and_names_what_is_before() -> None:
    stretch = stretch_of(None, logs=LogRanges(40, 0, 200, 200, 100))
    assert (stretch.begin, stretch.end) == ((100, 0), (200, 100))
    assert stretch.row.not_verified == (("before-the-offset-runs", 60),)
    assert stretch.row.stretches == (("before-the-offset-runs", 40, 99, 60),)
    assert stretch.row.first == 100


@pytest.mark.parametrize("known", [ROW, None])
def test_what_retention_removed_from_one_log_is_not_verified(known: VerifiedPartition | None) -> None:
    at = 150 if known else 100
    source_gone = stretch_of(known, logs=LogRanges(170, 0, 200, 200, 100))
    assert source_gone.begin == (170, 70)
    assert source_gone.row.stretches == (("removed-on-source", at, 169, 170 - at),)
    target_gone = stretch_of(known, logs=LogRanges(100, 80, 200, 200, 100))
    assert target_gone.begin == (180, 80)
    assert target_gone.row.stretches == (("removed-on-target", at, 179, 180 - at),)


def test_records_that_both_logs_have_removed_are_no_concern() -> None:
    stretch = stretch_of(None, logs=LogRanges(150, 50, 200, 200, 100))
    assert (stretch.begin, stretch.row.not_verified) == ((150, 50), ())


def test_records_of_the_target_before_the_runs_are_not_verified() -> None:
    stretch = stretch_of(None, offsets=OffsetMap([Run(0, 30, 200)]), logs=WHOLE)
    assert stretch.row.stretches == (("before-the-offset-runs", -1, -1, 30),)


def test_stretch_without_any_pair_is_empty_and_not_verified() -> None:
    stretch = stretch_of(None, offsets=OffsetMap())
    assert stretch.begin == stretch.end == (200, 100)
    assert stretch.row.not_verified == (("before-the-offset-runs", 200),)


def test_stretch_of_a_source_that_lost_everything_names_all_of_it() -> None:
    stretch = stretch_of(None, logs=LogRanges(200, 0, 200, 200, 100))
    assert stretch.begin == stretch.end == (200, 100)
    assert stretch.row.not_verified == (("removed-on-source", 100),)


# -- what was compared -------------------------------------------------------------------------------------------------


def test_what_was_compared_adds_up_in_the_row() -> None:
    source = records(100, 60)
    row = replace(requested(None), first=100)
    once = add_comparison(row, verified(in_batches(source, 10), as_copy(copied(source), 10)), 7)
    assert (once.upstream, once.downstream, once.records, once.busy_ms) == (159, 59, 60, 7)
    more = records(160, 40)
    twice = add_comparison(once, verified(in_batches(more, 10), as_copy(copied(more[:-1], 60), 10)), 5)
    assert (twice.upstream, twice.records, twice.busy_ms) == (199, 99, 12)
    assert twice.differences == (("missing", 1),)
    assert twice.found == (("missing", 199, -1),)
    assert finish_comparison(twice, PROGRESS, 5).done


def test_request_is_carried_out_once_what_the_source_had_is_compared() -> None:
    row = replace(requested(ROW), upstream=199, cause=reported("cluster B does not answer"))
    done = finish_comparison(row, PROGRESS, 5000)
    assert (done.done, done.verified_ms, done.reason) == (True, 5000, "")
    assert not finish_comparison(replace(row, upstream=180), PROGRESS, 5000).done, "a part of it"
    assert not finish_comparison(replace(row, source_end=300), PROGRESS, 5000).done, "the copy is not there yet"
    assert finish_comparison(replace(row, source_end=300), replace(PROGRESS, phase="stopped"), 5000).done


def test_request_ends_at_its_end_though_the_copy_goes_further() -> None:
    row = replace(requested(ROW), upstream=170, source_end=171)
    done = finish_comparison(row, PROGRESS, 5000)
    assert (done.done, done.verified_ms) == (True, 0), "not all that is copied is verified"
    assert not finish_comparison(replace(row, request=""), PROGRESS, 5000).done
    assert is_enough(row, 171)
    assert not is_enough(row, 170)
    assert not is_enough(replace(row, request=""), 999)


def tail(source: int, *target: Batch) -> VerifiedPartition:
    """The row, where the source has so many records behind the copy and the target has these batches."""
    verifier = verified(in_batches(records(100, source), 10), target, start=(100, 100))
    return with_beyond(replace(ROW, beyond=9, beyond_first=9), verifier)


def test_records_behind_the_copy_that_are_its_next_ones_are_no_difference() -> None:
    for source, there in ((0, 0), (40, 0), (40, 20), (40, 40)):
        row = tail(source, *as_copy(copied(records(100, there), 100), 7))
        assert (row.beyond, row.beyond_first) == (0, -1)


@pytest.mark.parametrize("doubled", [1, 20, 700])
@pytest.mark.parametrize("source", [0, 20, 900])
def test_doubled_batch_at_the_end_is_beyond_the_copy(source: int, doubled: int) -> None:
    again = copied(records(1_000_000, doubled), 100)
    row = tail(source, *as_copy(again, 50))
    assert (row.beyond, row.beyond_first) == (doubled, 100)


def test_foreign_record_behind_the_next_ones_is_beyond_the_copy() -> None:
    next_ones, foreign = as_copy(copied(records(100, 20), 100), 7), as_copy(copied(records(7, 1), 120), 1, FOREIGN)
    row = tail(40, *next_ones, *foreign)
    assert (row.beyond, row.beyond_first) == (1, 120)


def test_counts_compare_runs_and_the_end_of_the_target() -> None:
    offsets = OffsetMap([Run(100, 0, 60), Run(170, 60, 30)], decided=199)
    stretch = stretch_of(None, offsets=offsets, logs=LogRanges(100, 0, 200, 200, 100))
    row = add_counts(stretch, offsets, 100)
    assert (row.records, row.stretches, row.differences) == (90, (("passed-over", 160, 169, 10),), ())
    assert add_counts(stretch, offsets, 95).differences == (("missing", 5),)


def test_request_waits_while_the_copy_is_behind_it() -> None:
    row = replace(requested(ROW), upstream=199, source_end=300)
    assert waits_for_copy(row, PROGRESS, REQUEST)
    for known, progress in (
        *((None, PROGRESS), (ROW, PROGRESS), (replace(row, source_end=200), PROGRESS)),
        (row, replace(PROGRESS, upstream=250)),
        (row, replace(PROGRESS, phase="halted")),
    ):
        assert not waits_for_copy(known, progress, REQUEST)


def test_source_of_a_traced_copy_is_read_from_its_start() -> None:
    """Batches of other origins are in front of the first run, and others write to the target."""
    offsets = OffsetMap([Run(100, 40, 60)], decided=199)
    copy = replace(COPY, offsets=offsets, logs=LogRanges(0, 0, 200, 200, 100), is_traced=True)
    stretch = next_stretch(requested(None, copy=copy), copy)
    assert (stretch.begin, stretch.row.not_verified) == ((0, 40), ())


# -- transforms --------------------------------------------------------------------------------------------------------


FILTERED = replace(PROGRESS, transform="v2", transform_since=120)
EVERY_SECOND = OffsetMap([Run(at, at // 2, 1) for at in range(0, 200, 2)], decided=199)


@pytest.mark.parametrize(
    ("row", "version", "begins"),
    [
        (PROGRESS, "", 0),
        (PROGRESS, "v2", 0),
        (replace(PROGRESS, transform="v2"), "v2", 0),
        (FILTERED, "v2", 120),
        (FILTERED, "v3", 200),
        (FILTERED, "", 200),
        (replace(PROGRESS, transform_since=50), "v2", 50),
    ],
)
def test_records_of_another_version_cannot_be_compared(row: PartitionProgress, version: str, begins: int) -> None:
    assert comparable_from(row, version) == begins


def transformed(row: VerifiedPartition | None, begins: int, offsets: OffsetMap = EVERY_SECOND) -> ComparisonStretch:
    copy = CopyState(FILTERED, offsets, WHOLE, 1234, comparable_from=begins)
    return next_stretch(requested(row, copy=copy), copy)


def test_stretch_begins_behind_what_another_version_has_made() -> None:
    stretch = transformed(None, 121)
    assert (stretch.begin, stretch.end) == ((121, 61), (200, 100))
    assert stretch.row.stretches == (("other-transform", 0, 120, 61),)
    assert (stretch.row.first, stretch.row.upstream, stretch.row.transform) == (121, 120, "v2")


def test_known_row_loses_only_what_is_behind_it() -> None:
    stretch = transformed(replace(ROW, first=0, upstream=99, downstream=49), 121)
    assert stretch.begin == (121, 61)
    assert stretch.row.stretches == (("other-transform", 100, 120, 11),)


def test_nothing_of_an_unknown_version_is_compared() -> None:
    stretch = transformed(None, 200)
    assert stretch.begin == stretch.end == (200, 100)
    assert stretch.row.not_verified == (("other-transform", 100),)


def test_records_dropped_in_front_of_the_first_run_are_read() -> None:
    stretch = transformed(None, 0, OffsetMap([Run(40, 0, 100)], decided=199))
    assert (stretch.begin, stretch.row.not_verified) == ((0, 0), ())
    nothing_kept = transformed(None, 0, OffsetMap(decided=199))
    assert (nothing_kept.begin, nothing_kept.row.not_verified) == ((0, 100), ())
