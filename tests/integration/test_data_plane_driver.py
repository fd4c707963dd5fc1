"""What the driver finds out by itself: records that a slot says nothing of, and slots that move too much. One mirror of
two slots is this file's own."""

import os
import statistics
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise

import pytest

from lockstep_state.rows.state_rows import SourceEnds
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.eventually import wait_until
from tests.support.metrics import read_page, values, wait_for_value
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MARK = uuid.uuid4().hex[:6]
SEEN_WITHIN = 25.0
"""The driver asks for the source's ends every ten seconds at most; a slot that says nothing for thirty is replaced."""

WITHIN = 300.0
PIECE, PIECE_EVERY_S = 500_000, 0.1
"""Bytes for each of some partitions, and so often at most: several MB a second, all of which one slot is to move."""

WEIGHED_S = 30.0
"""By then what partitions move was looked at three times."""


@pytest.fixture(scope="module")
def mirror(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path_factory.mktemp("driver"), MARK, a, b, slots=2) as running:
        yield running


@pytest.fixture
def flow(mirror: Mirror) -> MirroredFlow:
    return mirror.flow


def test_lag_of_frozen_slots_grows_by_the_end_offsets_of_the_driver(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name(MARK))
    produce(flow.source, topic, [Record(value=b"before")])
    flow.wait_written_down(topic)
    assert values(read_page(mirror.data_plane.page("/metrics")[1]), "lockstep_lag_records", topic=topic) == [0]
    frozen = [worker for worker in mirror.workers() if mirror.is_connected(worker)]
    assert frozen
    for worker in frozen:
        worker.suspend()
    try:
        produce(flow.source, topic, [Record(value=b"%d" % n) for n in range(50)])
        wait_for_value(mirror.data_plane, 50, "lockstep_lag_records", within=SEEN_WITHIN, topic=topic)
        wait_for_value(mirror.data_plane, 1, "lockstep_lag_seconds", within=SEEN_WITHIN, topic=topic)
        page = read_page(mirror.data_plane.page("/metrics")[1])
        assert values(page, "lockstep_partition_stuck", topic=topic) == [0], "sooner than the watchdog names it"
    finally:
        for worker in frozen:
            worker.resume()
    flow.wait_copied(topic)

    def none_waits() -> bool:
        page = read_page(mirror.data_plane.page("/metrics")[1])
        return (
            values(page, "lockstep_lag_records", topic=topic)
            == values(page, "lockstep_lag_seconds", topic=topic)
            == [0]
        )

    wait_until(none_waits, within=WITHIN, every=0.25, what="no record waits")


def test_ends_of_the_source_are_known_on_busy_cores(mirror: Mirror, flow: MirroredFlow) -> None:
    """A failover knows of no later record. The process is at work meanwhile: a page after the other."""
    topic = create_topic(flow.source, unique_name(MARK), partitions=12)
    produce(flow.source, topic, [Record(value=b"x" * 1_000, partition=n % 12) for n in range(2_000)])
    times: list[int] = []

    def asked_often() -> bool:
        read_page(mirror.data_plane.page("/metrics")[1])
        times.extend(row.asked_ms for row in flow.rows(SourceEnds) if row.asked_ms not in times)
        return len(times) >= 5

    wait_until(asked_often, within=WITHIN, every=0.01, what="the source's ends are asked for")
    assert statistics.median(later - earlier for earlier, later in pairwise(times)) <= 10_000


def test_new_partitions_go_to_the_idler_slot_and_busy_ones_are_parted(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name(MARK), partitions=4)
    flow.wait_mirrored(topic, partitions=4)
    before = wait_until(
        lambda: (found := flow.assigned(topic)) and sum(map(len, found.values())) == 4 and found,
        within=WITHIN,
        every=0.25,
        what="each partition has a slot",
    )
    # What other topics have moved lately decides which slot has more of them.
    busy, idler = sorted(before, key=lambda slot: len(before[slot]), reverse=True)
    heavy = sorted(before[busy])[:2]
    began = time.monotonic()

    def more() -> None:
        produce(flow.source, topic, [Record(value=os.urandom(PIECE), partition=number) for number in heavy * 4])

    def moved_much() -> bool:
        more()
        return time.monotonic() - began >= WEIGHED_S

    wait_until(moved_much, within=WITHIN, every=PIECE_EVERY_S, what="much is moved by one slot")
    new = create_topic(flow.source, unique_name(MARK))
    flow.wait_mirrored(new)
    placed = wait_until(
        lambda: [slot for slot, held in flow.assigned(new).items() if held], within=WITHIN, what="the new one is placed"
    )
    assert placed == [idler], "where less is moved"

    def parted() -> bool:
        more()
        return all(len(held & set(heavy)) == 1 for held in flow.assigned(topic).values())

    wait_until(parted, within=WITHIN, every=PIECE_EVERY_S, what=f"{topic}-{heavy} are with two slots")
    after = flow.assigned(topic)
    assert {number for held in after.values() for number in held} == set(range(4))
    assert mirror.data_plane.said("slots evened out")
    produce(flow.source, topic, [Record(value=b"last", partition=number) for number in range(4)])
    flow.wait_written_down(topic, within=WITHIN)
    assert flow.compared(topic).equal
    assert flow.events("SlotFailed") == flow.events("PartitionHalted") == []
