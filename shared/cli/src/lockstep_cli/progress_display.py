"""What is waited for, shown on a terminal."""

import asyncio
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from lockstep_cli.command_request import CommandReply


class ProgressDisplay:
    """Shows which replies are outstanding, on a terminal's last line; nothing if standard error is no terminal."""

    def __init__(self, replies: Sequence[CommandReply]) -> None:
        self._replies = replies

    def __enter__(self) -> None:
        self._shown: Progress | None = None
        if sys.stderr.isatty():
            console = Console(stderr=True)
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
            self._shown = Progress(
                *columns,
                console=console,
                transient=True,
            )
            task = self._shown.add_task(self._words())
            self._shown.start()
            self._ticking = asyncio.ensure_future(self._tick(self._shown, task))

    async def _tick(self, shown: Progress, task: TaskID) -> None:
        while True:
            await asyncio.sleep(0.2)
            shown.update(task, description=self._words())

    def _words(self) -> str:
        missing = [f"{reply.question.flow} {name}" for reply in self._replies for name in reply.missing]
        return f"waiting for {', '.join(missing)}"

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._ticking.cancel()
            self._shown.stop()
