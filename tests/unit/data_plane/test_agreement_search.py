"""Both logs are aligned again behind a hole of any length."""

from collections.abc import Sequence

import pytest

from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.verify import agreement_search
from lockstep_data_plane.verify.agreement_search import SLACK, Agreement, AgreementSearch
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_rules.offsets.offset_runs import Run
from tests.support.batch_bytes import LOG_APPEND_TIME, records
from tests.unit.data_plane.verify_scene import as_copy, copied, in_batches, verified

TOTAL, BEGIN = 6_000, 400
SOURCE = records(0, TOTAL)
BATCHES = in_batches(SOURCE, 50)
DEPTHS = [Depth.CRC, Depth.RECORD]


def compared(
    target: Sequence[PlainRecord], source: Sequence[Batch] = BATCHES, size: int = 60, depth: Depth = Depth.BYTES
) -> PartitionVerifier:
    """The comparison of both logs, where the runs name a whole copy."""
    return verified(source, as_copy(target, size), depth=depth, runs=[Run(0, 0, source[-1].last_offset + 1)])


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("hole", [255, 256, 257, 700, 3_000])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_hole_of_any_length_is_missing_and_what_follows_is_right(hole: int, size: int, depth: Depth) -> None:
    target = copied([*SOURCE[:BEGIN], *SOURCE[BEGIN + hole :]])
    result = compared(target, size=size, depth=depth)
    assert result.differences == {"missing": hole, "offset": 1}, "the runs name other places behind it"
    assert result.records == TOTAL - hole
    assert min(difference.source_offset for difference in result.listed) == BEGIN
    assert result.position == (TOTAL, len(target))


@pytest.mark.parametrize("more", [255, 257, 700, 3_000])
def test_records_that_only_the_copy_has_are_extra_however_many(more: int) -> None:
    result = compared(copied([*SOURCE[:BEGIN], *records(1_000_000, more), *SOURCE[BEGIN:]]))
    assert (result.differences, result.records) == ({"extra": more, "offset": 1}, TOTAL)


@pytest.mark.parametrize("changed", [300, 700, 3_000])
def test_records_that_differ_in_their_places_are_pairs_however_many(changed: int) -> None:
    others = [record._replace(value=b"other") for record in SOURCE[BEGIN : BEGIN + changed]]
    result = compared(copied([*SOURCE[:BEGIN], *others, *SOURCE[BEGIN + changed :]]))
    assert (result.differences, result.records) == ({"value": changed}, TOTAL)


def test_stretches_of_both_logs_alone_are_missing_and_extra() -> None:
    target = copied([*SOURCE[:BEGIN], *records(1_000_000, 900), *SOURCE[BEGIN + 1_500 :]])
    result = verified(BATCHES, as_copy(target, 60))
    assert result.records >= TOTAL - 1_500
    assert result.differences["missing"] + result.differences["value+timestamp"] <= 1_500
    assert not result.differences["order"]


def test_two_holes_are_found_one_after_the_other() -> None:
    result = compared(copied([*SOURCE[:BEGIN], *SOURCE[BEGIN + 700 : 2_000], *SOURCE[2_900:]]))
    assert result.differences == {"missing": 1_600, "offset": 2}


@pytest.mark.parametrize("remaining", [1, 2, 3, 100])
def test_hole_near_the_end_leaves_what_is_behind_it_right(remaining: int) -> None:
    source = SOURCE[:2_000]
    result = compared(copied([*source[:BEGIN], *source[-remaining:]]), in_batches(source, 50))
    assert result.differences == {"missing": 2_000 - BEGIN - remaining, "offset": 1}


def test_hole_up_to_the_end_is_missing() -> None:
    result = verified(in_batches(SOURCE[:3_000], 50), as_copy(copied(SOURCE[:BEGIN]), 60))
    assert (result.differences, result.records) == ({"missing": 3_000 - BEGIN}, BEGIN)


def test_hole_is_found_where_the_target_sets_the_timestamps() -> None:
    target = copied([*SOURCE[:BEGIN], *SOURCE[BEGIN + 700 : 3_000]])
    copies = as_copy(target, 60, attributes=LOG_APPEND_TIME, max_timestamp=99)
    result = verified(BATCHES[:60], copies, runs=[Run(0, 0, 3_000)])
    assert result.differences == {"missing": 700, "offset": 1}


def search(most: int, source: list[int], target: list[int]) -> tuple[Agreement | None, AgreementSearch]:
    """The agreement of two logs of numbers, read in turn."""
    agreement, searching = None, AgreementSearch(most)
    for at in range(max(len(source), len(target))):
        for log, numbers in ((agreement_search.TARGET, target), (agreement_search.SOURCE, source)):
            if agreement is None and at < len(numbers):
                agreement = searching.add_record(log, at, (0, None, b"%d" % numbers[at], ()))
    return agreement or searching.find_at_end(), searching


@pytest.mark.parametrize("most", [1 << 16, 64])
def test_search_remembers_a_bounded_number_of_places(most: int) -> None:
    hole = 20_000
    agreement, searching = search(most, list(range(60_000)), [*range(hole, 60_000)])
    assert agreement is not None
    late = agreement.source - hole
    assert agreement.target == late, "both are as far behind the hole"
    assert 0 <= late <= agreement.slack
    assert (agreement.slack == 0) == (most > hole)
    assert all(len(places) <= most for places in searching._begins)
    assert agreement.slack <= SLACK * 2 * hole / (most / 4)


def test_search_finds_nothing_in_logs_that_have_nothing_in_common() -> None:
    assert search(100, list(range(5_000)), list(range(10_000, 15_000)))[0] is None
