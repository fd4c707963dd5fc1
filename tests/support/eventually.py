"""Waiting for a condition with a deadline, instead of sleeping and hoping."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

T = TypeVar("T")
NotYet = Literal[False] | None
"""What a condition answers while it waits; so that what comes back needs no further check."""
PATIENCE_S = 60.0
"""How long a test waits. A wait in vain costs this once, and busy processors do not end a test that would pass."""
REST_TIMES, REST_S = 2.0, 0.5
"""After a condition that is slow to answer there is a rest of so many times its duration, and of so long at most. What
is waited for shares the processors with it."""


class NeverHappened(AssertionError):
    """The condition did not come true before its deadline."""


class _Deadline:
    """What is waited for, and until when."""

    def __init__(self, condition: Callable[[], object], within: float, every: float, what: str) -> None:
        self._named = what or getattr(condition, "__qualname__", repr(condition))
        self._within, self._every = within, every
        self._ends = time.monotonic() + within

    def rest_s(self, began: float, answer: object, failed: AssertionError | None) -> float:
        """Return how long to rest before the condition is asked again. Raises NeverHappened once the time is over."""
        if (now := time.monotonic()) >= self._ends:
            last = failed or answer
            raise NeverHappened(f"not within {self._within:g} s: {self._named} (last: {last!r})") from failed
        return max(self._every, min(REST_S, REST_TIMES * (now - began)))


async def eventually(
    condition: Callable[[], T | NotYet | Awaitable[T | NotYet]],
    *,
    within: float = PATIENCE_S,
    every: float = 0.05,
    what: str = "",
) -> T:
    """Ask `condition` every `every` seconds, a slow one less often, until it answers something true, and return that
    answer.

    An AssertionError inside it counts as "not yet". Raises NeverHappened after `within` seconds, with the last answer
    (or the last AssertionError as its cause); any other exception passes at once.
    """
    deadline = _Deadline(condition, within, every, what)
    while True:
        began, answer, failed = time.monotonic(), None, None
        try:
            answer = condition()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return answer
        except AssertionError as not_yet:
            failed = not_yet
        await asyncio.sleep(deadline.rest_s(began, answer, failed))


def wait_until(
    condition: Callable[[], T | NotYet], *, within: float = PATIENCE_S, every: float = 0.05, what: str = ""
) -> T:
    """Wait as `eventually` does, in code without an event loop."""
    deadline = _Deadline(condition, within, every, what)
    while True:
        began, answer, failed = time.monotonic(), None, None
        try:
            if answer := condition():
                return answer
        except AssertionError as not_yet:
            failed = not_yet
        time.sleep(deadline.rest_s(began, answer, failed))
