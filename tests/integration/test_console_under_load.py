"""The console with a topic of very many partitions, and with targets that do not answer: other flows stay live."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from lockstep_config import load
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.flow_watches import FlowWatches
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.acting_console import ActingConsole
from tests.support.broker import Broker
from tests.support.console_scene import create_control_topics, fan_in_file, flow_rows, write_rows
from tests.support.eventually import wait_until
from tests.support.proxy import Proxy

MOST_IN_ONE_PIECE_S = 0.5
"""Most seconds of processor time for which the event loop may do nothing else."""

FROZEN_FOR_S = 60.0
FRESH_S = 6.0
"""Seconds that a live flow may be old while a page is open: 5, and what a busy machine takes."""

MOST_GROWTH = 32 * 2**20
"""Most bytes that the console may grow by while targets do not answer."""


class LoopPieces:
    """The longest piece of processor time that the event loop took without a turn for anybody else."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        watching = asyncio.ensure_future(self._watch())
        try:
            yield
        finally:
            await cancelled([watching])

    async def _watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            self.longest_s, before = max(self.longest_s, now - before), now


@pytest.mark.long
async def test_topic_of_100_000_partitions_keeps_nobody_waiting(
    tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker
) -> None:
    shown = Flow(flow.source, "hub")
    file = fan_in_file(tmp_path, [flow.source], broker_a.bootstrap, broker_b.bootstrap)
    create_control_topics(broker_b.bootstrap, shown)
    topic = MirroredTopic(
        source_topic=f"{flow.source}-big", target_topic="copy.big", partitions=100_000, target_partitions=100_000
    )
    write_rows(broker_b.bootstrap, shown, [topic, *flow_rows(f"{flow.source}-small", 20_000)[3:]])
    watches, pieces = FlowWatches(load(file, {}).flows), LoopPieces()
    watch = watches.watch(str(shown))
    assert watch is not None
    running = asyncio.ensure_future(watches.run())
    try:
        async with asyncio.timeout(300), pieces.measured():
            await _use(watch)
    finally:
        await cancelled([running])
    assert pieces.longest_s < MOST_IN_ONE_PIECE_S


class Page:
    """What an open page is sent."""

    def __init__(self) -> None:
        self.reports = 0

    def on_report(self, watch: FlowWatch) -> None:
        self.reports += 1

    def on_rows(self, *_: object) -> None: ...

    def on_events(self, *_: object) -> None: ...


async def _use(watch: FlowWatch) -> None:
    """Look at a flow as pages do, until three reports are read."""
    page = Page()
    with watch.watching(page):
        while page.reports < 3 or watch.dated.report is None:
            await asyncio.sleep(0.05)
        watch.note_cluster("hub", "it does not answer")
        watch.note_cluster("hub", "")
        report = watch.dated.report
        assert len(report.partitions) == 100_000
        body = json.loads(await watch.text(["partitions"]))
        assert len(body["partitions"]) == 100_000
        assert body["lag_unknown"] == 100_000


@pytest.mark.long
def test_targets_that_do_not_answer_keep_no_other_flow_waiting(
    tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker
) -> None:
    sources = [f"{flow.source}{number}" for number in range(6)]
    with Proxy() as way, Broker("C", behind=way) as cut_off:
        file = _six_flows(tmp_path, sources, broker_a.bootstrap, way.bootstrap, broker_b.bootstrap)
        frozen, live = (
            [Flow(source, alias) for source in some] for alias, some in zip("fl", _split(sources), strict=True)
        )
        for address, flows in ((cut_off.bootstrap, frozen), (broker_b.bootstrap, live)):
            for each in flows:
                create_control_topics(address, each)
                write_rows(address, each, flow_rows("t", 2))
        with ActingConsole(file) as console:
            console.wait_ready()
            process = psutil.Process(console.pid)

            def bodies() -> dict[str, dict[str, Any]]:
                return {body["flow"]: body for body in console.ask("GET", "/flows")[1]["flows"]}

            wait_until(
                lambda: not any("unknown" in body for body in bodies().values()),
                within=60,
                every=0.5,
                what="all flows are known",
            )
            held, before = process.memory_info().rss, bodies()
            way.hold()
            began = time.monotonic()
            oldest_s, unknown = 0.0, dict[str, set[int]]()
            while time.monotonic() - began < FROZEN_FOR_S:
                now = bodies()
                for each in live:
                    assert "unknown" not in now[str(each)]
                    oldest_s = max(oldest_s, time.time() - now[str(each)]["at_ms"] / 1000)

                if time.monotonic() - began > FRESH_S:
                    for each in frozen:
                        unknown.setdefault(str(each), set()).add(now[str(each)]["known_ms"])
                time.sleep(0.25)
            grown = process.memory_info().rss - held
            assert oldest_s < FRESH_S
            for each in frozen:
                (known_ms,) = unknown[str(each)]
                assert 0 <= known_ms - before[str(each)]["at_ms"] < FRESH_S * 1000, "the last report before the outage"
            assert grown < MOST_GROWTH, f"{grown / 2**20:.0f} MiB"
            way.heal()
            wait_until(
                lambda: not any("unknown" in body for body in bodies().values()),
                within=20,
                every=0.2,
                what="all flows are known again",
            )


def _split(sources: list[str]) -> tuple[list[str], list[str]]:
    return sources[:4], sources[4:]


def _six_flows(folder: Path, sources: list[str], source: str, frozen: str, live: str) -> Path:
    """Return a file with four flows to the cluster `f` and two to the cluster `l`."""
    lines = [f"clusters = {', '.join((*sources, 'f', 'l'))}", f"f.bootstrap.servers = {frozen}"]
    lines += [f"l.bootstrap.servers = {live}", "emit.heartbeats.enabled = false"]
    lines += [
        f"{name}replication.factor = 1" for name in ("", "offset.storage.", "heartbeats.topic.", "checkpoints.topic.")
    ]
    for alias, some in zip("fl", _split(sources), strict=True):
        for each in some:
            lines += [f"{each}.bootstrap.servers = {source}", f"{each}->{alias}.enabled = true"]
            lines += [f"{each}->{alias}.topics = {each}-.*", f"{alias}->{each}.emit.heartbeats.enabled = false"]
    path = folder / "mm2.properties"
    path.write_text("\n".join(lines) + "\n")
    return path
