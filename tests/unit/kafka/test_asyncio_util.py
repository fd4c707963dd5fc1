"""An event is waited for so long and no longer; a task that was cancelled has ended (`asyncio_util.py`)."""

import asyncio

import pytest

from lockstep_kafka.common.asyncio_util import cancelled, done_within, set_within, share_kept_s, uninterrupted


async def test_an_event_that_comes_in_time_is_seen_at_once() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, event.set)
    assert await set_within(event, 60.0)
    assert await set_within(event, None)


async def test_set_within_times_out_for_an_event_that_is_not_set() -> None:
    assert not await set_within(asyncio.Event(), 0.001)


async def test_work_that_is_done_in_time_returns_or_raises_what_it_does() -> None:
    async def works(fails: bool) -> int:
        if fails:
            raise ConnectionError
        return 7

    assert await done_within(works(False), 60.0) == 7
    with pytest.raises(ConnectionError):
        await done_within(works(True), 60.0)


async def test_work_that_does_not_let_itself_be_cancelled_is_not_waited_for() -> None:
    asked, goes_on = 0, asyncio.Event()

    async def works() -> None:
        nonlocal asked
        while not goes_on.is_set():
            try:
                await goes_on.wait()
            except asyncio.CancelledError:
                asked += 1

    with pytest.raises(TimeoutError, match="not done within 0 s"):
        await done_within(works(), 0.01)
    await asyncio.sleep(0)
    assert asked == 1
    waiting = asyncio.create_task(done_within(works(), 60.0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    await asyncio.sleep(0)
    assert (waiting.cancelled(), asked) == (True, 2)
    goes_on.set()


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


@pytest.mark.parametrize("cost_s", [0.0, 0.01])
def test_share_kept_of_a_cheap_task_is_the_shortest_pause(cost_s: float) -> None:
    assert share_kept_s(cost_s, 0.001, soonest=10.0, latest=60.0) == 10.0


@pytest.mark.parametrize("cost_s", [0.011, 0.03, 0.06])
def test_share_kept_of_a_costly_task_is_its_share_of_a_core(cost_s: float) -> None:
    assert cost_s / share_kept_s(cost_s, 0.001, soonest=10.0, latest=60.0) == pytest.approx(0.001)


def test_share_kept_of_any_task_is_at_most_the_longest_pause() -> None:
    assert share_kept_s(10.0, 0.001, soonest=10.0, latest=60.0) == 60.0


async def test_uninterrupted_work_ends_before_a_request_to_end_counts() -> None:
    may_end, has_ended = asyncio.Event(), False

    async def write() -> None:
        nonlocal has_ended
        await may_end.wait()
        has_ended = True

    task = asyncio.create_task(uninterrupted(write()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert has_ended
