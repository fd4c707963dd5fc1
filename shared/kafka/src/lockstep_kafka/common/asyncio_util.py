"""Waiting for an event, or for work, but not for ever; ending tasks and waiting until they have ended."""

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

PHASE = os.getpid() % 97 / 97  # seconds; the clock is the same in every process of a machine


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether the event was set before so many seconds were over, as soon as that is known. None: wait for ever."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def to_next_tick(every: float) -> float:
    """Seconds to wait before a periodic check. All checks in one process wake together, so that an idle process wakes
    once for all of them; other processes do at another moment.
    """
    return every - (asyncio.get_running_loop().time() + PHASE) % every


def share_kept_s(cost_s: float, share: float, *, soonest: float, latest: float) -> float:
    """Seconds to wait after what took so much processor time, so that it takes no more than this share of a core. The
    more things there are, the less often each is handled. At least `soonest`, at most `latest`.
    """
    return min(max(cost_s / share, soonest), latest)


async def done_within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What `work` returns or raises. Raises TimeoutError when so many seconds are over. Then it is cancelled, but not
    awaited, as `asyncio.wait_for` would, since what others wrote may continue all the same.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise TimeoutError(f"not done within {seconds:.0f} s")
        return task.result()
    finally:
        if not task.done():
            task.add_done_callback(error_retrieved)
            task.cancel()


async def unless_set(event: asyncio.Event, work: Awaitable[Any]) -> None:
    """Work until it is done, or the event is set; it has ended when this returns. Raises what it raises."""
    working, asked = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancelled([working, asked])
    if not working.cancelled():
        working.result()


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, or raise what it raises. A request to end takes effect once the work has ended, so
    that what it writes is known.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        error_retrieved(task)
        raise


def cancelled_from_within() -> bool:
    """Whether the CancelledError that the current task handles is no request to end: it waited for something else that
    was cancelled. A TaskGroup ignores a child that ends so.
    """
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


async def without_end(name: str, work: Awaitable[Any]) -> NoReturn:
    """Do work that ends only by an error or by a request to end. Raises RuntimeError when it ends in another way: a
    TaskGroup would go on without it, and nothing would show that.
    """
    try:
        await work
    except asyncio.CancelledError as exc:
        if cancelled_from_within():
            raise RuntimeError(f"{name} was cancelled from within") from exc
        raise
    raise RuntimeError(f"{name} ended by itself")


async def cancelled(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel them all; returns once the last has ended, and raises nothing of theirs."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def error_retrieved(future: asyncio.Future[Any]) -> None:
    """Its error may have no reader, and asyncio would call it never retrieved (`add_done_callback`)."""
    if not future.cancelled():
        future.exception()
