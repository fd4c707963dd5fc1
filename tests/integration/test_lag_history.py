"""The history of the lag that the driver writes: over a kill, another leader, a clock that goes back. One mirror of one
slot is this file's own."""

import time
import uuid
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from lockstep_rules.offsets.lag_history import BLOCK_MS, SAMPLE_MS, read_history, read_worst, summarize
from lockstep_state.rows.state_rows import LagBlock, Leader, WorstLags
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess
from tests.support.shifted_clock import ShiftedClock, can_shift

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MARK = uuid.uuid4().hex[:6]
WITHIN = 120.0
GAP_S = 25.0
"""The seconds without a driver, so that at least one sample is missing."""


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> ShiftedClock | None:
    """Return the time of day of the data plane, where a test can move it."""
    return ShiftedClock(tmp_path_factory.mktemp("clock")) if can_shift() else None


@pytest.fixture(scope="module")
def mirror(pair: Pair, tmp_path_factory: pytest.TempPathFactory, clock: ShiftedClock | None) -> Iterator[Mirror]:
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    made = Mirror.one_flow(tmp_path_factory.mktemp("lag"), MARK, a, b, slots=1)
    if clock is not None:
        environment = clock.environment()
        made.data_plane = ServiceProcess("lockstep_data_plane", made.config, *made.flows, environment=environment)
    with made as running:
        yield running


@pytest.fixture
def flow(mirror: Mirror) -> MirroredFlow:
    return mirror.flow


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def samples(flow: MirroredFlow, since_ms: int = 0) -> dict[int, tuple[int, int]]:
    """Return the lag and the unknown partitions of each sample that was taken, by its time."""
    return {
        row.begins_ms + place * SAMPLE_MS: (lag_ms, unknown)
        for row in flow.rows(LagBlock)
        for place, (lag_ms, unknown) in enumerate(zip(row.lag_ms, row.unknown, strict=True))
        if unknown >= 0
        and since_ms <= row.begins_ms + place * SAMPLE_MS < (since_ms + BLOCK_MS if since_ms else now_ms())
    }


def wait_for_samples(flow: MirroredFlow, since_ms: int, *, count: int = 1) -> Sequence[int]:
    """Return the times of samples of which all partitions are known."""

    def known() -> Sequence[int]:
        times = sorted(at_ms for at_ms, (_, unknown) in samples(flow, since_ms).items() if unknown == 0)
        return times if len(times) >= count else ()

    return wait_until(known, within=WITHIN, every=0.5, what=f"{count} samples are written")


def test_lag_is_written_each_ten_seconds_and_a_stall_shows(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name(MARK))
    produce(flow.source, topic, [Record(value=b"before")])
    flow.wait_copied(topic)
    began_ms = now_ms()
    times = wait_for_samples(flow, began_ms, count=3)
    assert {later - earlier for earlier, later in pairwise(times)} == {SAMPLE_MS}
    assert summarize(flow.rows(LagBlock), now_ms()).now_ms is not None
    frozen = [worker for worker in mirror.workers() if mirror.is_connected(worker)]
    assert frozen
    for worker in frozen:
        worker.suspend()
    try:
        produce(flow.source, topic, [Record(value=b"%d" % n) for n in range(50)])
        wait_until(
            lambda: [lag_ms for lag_ms, _ in samples(flow, began_ms).values() if lag_ms >= 10_000],
            within=WITHIN,
            every=0.5,
            what="the history shows the stall",
        )
        worst = wait_until(
            lambda: [one for one in read_worst(flow.rows(WorstLags), now_ms(), 1) if one.topic == topic],
            within=WITHIN,
            every=0.5,
            what="the partition is among the worst",
        )
        assert max(lag_ms or 0 for lag_ms in worst[0].lag_ms) > 0
    finally:
        for worker in frozen:
            worker.resume()
    flow.wait_copied(topic)
    summary = summarize(flow.rows(LagBlock), now_ms(), 1)
    assert summary.worst_ms is not None
    assert summary.worst_ms >= 10_000
    history = read_history(flow.rows(LagBlock), now_ms(), 1)
    assert 50 in history.least_lag_records


def test_killed_driver_leaves_a_gap_and_the_next_one_goes_on(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name(MARK))
    produce(flow.source, topic, [Record(value=b"before")])
    flow.wait_copied(topic)
    _wait_within_a_block(90.0)
    before = wait_for_samples(flow, now_ms())
    block = before[0] - before[0] % BLOCK_MS
    terms = {row.at_ms for row in flow.rows(Leader) if row.service == "data-plane"}
    mirror.kill_data_plane()
    killed_ms = now_ms()
    time.sleep(GAP_S)  # nobody leads for so long: what is waited for is that nothing comes
    mirror.data_plane.start()
    restarted_ms = now_ms()
    wait_for_samples(flow, restarted_ms)
    assert {row.at_ms for row in flow.rows(Leader) if row.service == "data-plane"} != terms
    taken = samples(flow)
    assert before[0] in taken, "what the killed driver wrote is there"
    missing = list(range(killed_ms - killed_ms % SAMPLE_MS + SAMPLE_MS, restarted_ms - SAMPLE_MS, SAMPLE_MS))
    assert missing
    assert not taken.keys() & set(missing), "a gap is unknown"
    history = read_history(flow.rows(LagBlock), now_ms(), 1)
    places = [(at_ms - history.begins_ms) // SAMPLE_MS for at_ms in missing]
    assert [history.lag_ms[place] for place in places] == [None] * len(places)
    (row,) = (row for row in flow.rows(LagBlock) if row.begins_ms == block)
    assert len([unknown for unknown in row.unknown if unknown >= 0]) >= 2, "both drivers wrote the same row"


def test_ring_wraps_and_a_clock_that_goes_back_loses_nothing(flow: MirroredFlow, clock: ShiftedClock | None) -> None:
    if clock is None:
        pytest.skip("needs Linux and a C compiler as cc")
    day_s = 86_400
    _wait_within_a_block(60.0)
    (before, *_) = wait_for_samples(flow, now_ms())
    begins_ms = before - before % BLOCK_MS
    try:
        clock.set(day_s)  # the same place in the ring
        wait_for_samples(flow, begins_ms + day_s * 1000)
        rows = {row.begins_ms: row for row in flow.rows(LagBlock)}
        assert begins_ms not in rows, "the row of a day ago is replaced"
        assert len(rows) <= 144
        clock.set(-3_600)
        wait_for_samples(flow, begins_ms - 3_600_000)
        clock.set(0)
        wait_for_samples(flow, now_ms())
    finally:
        clock.set(0)
    history = read_history(flow.rows(LagBlock), now_ms(), 2)
    assert history.lag_ms[-1] is not None or history.lag_ms[-2] is not None
    assert any(lag_ms is not None for lag_ms in history.lag_ms[:-300]), "what was written an hour ago by that clock"
    assert all(row.begins_ms <= now_ms() for row in flow.rows(LagBlock) if row.block == before // BLOCK_MS % 144)


def _wait_within_a_block(room_s: float) -> None:
    """Wait for the next ten minutes if these end soon."""
    left_ms = BLOCK_MS - now_ms() % BLOCK_MS
    if left_ms < room_s * 1000:
        time.sleep(left_ms / 1000)
