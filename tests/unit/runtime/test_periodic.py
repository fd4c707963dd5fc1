"""Work in rounds: sooner when asked, and with back-off."""

import asyncio
import time
from datetime import timedelta

import pytest

from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, LeadershipLost, NotPermitted
from lockstep_runtime.flow.periodic import PeriodicTasks, RoundInterrupted
from lockstep_runtime.telemetry.log import FlowLog
from tests.support.eventually import eventually

LONG = timedelta(hours=1)
AWAY = ClusterUnreachable("B", "b:9092", "refused")
DENIED = NotPermitted("B", "to create", "topic x")


async def test_a_refresh_waits_for_a_round_that_began_after_it() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    began: list[int] = []
    go_on = asyncio.Event()

    async def round_() -> None:
        began.append(len(began))
        if len(began) == 1:
            await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_))
        while not began:
            await asyncio.sleep(0)
        refresh = tasks.create_task(rounds.refresh())  # while the first round is under way
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(refresh, 5.0)
        assert began == [0, 1]
        work.cancel()


async def test_refresh_that_fails_has_its_cause() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    troubled: list[ClusterError] = []

    async def round_() -> None:
        if troubled:
            raise troubled[0]

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_))
        await asyncio.wait_for(rounds_done(rounds), 5.0)
        troubled.append(DENIED)
        with pytest.raises(NotPermitted):
            await asyncio.wait_for(rounds.refresh(), 5.0)
        assert rounds.troubles.now == {"work": str(DENIED)}
        troubled.clear()
        await asyncio.wait_for(rounds.refresh(), 5.0)
        assert rounds.troubles.now == {}
        work.cancel()


async def test_mm2_036_round_without_an_answer_is_retried_before_its_interval() -> None:
    ended: list[bool] = []
    rounds = PeriodicTasks(
        FlowLog("test", "A->B"), asyncio.get_running_loop().time, lambda _, failed: ended.append(failed)
    )

    async def round_() -> None:
        if not ended:
            raise AWAY

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_))
        await eventually(lambda: len(ended) == 2)
        assert ended == [True, False]
        assert rounds.troubles.now == {}
        work.cancel()


async def rounds_done(rounds: PeriodicTasks) -> None:
    await asyncio.sleep(0)
    await rounds.refresh()


async def test_a_round_that_is_much_work_is_followed_by_a_long_rest() -> None:
    loop = asyncio.get_running_loop()
    rounds = PeriodicTasks(FlowLog("test", "A->B"), loop.time)
    began: list[float] = []
    ended: list[float] = []

    async def round_() -> None:
        began.append(loop.time())
        work_for(0.05)
        ended.append(loop.time())

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", timedelta(seconds=0.06), round_, rest=3.0))
        await eventually(lambda: len(began) == 2)
        assert began[1] - ended[0] >= 3.0 * 0.05 - 0.001, "not when the interval was over"
        work.cancel()


async def test_a_round_that_waited_for_a_cluster_is_not_rested_from() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    began = 0

    async def round_() -> None:
        nonlocal began
        began += 1
        await asyncio.sleep(0.2)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", timedelta(seconds=0.06), round_, rest=1e2))
        await eventually(lambda: began == 2)
        work.cancel()


def work_for(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


async def test_hurried_round_does_not_wait_for_its_rest() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)

    async def round_() -> None:
        work_for(0.001)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_, rest=1e6))
        await asyncio.wait_for(rounds_done(rounds), 5.0)
        await asyncio.wait_for(rounds.refresh(), 5.0)
        work.cancel()


async def test_round_that_raises_another_error_fails_and_frees_all_waiting() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    go_on = asyncio.Event()

    async def round_() -> None:
        await go_on.wait()
        raise LookupError

    work = asyncio.create_task(rounds.every("work", LONG, round_))
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(LookupError):
        await work
    rounds.reset()
    await asyncio.wait_for(rounds.refresh(), 5.0)  # nothing is left to wait for


async def test_refresh_whose_round_is_cancelled_is_interrupted() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    began = asyncio.Event()

    async def round_() -> None:
        if rounds.was_triggered("work"):
            began.set()
            await asyncio.sleep(60.0)

    work = asyncio.create_task(rounds.every("work", LONG, round_))
    await asyncio.sleep(0)
    refresh = asyncio.create_task(rounds.refresh())
    await asyncio.wait_for(began.wait(), 5.0)
    work.cancel()
    with pytest.raises(RoundInterrupted):
        await asyncio.wait_for(refresh, 5.0)
    assert work.cancelled()


async def test_refresh_before_its_round_is_interrupted_by_a_reset() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)

    async def round_() -> None:
        await asyncio.Event().wait()

    work = asyncio.create_task(rounds.every("work", LONG, round_))
    await asyncio.sleep(0)
    refresh = asyncio.create_task(rounds.refresh())
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait({work})
    rounds.reset()
    with pytest.raises(RoundInterrupted):
        await asyncio.wait_for(refresh, 5.0)


async def test_refresh_whose_round_raises_another_error_raises_it_too() -> None:
    """Also that we do not lead any more: then nothing is answered, and the next leader carries the command out."""
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)

    async def round_() -> None:
        if rounds.was_triggered("work"):
            raise LeadershipLost

    work = asyncio.create_task(rounds.every("work", LONG, round_))
    await asyncio.sleep(0)
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(rounds.refresh(), 5.0)
    with pytest.raises(LeadershipLost):
        await work


async def test_round_that_is_cancelled_from_within_is_an_error() -> None:
    """A task group would go on without it, and nothing would show that the round comes no more."""
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)

    async def round_() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="work was cancelled from within"):
        await asyncio.wait_for(asyncio.create_task(rounds.every("work", LONG, round_)), 5.0)
