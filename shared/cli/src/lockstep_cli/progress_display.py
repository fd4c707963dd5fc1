"""What is waited for, shown on a terminal."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lockstep_cli.command_request import CommandReply


@contextmanager
def progress_display(replies: Sequence[CommandReply]) -> Iterator[None]:
    """Shows which replies are outstanding, on a terminal's last line; nothing if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield
        return

    def words() -> str:
        missing = [f"{reply.question.flow} {name}" for reply in replies for name in reply.missing]
        return f"waiting for {', '.join(missing)}"

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.2)
            shown.update(task, description=words())

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(words())
        ticking = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            ticking.cancel()
