"""What a slow target does to a slot: the fetching slows down, the memory does not grow (`record-path.md`).
And what becomes of one that is silent for longer than the file says. A mirror of one slot is the file's own."""

import os
import time
import uuid
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, end_offsets, produce, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow, ports_of
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MARK = f"p{uuid.uuid4().hex[:6]}"
MIB = 1 << 20
CAP = 8 * MIB
PARTITIONS = 200
PIECE = 50_000
ALL = PARTITIONS * 5 * PIECE
"""Several times what may be in flight; as many megabytes as each partition may be asked for would be more still."""

ONE_BATCH = MIB
FETCHING = 2  # connections
RSS_SLACK = 3 * CAP + 48 * MIB
"""Batches, what is being read and sent beside them, and what Python itself needs more once it has copied."""

WITHIN = 180.0


@pytest.fixture(scope="module")
def mirror(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    assert pair.a.proxy is not None
    assert pair.b.proxy is not None
    a, b = (pair.a.bootstrap, pair.a.proxy.bootstrap), (pair.b.bootstrap, pair.b.proxy.bootstrap)
    line = f"lockstep.max.in.flight.bytes = {CAP}"
    with Mirror.one_flow(tmp_path_factory.mktemp("pressed"), MARK, a, b, line) as running:
        yield running


@pytest.fixture
def flow(mirror: Mirror) -> MirroredFlow:
    return mirror.flow


def backlog() -> list[Record]:
    return [Record(value=os.urandom(PIECE), partition=n % PARTITIONS) for n in range(5 * PARTITIONS)]


def stands_still(counted: Callable[[], int]) -> int:
    """Once no more than what asks and rests goes on with has been added for two seconds."""
    seen = [counted()]

    def still() -> bool:
        seen.append(counted())
        return len(seen) > 4 and seen[-1] - seen[-5] < MIB // 4

    wait_until(still, within=WITHIN, every=0.5, what="nothing more comes")
    return seen[-1]


def begun(flow: MirroredFlow, mirror: Mirror, topic: str) -> psutil.Process:
    """The slot that copies, once it has copied a record of each partition."""
    produce(flow.source, topic, [Record(value=b"first", partition=n) for n in range(PARTITIONS)])
    flow.wait_written_down(topic, within=WITHIN)
    return mirror.copying_worker()


def test_a_target_that_does_not_answer_stops_the_fetching_at_the_cap(
    mirror: Mirror, flow: MirroredFlow, proxy_a: Proxy, proxy_b: Proxy
) -> None:
    topic = create_topic(flow.source, unique_name(MARK), partitions=PARTITIONS)
    worker = begun(flow, mirror, topic)
    resident = worker.memory_info().rss
    proxy_b.hold(requests=False)
    before = proxy_a.answered
    produce(flow.source, topic, backlog())
    wait_until(lambda: proxy_a.answered - before > CAP // 4, within=WITHIN, what="some was fetched")
    fetched = stands_still(lambda: proxy_a.answered) - before
    assert fetched < CAP + FETCHING * ONE_BATCH < ALL
    assert worker.memory_info().rss - resident < RSS_SLACK
    proxy_b.heal()
    flow.wait_written_down(topic, within=WITHIN)
    assert flow.compared(topic).equal
    assert worker.memory_info().rss - resident < RSS_SLACK


def test_append_without_an_answer_is_located_and_continues_elsewhere(
    pair: Pair, tmp_path_factory: pytest.TempPathFactory, proxy_b: Proxy
) -> None:
    mark, pieces = f"u{uuid.uuid4().hex[:6]}", 40
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap, proxy_b.bootstrap)
    line = f"s{mark}->t{mark}.producer.override.request.timeout.ms = 2000"  # nothing but the records has it
    with Mirror.one_flow(tmp_path_factory.mktemp("unanswered"), mark, a, b, line) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, unique_name(mark))
        records = [Record(value=os.urandom(PIECE)) for _ in range(pieces)]
        produce(flow.source, topic, records)
        flow.wait_written_down(topic, within=WITHIN)
        worker, carried = mirror.copying_worker(), proxy_b.carried()
        (appending,) = [port for port in ports_of(worker) if carried.get(port, 0) > pieces * PIECE // 2]
        proxy_b.hold(requests=False)
        produce(flow.source, topic, records)
        wait_until(lambda: appending not in ports_of(worker), every=0.1, what="it is given up")
        assert end_offsets(flow.target, flow.remote(topic))[0] > pieces, "some was appended and nobody knows"
        proxy_b.heal()
        flow.wait_written_down(topic, within=WITHIN)
        assert flow.compared(topic).equal
        assert [flow.events(kind) for kind in ("ForeignWrite", "GapFound", "PartitionHalted")] == [[], [], []]


def test_the_flows_limit_is_shared_by_its_slots(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> None:
    mark, per_s, seconds, pieces, size = f"l{uuid.uuid4().hex[:6]}", 200_000, 10, 50, 10_000
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    lines = (f"lockstep.max.bytes.per.second = {per_s}", f"s{mark}.consumer.max.partition.fetch.bytes = 20000")
    with Mirror.one_flow(tmp_path_factory.mktemp("limited"), mark, a, b, *lines, slots=2) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, unique_name(mark), partitions=4)
        flow.wait_mirrored(topic, partitions=4)

        def shared() -> bool:
            return sorted(map(len, flow.assigned(topic).values())) == [2, 2]

        wait_until(shared, within=WITHIN, every=0.25, what="each slot has two partitions")
        records = [Record(value=os.urandom(size), partition=n % 4) for n in range(4 * pieces)]
        assert len(records) * size == seconds * per_s
        began = time.monotonic()
        produce(flow.source, topic, records, settings={"batch.num.messages": "1"})
        flow.wait_written_down(topic, within=WITHIN)
        assert time.monotonic() - began > seconds / 2, "the limit is for both together, and so it takes ten seconds"
        assert flow.compared(topic).equal
