"""What `lockstep doctor` does now, and the time that is left for it, on a terminal's last line."""

import asyncio
import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

TICK_S = 0.2


class StepDisplay:
    """Shows one step after the other, with the time that is left for it. Nothing is shown if standard error is no
    terminal. Hide it before anything else is printed; the next step shows it again."""

    def __init__(self) -> None:
        self._until, self._step = 0.0, ""
        self._ticking: asyncio.Task[None] | None = None
        self._progress: Progress | None = None
        if sys.stderr.isatty():
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.hide()

    def begin(self, step: str, within_s: float) -> None:
        """The step that begins now, and lasts so long at most. Call it within the event loop."""
        if self._progress is None:
            return
        self._until, self._step = time.monotonic() + within_s, step
        self._update(self._progress)
        self._progress.start()
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick(self._progress))

    def hide(self) -> None:
        """Clears the line."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        if self._progress is not None:
            self._progress.stop()

    async def _tick(self, progress: Progress) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._update(progress)

    def _update(self, progress: Progress) -> None:
        left = self._until - time.monotonic()
        words = f"{self._step} (at most {left:.0f} s left)" if left > 0 else self._step
        progress.update(self._task, description=words)
