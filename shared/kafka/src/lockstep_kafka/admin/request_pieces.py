"""Requests about many resources in pieces, `IN_FLIGHT` of them at once.

A request that names 10,000 topics runs into timeouts, and its answer is larger than everything else a service holds.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from lockstep_kafka.common.admin_types import Outcome

R = TypeVar("R")
T = TypeVar("T")
V = TypeVar("V")

IN_FLIGHT = 2
"""Number of pieces in flight: the next one is sent while an answer is read."""


async def ask_in_pieces(items: Iterable[T], size: int, ask: Callable[[Sequence[T]], Awaitable[R]]) -> AsyncIterator[R]:
    """Yield the answers to `items`, asked `size` at a time, in order.

    An error of one piece is raised, and cancels the pieces in flight.
    """
    all_items = list(items)
    in_flight: deque[asyncio.Future[R]] = deque()
    try:
        for start in range(0, len(all_items), size):
            in_flight.append(asyncio.ensure_future(ask(all_items[start : start + size])))
            if len(in_flight) >= IN_FLIGHT:
                yield await in_flight.popleft()
        while in_flight:
            yield await in_flight.popleft()
    finally:
        for future in in_flight:
            future.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)


async def merge_outcomes(pieces: AsyncIterator[Outcome[V]]) -> Outcome[V]:
    """Return the outcome of all pieces."""
    merged: Outcome[V] = Outcome()
    async for piece in pieces:
        merged.merge(piece)
    return merged
