"""An event is waited for so long and no longer; a task that was cancelled has ended (`waiting.py`)."""

from __future__ import annotations

import asyncio

from lockstep_runtime.waiting import cancelled, set_within


async def test_an_event_that_comes_in_time_is_seen_at_once() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, event.set)
    assert await set_within(event, 60.0)
    assert await set_within(event, None)


async def test_one_that_does_not_is_not_waited_for() -> None:
    assert not await set_within(asyncio.Event(), 0.001)


async def test_tasks_have_ended_whatever_they_raise() -> None:
    ended = []

    async def works(fails: bool) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(fails)
            if fails:
                raise ConnectionError

    tasks = [asyncio.create_task(works(fails)) for fails in (False, True)]
    await asyncio.sleep(0)
    await cancelled(tasks)
    assert sorted(ended) == [False, True]
    assert all(task.done() for task in tasks)
