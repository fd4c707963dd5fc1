"""How often reports are read, by what they cost."""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta

import pytest

from lockstep_console import report_turns
from lockstep_console.report_turns import (
    AT_ONCE,
    LOOKED_AT_MOST_S,
    LOOKED_AT_SHARE,
    SOONEST_S,
    UNSEEN_AT_MOST_S,
    UNSEEN_S,
    ReportTurns,
)
from lockstep_kafka.admin.admin import Admin


@dataclass
class Flow:
    """A flow that somebody looks at, or nobody."""

    is_looked_at: bool


def source() -> Admin:
    return Admin("A", {"bootstrap.servers": "127.0.0.1:1"}, timedelta(seconds=1))


def turns(looked_at: int, unseen: int) -> ReportTurns:
    flows = ReportTurns()
    for number in range(looked_at + unseen):
        flows.add(Flow(number < looked_at), source())
    return flows


def test_reports_of_many_flows_take_a_bounded_share_of_a_core() -> None:
    for looked_at in (10, 40):
        wait_s = turns(looked_at, unseen=5).looked_at_s(0.02)
        assert looked_at * 0.02 / wait_s <= LOOKED_AT_SHARE * 1.001
    assert turns(1, unseen=39).looked_at_s(0.02) == SOONEST_S
    assert turns(40, unseen=0).looked_at_s(10.0) == LOOKED_AT_MOST_S


def test_flows_that_nobody_looks_at_are_read_seldom() -> None:
    assert turns(0, unseen=1).unseen_s(0.001) == UNSEEN_S
    assert turns(0, unseen=40).unseen_s(10.0) == UNSEEN_AT_MOST_S


async def test_turns_at_the_same_time_share_what_the_process_takes() -> None:
    flows, cluster = ReportTurns(), source()
    costs: list[float] = []

    async def read(begun: asyncio.Event, may_end: asyncio.Event) -> None:
        async with flows.turn(cluster) as spent_s:
            begun.set()
            await may_end.wait()
            costs.append(spent_s())

    began = time.process_time()
    alone, together, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    first = asyncio.ensure_future(read(alone, may_end))
    await alone.wait()
    _work(0.1)
    second = asyncio.ensure_future(read(together, may_end))
    await together.wait()
    _work(0.2)
    may_end.set()
    await asyncio.gather(first, second)
    total = time.process_time() - began
    assert sum(costs) == pytest.approx(total, abs=0.02)
    assert costs == pytest.approx([0.2, 0.1], abs=0.03)


async def test_reports_that_wait_for_a_cluster_do_not_keep_the_next_one_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report_turns, "LONGEST_TURN_S", 0.05)
    flows, frozen, is_back = ReportTurns(), source(), asyncio.Event()
    reading = 0

    async def wait() -> None:
        nonlocal reading
        async with flows.turn(frozen):
            reading += 1
            await is_back.wait()

    waiting = [asyncio.ensure_future(wait()) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    assert reading == AT_ONCE
    for _ in range(3):
        async with asyncio.timeout(5), flows.turn(source()):
            pass
    is_back.set()
    await asyncio.gather(*waiting)
    begun = [asyncio.ensure_future(wait()) for _ in range(AT_ONCE + 1)]
    is_back.clear()
    await asyncio.sleep(0)
    assert reading == 2 * AT_ONCE, "no turn was given back twice"
    is_back.set()
    await asyncio.gather(*begun)


def _work(seconds: float) -> None:
    """Use so much processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
