"""Waiting for an event, but not for ever; ending tasks and waiting until they have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

__all__ = ["cancelled", "set_within"]


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether the event was set before so many seconds were over, as soon as that is known. None: wait for ever."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them all; returns once the last has ended, and raises nothing of theirs."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
