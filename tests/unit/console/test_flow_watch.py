"""A watch shows the report that it has now, and a mistake with one flow hides no other."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_console import flow_watch, flow_watches, report_turns
from lockstep_console.api.flows import list_head
from lockstep_console.flow_watch import DatedReport, FlowWatch
from lockstep_console.flow_watches import FlowWatches
from lockstep_console.followed.watched_rows import READ_AT_ONCE, WatchedRows
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.status.flow_status import FlowStatus, UnknownStatus
from lockstep_ops.status.report import Report
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.flow_file import file, settings

__all__ = ["file", "settings"]


def report(watch: FlowWatch, reason: str) -> DatedReport:
    return DatedReport(None, reason, 1, UnknownStatus.because(watch.settings.flow, reason))


def a_report(at_ms: int) -> Report:
    return Report(
        flow="A->B",
        at_ms=at_ms,
        services=(),
        topics=(),
        partitions=(),
        slots=(),
        groups=(),
        acls=None,
        heartbeat="",
        held_back=(),
        troubles=(),
    )


async def test_each_report_is_shown_wherever_it_lies_in_memory(settings: Callable[..., FlowSettings]) -> None:
    watch = FlowWatches([settings()]).all[0]
    for number in range(100):
        watch._dated = report(watch, f"reason {2 * number}")
        assert f"reason {2 * number}" in watch.shown().text
        watch._dated = report(watch, f"reason {2 * number + 1}")  # nobody looks at this one


async def test_a_flow_is_made_once_for_all_who_look(settings: Callable[..., FlowSettings]) -> None:
    watch = FlowWatches([settings()]).all[0]
    shown = watch.shown()
    assert watch.shown() is shown
    watch.note_cluster("A", "cluster A cannot be reached")
    assert watch.shown() is not shown


async def test_mistake_with_the_rows_of_one_flow_hides_no_other_flow(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch = FlowWatches([settings()]).all[0]

    async def fail(*_: object, **__: object) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(flow_watch, "read_status", fail)
    for _ in range(2):
        watch._dated = await watch._read()
    assert "cannot work with what its rows say (OverflowError: date value out of range)" in watch.body()["sentence"]
    assert [each.message for each in caplog.records] == ["rows not understood"], "it is logged once"
    monkeypatch.setattr(WatchedRows, "rows", property(lambda _: 1 / 0))
    body = watch.body()
    assert (body["fine"], body["switch_ready"]) == (False, False)
    assert "ZeroDivisionError" in watch.shown().text or "ZeroDivisionError" in body["unknown"]


async def test_pauses_grow_while_a_target_does_not_answer_and_end_when_it_does(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_turns, "SOONEST_S", 0.001)
    monkeypatch.setattr(flow_watch, "LATEST_S", 0.002)
    watch = FlowWatches([settings()]).all[0]
    watch._backoff = Backoff(first=0.1, limit=60.0)
    loop, times, read = asyncio.get_running_loop(), list[float](), asyncio.Event()
    answers: FlowStatus = UnknownStatus.because(watch.settings.flow, "cluster B cannot be reached")

    async def read_status(*_: object, **__: object) -> FlowStatus:
        times.append(loop.time())
        read.set()
        return answers

    monkeypatch.setattr(flow_watch, "read_status", read_status)
    watch.rows._judged.set()
    watch.look()
    reading = asyncio.ensure_future(watch._keep_reading())
    async with asyncio.timeout(20):
        while len(times) < 4:
            read.clear()
            await read.wait()
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert all(gap >= least for gap, least in zip(gaps, (0.1, 0.2, 0.4), strict=True)), gaps
        watch.note_cluster("B", "cluster B cannot be reached")
        answers = a_report(at_ms=now_ms())
        watch.note_cluster("B", "")
        while watch.dated.report is None:
            await asyncio.sleep(0.01)
        assert loop.time() - times[3] < 0.7, "the pause of 0.8 s has ended"
        known_ms, count = watch.dated.at_ms, len(times)
        while len(times) < count + 3:
            await asyncio.sleep(0.001)
        answers = UnknownStatus.because(watch.settings.flow, "cluster B cannot be reached")
        while watch.dated.report is not None:
            known_ms = watch.dated.at_ms
            await asyncio.sleep(0)
        assert watch.body()["known_ms"] == known_ms
    await cancelled([reading])


async def test_first_request_is_told_that_the_target_does_not_answer_without_a_report(
    settings: Callable[..., FlowSettings],
) -> None:
    watch = FlowWatches([settings()]).all[0]
    asking = asyncio.ensure_future(watch.report())
    await asyncio.sleep(0)
    watch.note_cluster("B", "cluster B cannot be reached")
    async with asyncio.timeout(2):
        await asking
        await watch.report(within_s=0.01)
    assert watch.body()["unknown"] == "cluster B cannot be reached"


async def test_rows_are_read_in_pieces_and_others_have_their_turn(settings: Callable[..., FlowSettings]) -> None:
    watch = FlowWatches([settings()]).all[0]
    rows = [PartitionProgress(topic="orders", partition=number) for number in range(5 * READ_AT_ONCE)]
    watch.rows.apply([Record("state", 0, offset, *row.encode(), 7) for offset, row in enumerate(rows)])
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count_turns())
    await watch.rows.read_waiting()
    await cancelled([counting])
    assert turns >= 4
    assert len(watch.rows.rows) == len(rows)


async def test_flow_with_which_a_look_fails_is_unknown_and_the_others_are_looked_at(
    file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watches = FlowWatches(load(file("B->A.enabled = true", "B->A.topics = orders.*"), {}).flows)
    failing, other = watches.all
    monkeypatch.setattr(flow_watches, "LOOK_INTERVAL_S", 0.005)
    looks: Counter[str] = Counter()
    enough, is_mended = asyncio.Event(), False

    def look(watch: FlowWatch) -> None:
        looks[watch.name] += 1
        if looks[other.name] % 5 == 0:
            enough.set()
        if watch is failing and not is_mended:
            raise KeyError("switch/current")

    looking = asyncio.ensure_future(watches.look_again("silent switch not looked for", look))
    async with asyncio.timeout(10):
        await asyncio.wait({looking, asyncio.ensure_future(enough.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not looking.done(), "one flow has ended the look at all"
        assert "KeyError: 'switch/current'" in failing.shown().text
        assert "KeyError" in list_head(failing)["unknown"]
        assert "KeyError" not in other.shown().text
        assert [each.message for each in caplog.records] == ["silent switch not looked for"], "it is logged once"
        is_mended = True
        enough.clear()
        await enough.wait()
    await cancelled([looking])
    assert "KeyError" not in failing.shown().text
