"""Up to which offset a partition is fetched: delays, ends, and batches that go beyond them."""

import pytest

from lockstep_data_plane.core.events import Leave, Received, Resumed
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.fetch.fetch_limits import NO_LIMIT, FetchLimits
from lockstep_data_plane.record_batch.layout import LARGEST_OFFSET, size_before
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, SeenEnds
from tests.support.batch_bytes import batch_bytes, records

TP = ("t", 0)


def partition(upstream: int = -1, *, beyond: int = 0) -> PartitionState:
    """A partition that goes on behind `upstream`, and whose target holds `beyond` more records of ours."""
    state = PartitionState("t", 0, "a.t", 100)
    row = PartitionProgress(
        topic="t",
        partition=0,
        producer_id=4000,
        producer_epoch=1,
        upstream=upstream,
        downstream=upstream,
        sequence=upstream,
    )
    state.step(Resumed(row, LastAppend(upstream + beyond, upstream + beyond)))
    return state


def limits(delay_ms: int = 5_000, **topics: MirroredTopic) -> FetchLimits:
    return FetchLimits(lambda topic: delay_ms, topics)


def seen(released: int, topic_id: str = "") -> SeenEnds:
    return SeenEnds(topic="t", partition=0, released=released, source_topic_id=topic_id)


def test_partition_without_a_delay_has_no_limit() -> None:
    found = limits(0)
    assert not found.take_row(seen(5)), "a row that an earlier file left"
    assert found.find(partition()) == NO_LIMIT > LARGEST_OFFSET + 1
    assert found.allows(partition(10**6))


def test_delayed_partition_waits_until_it_is_known_what_may_be_copied() -> None:
    found = limits()
    assert not found.allows(partition())
    assert found.take_row(seen(5))
    assert found.find(partition()) == 5
    assert found.allows(partition(3))
    assert not found.allows(partition(4))
    found.take_row(seen(6))
    assert found.allows(partition(4))


def test_row_of_another_topic_of_the_name_releases_nothing() -> None:
    found = limits(t=MirroredTopic(source_topic="t", target_topic="a.t", source_topic_id="new"))
    found.take_row(seen(5, "old"))
    assert not found.allows(partition())
    found.take_row(seen(5, "new"))
    assert found.allows(partition())


def test_end_counts_in_place_of_a_delay() -> None:
    found = limits()
    found.take_row(seen(5))
    assert found.set_ends({TP: 9})
    assert not found.set_ends({TP: 9}), "nothing has changed"
    assert found.find(partition()) == 9
    assert not found.allows(partition(8))
    assert found.set_ends({})
    assert found.find(partition()) == 5


def test_end_holds_without_a_delay_too() -> None:
    found = limits(0)
    found.set_ends({TP: 0})
    assert not found.allows(partition())


def test_records_that_the_target_has_already_are_read_beyond_the_limit() -> None:
    found, state = limits(), partition(4, beyond=3)
    assert state.records_to_skip == 3
    assert found.find(state) == 8, "three offsets hold three records at most"
    found.set_ends({TP: 20})
    assert found.find(state) == 20


def test_partition_at_rest_reads_whatever_it_needs_to_find_its_end() -> None:
    found = limits()
    state = PartitionState("t", 0, "a.t", 100)
    state.step(Leave("stopped"))
    row = PartitionProgress(topic="t", partition=0, producer_id=4000, producer_epoch=1)
    state.step(Resumed(row, LastAppend(5, 5)))
    assert state.records_to_skip == 6
    assert found.find(state) == NO_LIMIT


def test_batch_beyond_the_limit_is_asked_for_again_only_when_the_limit_changes() -> None:
    found, state = limits(), partition()
    found.take_row(seen(10))
    assert found.allows(state)
    found.on_cut(state, 10)
    assert not found.allows(state)
    found.take_row(seen(11))
    assert found.allows(state), "the batch may be whole within the limit now"
    found.take_row(seen(10))
    state.step(Received(3, 0))
    assert found.allows(state), "another batch comes next"


def test_end_is_reached_by_what_the_target_has_or_if_nothing_more_comes_before_it() -> None:
    found, state = limits(), partition(4)
    found.set_ends({TP: 8})
    assert found.has_reached(state, 5)
    assert not found.has_reached(state, 8)
    found.on_cut(state, 8)
    assert found.has_reached(state, 8), "offsets 5 to 7 are gone from the log, and the next batch is beyond"
    state.step(Received(7, 0))
    assert not found.has_reached(state, 8), "something was fetched since that is not judged yet"
    counting = partition(4, beyond=2)
    found.on_cut(counting, 8)
    assert not found.has_reached(counting, 8)
    found.forget(TP)
    assert not found.has_reached(partition(4), 8)


BATCHES = [batch_bytes(records(first, 3)) for first in (0, 3, 10)]
WHOLE = b"".join(BATCHES)


@pytest.mark.parametrize(
    ("limit", "batches"), [(0, 0), (2, 0), (3, 1), (5, 1), (6, 2), (12, 2), (13, 3), (NO_LIMIT, 3)]
)
def test_only_whole_batches_before_the_limit_count(limit: int, batches: int) -> None:
    assert size_before(WHOLE, limit) == sum(map(len, BATCHES[:batches]))
    assert size_before(memoryview(WHOLE), limit) == sum(map(len, BATCHES[:batches]))


def test_cut_off_batch_is_left_to_the_scan() -> None:
    assert size_before(WHOLE[:-1], NO_LIMIT) == len(WHOLE) - 1
    header_only = WHOLE[: len(BATCHES[0]) + 20]
    assert size_before(header_only, NO_LIMIT) == len(header_only)
    assert size_before(b"", 5) == 0
