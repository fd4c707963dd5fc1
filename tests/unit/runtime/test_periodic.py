"""Periodic work: sooner when triggered, and with back-off."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, LeadershipLost, NotPermitted
from lockstep_runtime.flow.periodic import PeriodicTasks, RoundInterrupted
from lockstep_runtime.telemetry.log import FlowLog
from tests.support.eventually import eventually

LONG = timedelta(hours=1)
SHORT = timedelta(seconds=0.06)
AWAY = ClusterUnreachable("B", "b:9092", "refused")
DENIED = NotPermitted("B", "to create", "topic x")


@pytest.fixture
def ended() -> list[bool]:
    """Whether each round that has ended had failed."""
    return []


@pytest.fixture
def periodic(ended: list[bool]) -> PeriodicTasks:
    return PeriodicTasks(FlowLog("test", "A->B"), time.monotonic, lambda _, failed: ended.append(failed))


@asynccontextmanager
async def every(
    periodic: PeriodicTasks, round_: Callable[[], Awaitable[None]], interval: timedelta = LONG, *, rest: float = 0.0
) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(periodic.every("work", interval, round_, pause_factor=rest))
        await asyncio.sleep(0)
        yield
        work.cancel()


async def refreshed(periodic: PeriodicTasks) -> None:
    await asyncio.wait_for(periodic.refresh(), 5.0)


async def test_a_refresh_waits_for_a_round_that_began_after_it(periodic: PeriodicTasks) -> None:
    began, go_on = list[int](), asyncio.Event()

    async def round_() -> None:
        began.append(len(began))
        await go_on.wait()

    async with every(periodic, round_):
        refresh = asyncio.create_task(refreshed(periodic))  # while the first round is under way
        await asyncio.sleep(0)
        go_on.set()
        await refresh
        assert began == [0, 1]


async def test_refresh_that_fails_has_its_cause(periodic: PeriodicTasks) -> None:
    errors: list[ClusterError] = []

    async def round_() -> None:
        if errors:
            raise errors[0]

    async with every(periodic, round_):
        await refreshed(periodic)
        errors.append(DENIED)
        with pytest.raises(NotPermitted):
            await refreshed(periodic)
        assert periodic.troubles.now == {"work": str(DENIED)}
        errors.clear()
        await refreshed(periodic)
        assert periodic.troubles.now == {}


async def test_mm2_036_round_without_an_answer_is_retried_before_its_interval(
    periodic: PeriodicTasks, ended: list[bool]
) -> None:
    async def round_() -> None:
        if not ended:
            raise AWAY

    async with every(periodic, round_):
        await eventually(lambda: len(ended) == 2)
        assert ended == [True, False]
        assert periodic.troubles.now == {}


def work_for(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


async def test_a_round_that_is_much_work_is_followed_by_a_long_rest(periodic: PeriodicTasks) -> None:
    times: list[float] = []

    async def round_() -> None:
        times.append(time.monotonic())
        work_for(0.05)
        times.append(time.monotonic())

    async with every(periodic, round_, SHORT, rest=3.0):
        await eventually(lambda: len(times) == 4)
        assert times[2] - times[1] >= 3.0 * 0.05 - 0.001, "not when the interval was over"


async def test_a_round_that_waited_for_a_cluster_is_not_rested_from(periodic: PeriodicTasks, ended: list[bool]) -> None:
    async def round_() -> None:
        await asyncio.sleep(0.2)

    async with every(periodic, round_, SHORT, rest=1e2):
        await eventually(lambda: len(ended) == 2)


async def test_triggered_round_does_not_wait_for_its_rest(periodic: PeriodicTasks) -> None:
    async def round_() -> None:
        work_for(0.001)

    async with every(periodic, round_, rest=1e6):
        await refreshed(periodic)
        await refreshed(periodic)


@pytest.mark.parametrize("error", [LookupError, LeadershipLost])
async def test_round_that_raises_another_error_fails_with_its_refresh(
    periodic: PeriodicTasks, error: type[Exception]
) -> None:
    """If the lead is lost, nothing is answered, and the next leader carries the command out."""

    async def round_() -> None:
        if periodic.was_triggered("work"):
            raise error

    work = asyncio.create_task(periodic.every("work", LONG, round_))
    await asyncio.sleep(0)
    with pytest.raises(error):
        await refreshed(periodic)
    with pytest.raises(error):
        await work
    periodic.reset()
    await refreshed(periodic)  # nothing is left to wait for


@pytest.mark.parametrize("begins", [True, False])
async def test_refresh_whose_work_ends_is_interrupted(periodic: PeriodicTasks, begins: bool) -> None:
    """During its round, or before that begins."""

    async def round_() -> None:
        if not begins or periodic.was_triggered("work"):
            await asyncio.Event().wait()

    work = asyncio.create_task(periodic.every("work", LONG, round_))
    await asyncio.sleep(0)
    refresh = asyncio.create_task(refreshed(periodic))
    await eventually(lambda: periodic.was_triggered("work") or not begins)
    work.cancel()
    await asyncio.wait({work})
    periodic.reset()
    with pytest.raises(RoundInterrupted):
        await refresh
    assert work.cancelled()


async def test_round_that_is_cancelled_from_within_is_an_error(periodic: PeriodicTasks) -> None:
    """A task group would go on without it, and nothing would show that the round comes no more."""

    async def round_() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="work was cancelled from within"):
        await asyncio.wait_for(asyncio.create_task(periodic.every("work", LONG, round_)), 5.0)
