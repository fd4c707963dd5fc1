"""A caller gets work that began after its call, and no more of it than that takes (`single_flight.py`)."""

import asyncio

import pytest

from lockstep_kafka.common.single_flight import SingleFlight


class Work:
    def __init__(self) -> None:
        self.begun = self.finished = 0
        self.going_on = asyncio.Event()
        self.fails = False

    async def __call__(self) -> None:
        self.begun += 1
        await self.going_on.wait()
        if self.fails:
            self.fails = False
            raise ConnectionError
        self.finished += 1


async def test_single_flight_is_shared_by_concurrent_callers_only() -> None:
    work = Work()
    shared = SingleFlight(work)
    first = [asyncio.create_task(shared.run()) for _ in range(3)]
    await asyncio.sleep(0.001)
    assert work.begun == 1
    late = [asyncio.create_task(shared.run()) for _ in range(3)]
    await asyncio.sleep(0.001)
    work.going_on.set()
    await asyncio.gather(*first)
    assert work.finished <= 2
    await asyncio.gather(*late)
    assert work.finished <= 3, "the first, one for those who asked with it, one for those who asked meanwhile"
    before = work.finished
    await shared.run()
    assert work.finished == before + 1


async def test_single_flight_failure_reaches_all_callers_before_its_start() -> None:
    work = Work()
    work.fails = True
    shared = SingleFlight(work)
    first = asyncio.create_task(shared.run())
    await asyncio.sleep(0.001)
    late = [asyncio.create_task(shared.run()) for _ in range(3)]
    await asyncio.sleep(0.001)
    assert (work.begun, work.finished) == (1, 0)
    work.going_on.set()
    with pytest.raises(ConnectionError):
        await first
    await asyncio.gather(*late)
    assert (work.begun, work.finished) == (2, 1), "they asked while it failed: it is tried again, once for all three"

    work.going_on.clear()
    waits = asyncio.create_task(shared.run())
    await asyncio.sleep(0.001)
    late = [asyncio.create_task(shared.run()) for _ in range(3)]
    await asyncio.sleep(0.001)
    work.going_on.set()
    await asyncio.sleep(0)
    work.fails = True
    await waits
    outcomes = await asyncio.gather(*late, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ConnectionError] * 3
    assert work.begun == 4, "what nobody can find out is not asked once for each"
    await shared.run()
    assert work.begun == 5


async def test_single_flight_of_a_cancelled_caller_continues_for_the_next() -> None:
    work = Work()
    shared = SingleFlight(work)
    first, second = asyncio.create_task(shared.run()), asyncio.create_task(shared.run())
    await asyncio.sleep(0.001)
    first.cancel()
    await asyncio.sleep(0.001)
    work.going_on.set()
    await second
    assert (first.cancelled(), work.begun, work.finished) == (True, 2, 1)
