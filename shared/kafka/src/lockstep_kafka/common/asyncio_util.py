"""Helpers for asyncio: waiting with a limit, and cancelling tasks."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

PHASE = os.getpid() % 97 / 97  # seconds; the clock is the same in every process of a machine


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for the event, and return whether it was set within so many seconds.

    With None it waits for ever.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def to_next_tick(every: float) -> float:
    """Return the seconds to wait before a periodic check.

    All checks in one process wake together, so that an idle process wakes once for all of them. Other processes wake at
    another moment.
    """
    return every - (asyncio.get_running_loop().time() + PHASE) % every


def share_kept_s(cost_s: float, share: float, *, soonest: float, latest: float) -> float:
    """Return the seconds to wait after work, so that it takes at most this share of a core.

    The wait is at least `soonest` and at most `latest`. The more things there are, the less often each is handled.

    Args:
        cost_s: The processor time that the work took.
        share: The share of a core.
        soonest: The shortest wait.
        latest: The longest wait.
    """
    return min(max(cost_s / share, soonest), latest)


async def done_within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return what `work` returns, or raise what it raises.

    Raises:
        TimeoutError: So many seconds are over. The work is cancelled, but not awaited as `asyncio.wait_for` would: code
            that is not ours may go on in spite of the cancellation.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise TimeoutError(f"not done within {seconds:.0f} s")
        return task.result()
    finally:
        if not task.done():
            task.add_done_callback(retrieve_error)
            task.cancel()


async def run_unless_set(event: asyncio.Event, work: Awaitable[Any]) -> None:
    """Run the work until it is done or the event is set.

    The work has ended when this returns. It raises what the work raises.
    """
    working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancelled([working, waiting])
    if not working.cancelled():
        working.result()


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns, or raise what it raises, even if the caller is cancelled meanwhile.

    The cancellation takes effect once the work has ended, so that what it writes is known.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        retrieve_error(task)
        raise


def is_cancelled_from_within() -> bool:
    """Return whether the CancelledError that the current task handles is no request to end the task.

    Then the task waited for something else that was cancelled. A TaskGroup ignores a child that ends so.
    """
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


async def without_end(name: str, work: Awaitable[Any]) -> NoReturn:
    """Run work that ends only by an error or by a cancellation.

    Raises:
        RuntimeError: The work ended in another way. A TaskGroup would go on without it, and nothing would show that.
    """
    try:
        await work
    except asyncio.CancelledError as exc:
        if is_cancelled_from_within():
            raise RuntimeError(f"{name} was cancelled from within") from exc
        raise
    raise RuntimeError(f"{name} ended by itself")


async def cancelled(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel all tasks, and return once the last has ended.

    Their errors are dropped.
    """
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


class BesideTask:
    """A task that works beside its owner as long as a context lasts.

    Args:
        name: The name of the task.
        work: It is called at the beginning of each context, and returns what the task does.
    """

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._work = work
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work as long as the context lasts."""
        self._task = asyncio.create_task(self._work(), name=self._name)
        try:
            yield
        finally:
            await cancelled([self._task])

    def check(self) -> None:
        """Raise what has ended the task, if anything has but a cancellation."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()


def retrieve_error(future: asyncio.Future[Any]) -> None:
    """Mark the error of a future as retrieved (for `add_done_callback`).

    Otherwise asyncio logs an error that nobody reads as never retrieved.
    """
    if not future.cancelled():
        future.exception()
