"""A comparison may be stopped anywhere: it goes on from where all is reported, and finds what one run would find."""

from collections import Counter
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_rules.offsets.offset_runs import Run
from tests.support.batch_bytes import record, records
from tests.unit.data_plane.verify_scene import OURS, as_copy, copied, differences_in, in_batches, verified

ORDERS = records(100, 60)
CHANGED = copied([*ORDERS[:25], ORDERS[25]._replace(value=b"x"), *ORDERS[26:]])
NUMBERED = [record(at, b"%d" % at, timestamp=at) for at in range(700)]
DEPTHS = (Depth.CRC, Depth.BYTES, Depth.RECORD)


@cache
def numbered_batches(size: int) -> list[Batch]:
    return in_batches(NUMBERED, size)


def test_position_waits_until_all_before_it_is_decided() -> None:
    ends = (100, 0), (130, 30)
    verifier = PartitionVerifier(
        *ends, Depth.BYTES, TargetRules(), OffsetMap([Run(100, 0, 60)]), lambda producer: producer == OURS
    )
    verifier.add_source(verifier.source_batches(in_batches(ORDERS, 10)[:3], AbortedTransactions()))
    verifier.add_target(as_copy(copied(ORDERS), 10)[:2], AbortedTransactions())
    verifier.compare()
    assert verifier.position == (120, 20)
    verifier.add_target(as_copy(CHANGED, 10)[2:3], AbortedTransactions())
    verifier.compare()
    assert verifier.position == (125, 25), "the difference may still be a record in another place"
    assert differences_in(verifier) == []
    verifier.finish()
    assert verifier.position == (130, 30)
    assert differences_in(verifier) == [("value", 125, 25)]


def test_position_stays_while_a_lone_record_may_still_be_found() -> None:
    source = records(0, 540)
    copy = copied([*source[:300], *source[301:]])
    verifier = PartitionVerifier((0, 0), (540, 539), Depth.BYTES, TargetRules(), OffsetMap(), lambda _: True)
    positions = set()
    for original, copied_batch in zip(in_batches(source, 20), as_copy(copy, 20), strict=True):
        verifier.add_source(verifier.source_batches([original], AbortedTransactions()))
        verifier.add_target([copied_batch], AbortedTransactions())
        verifier.compare()
        positions.add(verifier.position[0])
    assert verifier.differences == {}
    assert max(positions) <= 300
    verifier.finish()
    assert differences_in(verifier) == [("missing", 300, -1)]


@settings(max_examples=200)
@given(
    count=st.integers(1, 120),
    size=st.integers(1, 40),
    copied_size=st.integers(1, 40),
    damage=st.sampled_from(["none", "value", "missing", "extra"]),
    place=st.integers(0, 1000),
    at_once=st.integers(1, 5),
    distinct=st.booleans(),
)
def test_one_damage_anywhere_is_the_only_difference(
    count: int, size: int, copied_size: int, damage: str, place: int, at_once: int, distinct: bool
) -> None:
    source = [record(at * 2, b"%d" % (at if distinct else at % 3), timestamp=at) for at in range(count)]
    copy, at = copied(source), place % count
    if damage == "value":
        copy[at] = copy[at]._replace(value=b"damaged")
    elif damage == "missing":
        copy = copied(r for r in copy if r.offset != at)
    elif damage == "extra":
        copy = copied([*copy[:at], record(0, b"extra", timestamp=-5), *copy[at:]])
    result = verified(in_batches(source, size), as_copy(copy, copied_size), at_once=at_once, start=(0, 0))
    wanted = {
        "none": [],
        "value": [("value", at * 2, at)],
        "missing": [("missing", at * 2, -1)],
        "extra": [("extra", -1, at)],
    }
    assert differences_in(result) == wanted[damage]
    assert result.position == (source[-1].offset + 1, len(copy))


@settings(max_examples=200)
@given(
    size=st.integers(1, 40),
    copied_size=st.integers(1, 40),
    damages=st.lists(
        st.tuples(st.sampled_from(["value", "missing", "extra", "order"]), st.integers(0, 699)), max_size=4
    ),
    stops=st.lists(st.integers(1, 12), min_size=1, max_size=20),
    with_runs=st.booleans(),
    depth=st.sampled_from(DEPTHS),
)
def test_comparison_that_is_killed_anywhere_finds_the_same(
    size: int, copied_size: int, damages: list[tuple[str, int]], stops: list[int], with_runs: bool, depth: Depth
) -> None:
    """After each kill it goes on from the last place that was written. All parts together find what one run finds."""
    copy = copied(NUMBERED)
    for kind, at in damages:
        place = at % (len(copy) - 1)
        if kind == "value":
            copy[place] = copy[place]._replace(value=b"damaged %d" % at)
        elif kind == "missing":
            del copy[place]
        elif kind == "extra":
            copy.insert(place, record(0, b"extra %d" % at, timestamp=-5))
        else:
            copy[place], copy[place + 1] = copy[place + 1], copy[place]
    logs = numbered_batches(size), as_copy(copied(copy), copied_size)
    end, offsets = (700, len(copy)), OffsetMap([Run(0, 0, 700)] if with_runs else [])

    def comparison(begin: tuple[int, int], shift: int) -> PartitionVerifier:
        return PartitionVerifier(*(begin, end, depth, TargetRules(), offsets, lambda _: True), shift=shift)

    whole = comparison((0, 0), 0)
    feed(whole, *logs, steps=None)
    position, shift, records_found, differences, size_found = (0, 0), 0, 0, Counter[str](), 0
    for steps in [*stops, None]:
        part = comparison(position, shift)
        if not feed(part, *logs, steps=steps):
            continue  # killed before anything was written
        position, shift = part.position, part.shift
        records_found += part.records
        size_found += part.bytes
        differences += part.differences
    assert (records_found, differences, size_found) == (whole.records, whole.differences, whole.bytes)
    assert position == end


def feed(verifier: PartitionVerifier, source: list[Batch], target: list[Batch], *, steps: int | None) -> bool:
    """Both logs from where the verifier begins: so many steps, or to the end. Whether it may be left there."""
    ahead = [batch for batch in source if batch.last_offset >= verifier.position[0]]
    behind = [batch for batch in target if batch.last_offset >= verifier.position[1]]
    for number in range(max(len(ahead), len(behind))):
        if number == steps:
            return verifier.is_settled
        verifier.add_source(verifier.source_batches(ahead[number : number + 1], AbortedTransactions()))
        verifier.add_target(behind[number : number + 1], AbortedTransactions())
        verifier.compare()
    verifier.finish()
    return True
