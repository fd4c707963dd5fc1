"""The driver's look at the ends of the source's logs, while its event loop is held up. Real clusters."""

import asyncio
import time
import uuid
from itertools import pairwise
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_data_plane.driver.driver import Driver
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.driver.source_monitor import SourceMonitor
from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import MirroredTopic, SourceEnds, decode_row
from tests.support.acting_context import acting_context
from tests.support.broker import Broker, started
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.control import read_so_far
from tests.support.services import one_flow_file

HELD_UP_S = 25.0
"""The group would have given the lead to another replica long before."""

PIECE = 500
"""Partitions of a topic at most: a broker creates more in one request too slowly."""


def ends_rows(bootstrap: str, topic: str) -> list[SourceEnds]:
    rows = [decode_row(record.key, record.value) for record in read_so_far(bootstrap, topic) if record.key]
    return [row for row in rows if isinstance(row, SourceEnds)]


async def check_largest_interval(folder: Path, a: Broker, b: Broker, topics: dict[str, int]) -> None:
    """Hold up the event loop, and compare the times at which the source was asked."""
    mark = uuid.uuid4().hex[:6]
    flow = Flow(f"{mark}A", f"{mark}B")
    path = one_flow_file(folder, flow, mark, a.bootstrap, b.bootstrap)
    async with acting_context("data-plane", load(path, {}).flow(flow), Driver.wants) as ctx:
        state = state_topic(flow)
        for topic, partitions in topics.items():
            row = MirroredTopic(source_topic=topic, target_topic=f"A.{topic}", partitions=partitions)
            key, value = row.encode()
            produce(b.bootstrap, state, [Record(key=key, value=value, partition=0)])
        while len(ctx.state.all(MirroredTopic)) < len(topics):
            await asyncio.sleep(0.1)
        monitor = SourceMonitor(ctx, MetricsCollector(ctx, dict), 1)
        async with monitor.running():
            began = time.monotonic()
            while not ends_rows(b.bootstrap, state):
                monitor.check()
                assert time.monotonic() - began < 60
                await asyncio.sleep(0.2)
            last = next(iter(topics))
            produce(a.bootstrap, last, [Record(value=b"late", partition=0)] * 7)
            time.sleep(HELD_UP_S)  # of this loop nothing runs meanwhile
            rows = ends_rows(b.bootstrap, state)
            held_up_ms = time.time() * 1000
    times = [row.asked_ms for row in rows] + [held_up_ms]
    assert max(later - earlier for earlier, later in pairwise(times)) <= 10_000, times
    assert rows[-1].by_partition()[last, 0][0] == 7
    assert {row.term for row in rows} == {rows[0].term}


@pytest.mark.long
async def test_look_at_12_logs_is_at_most_ten_seconds_old(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    topic = create_topic(broker_a.bootstrap, unique_name(), partitions=12)
    await check_largest_interval(tmp_path, broker_a, broker_b, {topic: 12})


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_look_at_10000_logs_is_at_most_ten_seconds_old(tmp_path: Path, broker_b: Broker) -> None:
    broker = Broker("A")
    with started(broker):
        topics = {create_topic(broker.bootstrap, unique_name(), partitions=PIECE): PIECE for _ in range(20)}
        await check_largest_interval(tmp_path, broker, broker_b, topics)
