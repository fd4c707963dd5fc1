"""Services in one process: each starts again alone, and one end that is no crash ends all."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pkgutil import resolve_name
from typing import cast

import pytest

from lockstep_ops.services import SERVICES, module_name
from lockstep_runtime.service import service
from lockstep_runtime.service.service import CLEAN, CRASHED, SHUTDOWN_REQUESTED, UNUSABLE, Process, keep_running
from lockstep_runtime.telemetry.log import FlowLog


class Ending:
    """In the place of a Process: it ends at once with the next of these codes, or else when it is stopped."""

    log = FlowLog("heartbeat", "")
    ready_for = timedelta()

    def __init__(self, codes: list[int]) -> None:
        self._codes = codes

    async def run(self, stop: asyncio.Event) -> int:
        if self._codes:
            return self._codes.pop(0)
        await stop.wait()
        return CLEAN


def making(codes: list[int], made: list[Ending]) -> Callable[[], Process]:
    def make() -> Process:
        made.append(Ending(codes))
        return cast(Process, made[-1])

    return make


async def test_crashed_service_starts_again_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def waited(event: asyncio.Event, seconds: float) -> bool:
        waits.append(seconds)
        await asyncio.sleep(0)
        return event.is_set()

    monkeypatch.setattr(service, "set_within", waited)
    stop, made, others = asyncio.Event(), list[Ending](), list[Ending]()
    crashing = asyncio.create_task(keep_running(making([CRASHED] * 3, made), stop))
    steady = asyncio.create_task(keep_running(making([], others), stop))
    while len(made) < 4:
        await asyncio.sleep(0)
    assert waits == [0.0, 1.0, 2.0]
    assert len(others) == 1
    stop.set()
    assert await crashing == await steady == CLEAN


@pytest.mark.parametrize("code", [SHUTDOWN_REQUESTED, UNUSABLE])
async def test_service_that_asks_to_end_ends_its_process(code: int) -> None:
    stop, made, others = asyncio.Event(), list[Ending](), list[Ending]()
    steady = asyncio.create_task(keep_running(making([], others), stop))
    assert await keep_running(making([code], made), stop) == code
    assert await steady == CLEAN
    assert len(made) == len(others) == 1


async def test_service_that_crashes_while_it_ends_stays_ended() -> None:
    stop, made = asyncio.Event(), list[Ending]()
    stop.set()
    assert await keep_running(making([CRASHED], made), stop) == CRASHED
    assert len(made) == 1


def test_each_service_is_defined_where_a_shared_process_looks_for_it() -> None:
    for name in SERVICES:
        definition = resolve_name(f"{module_name(name)}.__main__:SERVICE")
        assert definition.name == name
