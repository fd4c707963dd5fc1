"""How far the reading of clusters is, shown on a terminal when it takes long."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

PATIENCE_S = 2.0
"""What is done by then shows nothing."""

REFRESH_S = 0.2


@dataclass(slots=True)
class ProgressSteps:
    """Counted steps of one reading, a request or so each."""

    text: str = "reaching the clusters"
    expected: int = 0
    done: int = 0

    def begin(self, text: str, steps: int) -> None:
        """A part of the work with so many more steps."""
        self.text = text
        self.expected += steps

    def advance(self, steps: int = 1) -> None:
        self.done += steps


@asynccontextmanager
async def steps_display(steps: ProgressSteps) -> AsyncIterator[None]:
    """Shows the steps and the time left on standard error, after `PATIENCE_S`; nothing if that is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    shown = asyncio.ensure_future(_show(steps))
    try:
        yield
    finally:
        shown.cancel()
        await asyncio.wait((shown,))


async def _show(steps: ProgressSteps) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    began = time.monotonic()
    await asyncio.sleep(PATIENCE_S)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(steps.text, total=max(1, steps.expected), start=False)
        progress.tasks[0].start_time = progress.get_time() - (time.monotonic() - began)
        while True:
            progress.update(task, description=steps.text, total=max(1, steps.expected), completed=steps.done)
            await asyncio.sleep(REFRESH_S)
