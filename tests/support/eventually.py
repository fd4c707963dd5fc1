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


async def eventually(
    condition: Callable[[], T | NotYet | Awaitable[T | NotYet]],
    *,
    within: float = PATIENCE_S,
    every: float = 0.05,
    what: str = "",
) -> T:
    """Asks `condition` every `every` seconds, a slow one less often, until it answers something true, and returns that
    answer.

    An AssertionError inside it counts as "not yet". Raises NeverHappened after `within` seconds, with the last answer
    (or the last AssertionError as its cause); any other exception passes at once.
    """
    deadline = time.monotonic() + within
    while True:
        last: object = None
        failed: AssertionError | None = None
        began = time.monotonic()
        try:
            answer = condition()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return answer
            last = answer
        except AssertionError as not_yet:
            failed = not_yet
        if time.monotonic() >= deadline:
            raise NeverHappened(_sentence(condition, within, what, failed or last)) from failed
        await asyncio.sleep(_rest_s(every, began))


def wait_until(
    condition: Callable[[], T | NotYet], *, within: float = PATIENCE_S, every: float = 0.05, what: str = ""
) -> T:
    """`eventually` for code without an event loop."""
    deadline = time.monotonic() + within
    while True:
        last: object = None
        failed: AssertionError | None = None
        began = time.monotonic()
        try:
            if answer := condition():
                return answer
            last = answer
        except AssertionError as not_yet:
            failed = not_yet
        if time.monotonic() >= deadline:
            raise NeverHappened(_sentence(condition, within, what, failed or last)) from failed
        time.sleep(_rest_s(every, began))


def _rest_s(every: float, began: float) -> float:
    return max(every, min(REST_S, REST_TIMES * (time.monotonic() - began)))


def _sentence(condition: Callable[[], object], within: float, what: str, last: object) -> str:
    named = what or getattr(condition, "__qualname__", repr(condition))
    return f"not within {within:g} s: {named} (last: {last!r})"
