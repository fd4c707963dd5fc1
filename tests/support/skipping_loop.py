"""Waiting without the time that it takes."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _SkippingLoop(asyncio.SelectorEventLoop):
    """Its clock goes on to the next timer as soon as nothing else is to be done."""

    _skipped = 0.0
    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        return super().time() + self._skipped

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._skipped += max(0.0, self._scheduled[0].when() - self.time())
        super()._run_once()  # type: ignore[misc]  # the standard library's own, which no stub names


def run_skipping_waits(main: Coroutine[Any, Any, T]) -> T:
    """Run as `asyncio.run` does, for code without sockets: each wait ends at once, in the order of their ends."""
    with asyncio.Runner(loop_factory=_SkippingLoop) as runner:
        return runner.run(main)
