"""A watch shows the report that it has now, and a mistake with one flow hides no other."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_console import flow_watch, flow_watches
from lockstep_console.api.flows import list_head
from lockstep_console.flow_watch import DatedReport, FlowWatch
from lockstep_console.flow_watches import FlowWatches
from lockstep_console.followed.watched_rows import WatchedRows
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_ops.status.flow_status import UnknownStatus
from tests.support.flow_file import file, settings

__all__ = ["file", "settings"]


def report(watch: FlowWatch, reason: str) -> DatedReport:
    return DatedReport(None, reason, 1, UnknownStatus.because(watch.settings.flow, reason))


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
