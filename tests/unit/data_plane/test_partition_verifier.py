"""Every kind of damage to a copy is found and located, and nothing else is said of a copy that is whole."""

from collections.abc import Callable
from typing import Any

import pytest

from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.difference import NotCompared
from lockstep_data_plane.verify.partition_verifier import LISTED
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.reasons.verification_reason import NotComparedReason
from tests.support.batch_bytes import CONTROL, LOG_APPEND_TIME, LZ4, TRANSACTIONAL, batch, record, records
from tests.unit.data_plane.verify_scene import (
    FOREIGN,
    OURS,
    as_copy,
    copied,
    differences_in,
    in_batches,
    runs_between,
    verified,
)

SOURCE = records(100, 60, headers=(("a", b"1"), ("b", b"2")))
RUNS = (Run(100, 0, 60),)

DEPTHS = (Depth.CRC, Depth.BYTES, Depth.RECORD)


def damaged(change: Callable[[list[PlainRecord]], None]) -> list[PlainRecord]:
    """The copy's records after a change of the list, at offsets without a gap."""
    target = copied(SOURCE)
    change(target)
    return copied(target)


def put(at: int, **parts: Any) -> Callable[[list[PlainRecord]], None]:
    def change(target: list[PlainRecord]) -> None:
        target[at] = target[at]._replace(**parts)

    return change


def exchange(target: list[PlainRecord]) -> None:
    target[20], target[21] = target[21], target[20]


def remove(target: list[PlainRecord]) -> None:
    del target[33]


def add(target: list[PlainRecord]) -> None:
    target.insert(33, record(0, b"nobody wrote this"))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("size", [1, 7, 60])
@pytest.mark.parametrize("copied_size", [1, 7, 13, 60])
def test_whole_copy_in_any_batches_is_equal(depth: Depth, size: int, copied_size: int) -> None:
    result = verified(in_batches(SOURCE, size), as_copy(copied(SOURCE), copied_size), depth=depth, runs=RUNS)
    assert differences_in(result) == []
    assert not result.not_compared
    assert result.records == 60
    assert result.position == (160, 60)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    ("change", "kind", "source", "target"),
    [
        (put(17, value=b"valuE-117"), "value", 117, 17),
        (put(17, key=b"other"), "key", 117, 17),
        (put(17, key=None, value=None), "key+value", 117, 17),
        (put(17, timestamp=5), "timestamp", 117, 17),
        (put(17, headers=(("b", b"2"), ("a", b"1"))), "header-order", 117, 17),
        (put(17, headers=(("a", b"1"),)), "headers", 117, 17),
        (put(0, value=b"x"), "value", 100, 0),
        (put(59, value=b"x"), "value", 159, 59),
        (remove, "missing", 133, -1),
        (add, "extra", -1, 33),
    ],
)
def test_damage_of_each_kind_is_located(
    depth: Depth, change: Callable[[list[PlainRecord]], None], kind: str, source: int, target: int
) -> None:
    result = verified(in_batches(SOURCE, 10), as_copy(damaged(change), 10), depth=depth, runs=())
    assert differences_in(result) == [(kind, source, target)]
    assert result.position[0] == 160


@pytest.mark.parametrize("size", [5, 20, 21, 60])
def test_two_exchanged_records_are_both_out_of_order(size: int) -> None:
    result = verified(in_batches(SOURCE, 10), as_copy(damaged(exchange), size), runs=RUNS)
    assert {kind for kind, _, _ in differences_in(result)} == {"order"}
    assert {120, 121} >= {source for _, source, _ in differences_in(result)}


def test_missing_record_shifts_what_the_runs_name_and_counts_once() -> None:
    result = verified(in_batches(SOURCE, 10), as_copy(damaged(remove), 10), runs=RUNS)
    assert differences_in(result) == [("offset", 134, 33), ("missing", 133, -1)]


@pytest.mark.parametrize(
    ("value", "others_write", "differences"),
    [(b"theirs", False, [("foreign", -1, 20)]), (SOURCE[20].value, True, [])],
    ids=["a difference", "left out where others write"],
)
def test_foreign_batch_in_the_copy(value: bytes, others_write: bool, differences: list[tuple[str, int, int]]) -> None:
    target = [
        *as_copy(copied(SOURCE[:20]), 10),
        *as_copy([record(20, value)], 1, producer=FOREIGN),
        *as_copy(copied(SOURCE[20:], 21), 10),
    ]
    result = verified(in_batches(SOURCE, 10), target, rules=TargetRules(has_foreign_writers=others_write))
    assert differences_in(result) == differences
    assert result.records == 60


def test_copy_under_a_former_producer_id_is_equal() -> None:
    batches = [*as_copy(copied(SOURCE[:10]), 10), *as_copy(copied(SOURCE[10:], 10), 10, producer=FOREIGN)]
    result = verified(in_batches(SOURCE, 10), batches)
    assert differences_in(result) == []
    assert result.records == 60


def test_end_in_the_middle_of_batches_compares_up_to_there() -> None:
    target = as_copy(damaged(put(40, value=b"x")), 20)
    result = verified(in_batches(SOURCE, 20), target, runs=RUNS, end=(133, 33))
    assert differences_in(result) == []
    assert result.records == 33
    assert result.position == (133, 33)


def spoil(batches: list[Batch], at: int, bits: int) -> None:
    """Change a byte of the second batch."""
    data = bytearray(batches[1].data)
    data[at] ^= bits
    (batches[1],) = scan(bytes(data))


def test_changed_byte_in_a_compressed_batch_is_found() -> None:
    target = as_copy(copied(SOURCE), 20, codec=LZ4)
    spoil(target, -9, 0xFF)
    result = verified(in_batches(SOURCE, 20, codec=LZ4), target, runs=RUNS)
    assert result.differences
    assert all(20 <= d.target_offset < 40 or 120 <= d.source_offset < 140 for d in result.listed)
    assert result.position == (160, 60)


def test_control_batches_and_aborted_transactions_have_no_copy() -> None:
    aborted = batch(records(110, 5), producer=(7, 0, 0), attributes=TRANSACTIONAL)
    marker = batch(
        [record(115, b"\0\0\0\0\0\0", key=b"\0\0\0\0")], attributes=CONTROL | TRANSACTIONAL, producer=(7, 0, -1)
    )
    source = [*in_batches(SOURCE[:10], 10), aborted, marker, *in_batches(SOURCE[16:], 10)]
    copy = copied([*SOURCE[:10], *SOURCE[16:]])
    result = verified(source, [*as_copy(copy[:10], 10), *as_copy(copy[10:], 10)], aborted=[(7, 110)])
    assert differences_in(result) == []
    assert result.records == 54
    assert result.position == (160, 54)


def test_record_that_the_copy_passed_over_is_not_compared() -> None:
    copy = copied([*SOURCE[:30], *SOURCE[32:]])
    runs = [Run(100, 0, 30), Run(132, 30, 28)]
    result = verified(in_batches(SOURCE, 10), as_copy(copy, 10), runs=runs)
    assert differences_in(result) == []
    assert result.stretches == [NotCompared(NotComparedReason.PASSED_OVER, 130, 131, 2)]


def test_records_that_compaction_removed_from_the_source_are_not_compared() -> None:
    remaining = [r for r in SOURCE if r.offset not in (110, 111, 140)]
    source = [
        batch(remaining[:18], base_offset=100, last_offset=119),
        *in_batches(remaining[18:37], 19),
        *in_batches(remaining[37:], 20),
    ]
    result = verified(source, as_copy(copied(SOURCE), 20), runs=RUNS)
    assert differences_in(result) == []
    assert result.stretches == [
        NotCompared(NotComparedReason.REMOVED_ON_SOURCE, 110, 111, 2),
        NotCompared(NotComparedReason.REMOVED_ON_SOURCE, 140, 140, 1),
    ]


def test_records_that_compaction_removed_from_the_target_are_not_compared() -> None:
    remaining = [r for r in copied(SOURCE) if r.offset not in (10, 40)]
    target = [
        batch(remaining[:19], producer=(OURS, 0, 0), base_offset=0, last_offset=19),
        batch(remaining[19:], producer=(OURS, 0, 20), base_offset=20, last_offset=59),
    ]
    result = verified(in_batches(SOURCE, 20), target, rules=TargetRules(is_compacted=True), runs=RUNS)
    assert differences_in(result) == []
    assert [(stretch.first, stretch.last) for stretch in result.stretches] == [(110, 110), (140, 140)]
    gone = verified(in_batches(SOURCE, 20), target, runs=RUNS)
    assert gone.differences == {"missing": 2}, "a topic that is not compacted loses no records in the middle"


@pytest.mark.parametrize("thinned", ["source", "target", "both"])
def test_long_gaps_of_compaction_in_either_log_are_passed(thinned: str) -> None:
    """Of 3,000 records of one key, the cleaner leaves a few; the other log still has all."""
    whole = [record(at, b"v%d" % (at // 700), timestamp=at // 700) for at in range(3000)]
    few = [r for r in whole if r.offset % 997 == 5]
    some = [r for r in whole if r.offset % 700 == 699 or r.offset == 2999]
    source = few if thinned in ("source", "both") else whole
    target = some if thinned in ("target", "both") else whole
    copy = [batch([r], producer=(OURS, 0, r.offset)) for r in target]
    runs, ends = [Run(0, 0, 3000)], ((0, 0), (3000, 3000))
    rules = TargetRules(is_compacted=True)
    result = verified(in_batches(source, 100), copy, rules=rules, runs=runs, start=ends[0], end=ends[1])
    assert differences_in(result) == []
    offsets = {r.offset for r in source} & {r.offset for r in target}
    assert result.records == len(offsets)
    assert sum(result.not_compared.values()) == len(source) + len(target) - 2 * len(offsets)


def test_batches_of_other_origins_have_no_copy() -> None:
    """They are left out by their producer ids; a record of the flow in front of its first run is not verified."""
    theirs = [batch(records(at, 10), producer=(FOREIGN, 0, at)) for at in (90, 120)]
    source = [
        *in_batches(records(80, 10), 10),
        theirs[0],
        *in_batches(SOURCE[:20], 10),
        theirs[1],
        *in_batches(SOURCE[30:], 10),
    ]
    copy = copied([*SOURCE[:20], *SOURCE[30:]])
    result = verified(
        *(source, as_copy(copy, 10)),
        rules=TargetRules(has_foreign_writers=True),
        runs=[Run(100, 0, 20), Run(130, 20, 30)],
        is_copied=lambda batch: batch.producer_id != FOREIGN,
    )
    assert differences_in(result) == []
    assert result.records == 50
    assert result.stretches == [NotCompared(NotComparedReason.BEFORE_THE_RUNS, 80, 89, 10)]


def test_timestamps_that_the_target_sets_are_not_compared() -> None:
    target = as_copy(copied(SOURCE), 10, attributes=LOG_APPEND_TIME, max_timestamp=99_999)
    result = verified(in_batches(SOURCE, 10), target)
    assert differences_in(result) == []
    assert result.stretches == [NotCompared(NotComparedReason.TIMESTAMP, 100, 159, 60)]


def test_equal_records_in_a_row_are_located_by_their_timestamps() -> None:
    source = [record(at, b"same", timestamp=at) for at in range(50)]
    copy = copied([r for r in source if r.offset != 25])
    result = verified(in_batches(source, 10), as_copy(copy, 10))
    assert differences_in(result) == [("missing", 25, -1)]


def test_copy_of_something_else_is_different_throughout() -> None:
    others = [record(at, b"other-%d" % at) for at in range(600)]
    source = records(0, 600)
    result = verified(in_batches(source, 50), as_copy(others, 50))
    assert sum(result.differences.values()) == 600
    assert len(result.listed) == LISTED


def test_wrong_crc_of_equal_bytes_is_unreadable_on_the_target() -> None:
    target = as_copy(copied(SOURCE), 20)
    spoil(target, 17, 1)
    for depth in DEPTHS:
        result = verified(in_batches(SOURCE, 20), target, depth=depth, runs=RUNS)
        assert differences_in(result) == [("unreadable", -1, 20)], depth
        assert result.stretches == [NotCompared(NotComparedReason.UNREADABLE, 120, 139, 20)]


def test_unreadable_batch_of_the_source_counts_all_its_records() -> None:
    source = in_batches(SOURCE, 20)
    spoil(source, 70, 1)
    copy = [r._replace(offset=r.offset - 100 - (20 if r.offset >= 140 else 0)) for r in SOURCE]
    target = as_copy([*copy[:20], *copy[40:]], 20)
    result = verified(source, target, runs=[Run(100, 0, 20), Run(140, 20, 20)])
    assert differences_in(result) == []
    assert result.stretches == [NotCompared(NotComparedReason.UNREADABLE, 120, 139, 20)]


def test_start_in_the_middle_of_batches_compares_from_there() -> None:
    result = verified(in_batches(SOURCE, 20), as_copy(copied(SOURCE), 20), runs=RUNS, start=(107, 7))
    assert differences_in(result) == []
    assert result.records == 53


def test_runs_between_source_and_copy_are_those_of_the_scene() -> None:
    assert runs_between(SOURCE, copied(SOURCE)) == list(RUNS)


@pytest.mark.parametrize("depth", DEPTHS)
def test_aborted_append_on_the_target_is_no_copy(depth: Depth) -> None:
    """The exactly-once mode appends records again after it has aborted their transaction."""
    source = records(0, 8)
    appends = source[:3], source[3:6], source[3:6], source[6:]
    target: list[Batch] = []
    for first, part in zip((0, 4, 8, 12), appends, strict=True):
        target += as_copy(copied(part, first), 3, attributes=TRANSACTIONAL)
        marker = record(target[-1].last_offset + 1)
        target.append(batch([marker], producer=(OURS, 0, -1), attributes=TRANSACTIONAL | CONTROL))
    runs = (Run(0, 0, 3), Run(3, 8, 3), Run(6, 12, 2))
    verifier = verified(in_batches(source, 4), target, depth=depth, runs=runs, aborted_on_target=[(OURS, 4)], at_once=2)
    assert (differences_in(verifier), verifier.differences, verifier.records) == ([], {}, 8)
