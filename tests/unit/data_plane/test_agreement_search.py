"""Both logs are aligned again behind a hole of any length."""

import pytest

from lockstep_data_plane.verify.agreement_search import SLACK, SOURCE, TARGET, Agreement, AgreementSearch
from lockstep_data_plane.verify.batch_comparison import Depth
from tests.support.batch_bytes import LOG_APPEND_TIME, records
from tests.unit.data_plane.verify_scene import as_copy, copied, in_batches, runs_between, verified

TOTAL, BEGIN = 6_000, 400
DEPTHS = [Depth.CRC, Depth.RECORD]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("hole", [255, 256, 257, 700, 3_000])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_hole_of_any_length_is_missing_and_what_follows_is_right(hole: int, size: int, depth: Depth) -> None:
    source = records(0, TOTAL)
    target = copied([*source[:BEGIN], *source[BEGIN + hole :]])
    runs = runs_between(source, copied(source))
    found = verified(in_batches(source, 50), as_copy(target, size), depth=depth, runs=runs)
    assert found.differences == {"missing": hole, "offset": 1}, "the runs name other places behind it"
    assert found.records == TOTAL - hole
    assert min(one.source_offset for one in found.listed) == BEGIN
    assert found.position == (TOTAL, len(target))


@pytest.mark.parametrize("more", [255, 257, 700, 3_000])
def test_records_that_only_the_copy_has_are_extra_however_many(more: int) -> None:
    source = records(0, TOTAL)
    target = copied([*source[:BEGIN], *records(1_000_000, more), *source[BEGIN:]])
    found = verified(in_batches(source, 50), as_copy(target, 60), runs=runs_between(source, copied(source)))
    assert (found.differences, found.records) == ({"extra": more, "offset": 1}, TOTAL)


@pytest.mark.parametrize("changed", [300, 700, 3_000])
def test_records_that_differ_in_their_places_are_pairs_however_many(changed: int) -> None:
    source = records(0, TOTAL)
    other = [one._replace(value=b"other") for one in source[BEGIN : BEGIN + changed]]
    target = copied([*source[:BEGIN], *other, *source[BEGIN + changed :]])
    found = verified(in_batches(source, 50), as_copy(target, 60), runs=runs_between(source, copied(source)))
    assert (found.differences, found.records) == ({"value": changed}, TOTAL)


def test_stretches_of_both_logs_alone_are_missing_and_extra() -> None:
    source = records(0, TOTAL)
    target = copied([*source[:BEGIN], *records(1_000_000, 900), *source[BEGIN + 1_500 :]])
    found = verified(in_batches(source, 50), as_copy(target, 60))
    assert found.records >= TOTAL - 1_500
    assert found.differences["missing"] + found.differences["value+timestamp"] <= 1_500
    assert not found.differences["order"]


def test_two_holes_are_found_one_after_the_other() -> None:
    source = records(0, TOTAL)
    target = copied([*source[:BEGIN], *source[BEGIN + 700 : 2_000], *source[2_900:]])
    found = verified(in_batches(source, 50), as_copy(target, 60), runs=runs_between(source, copied(source)))
    assert found.differences == {"missing": 1_600, "offset": 2}


@pytest.mark.parametrize("left", [1, 2, 3, 100])
def test_hole_near_the_end_leaves_what_is_behind_it_right(left: int) -> None:
    source = records(0, 2_000)
    target = copied([*source[:BEGIN], *source[-left:]])
    found = verified(in_batches(source, 50), as_copy(target, 60), runs=runs_between(source, copied(source)))
    assert found.differences == {"missing": 2_000 - BEGIN - left, "offset": 1}


def test_hole_up_to_the_end_is_missing() -> None:
    source = records(0, 3_000)
    found = verified(in_batches(source, 50), as_copy(copied(source[:BEGIN]), 60))
    assert (found.differences, found.records) == ({"missing": 3_000 - BEGIN}, BEGIN)


def test_hole_is_found_where_the_target_sets_the_timestamps() -> None:
    source = records(0, 3_000)
    target = copied([*source[:BEGIN], *source[BEGIN + 700 :]])
    copies = as_copy(target, 60, attributes=LOG_APPEND_TIME, max_timestamp=99)
    found = verified(in_batches(source, 50), copies, runs=runs_between(source, copied(source)))
    assert found.differences == {"missing": 700, "offset": 1}


def search(most: int, source: list[int], target: list[int]) -> tuple[Agreement | None, AgreementSearch]:
    """The agreement of two logs of numbers, read in turn."""
    found, searching = None, AgreementSearch(most)
    for at in range(max(len(source), len(target))):
        for log, numbers in ((TARGET, target), (SOURCE, source)):
            if found is None and at < len(numbers):
                found = searching.add_record(log, at, (0, None, b"%d" % numbers[at], ()))
    return found or searching.at_end(), searching


@pytest.mark.parametrize("most", [1 << 16, 64])
def test_search_remembers_a_bounded_number_of_places(most: int) -> None:
    hole = 20_000
    found, searching = search(most, list(range(60_000)), [*range(hole, 60_000)])
    assert found is not None
    late = found.source - hole
    assert found.target == late, "both are as far behind the hole"
    assert 0 <= late <= found.slack
    assert (found.slack == 0) == (most > hole)
    assert all(len(places) <= most for places in searching._begins)
    assert found.slack <= SLACK * 2 * hole / (most / 4)


def test_search_finds_nothing_in_logs_that_have_nothing_in_common() -> None:
    assert search(100, list(range(5_000)), list(range(10_000, 15_000)))[0] is None
