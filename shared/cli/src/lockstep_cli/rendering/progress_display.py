"""The progress of a command, on the last line of a terminal. In a file nothing is shown."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from lockstep_ops.work_progress import TimeLeft, WorkProgress

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from lockstep_ops.command_request import CommandReply

PATIENCE_S = 0.5
"""The seconds after which the line is shown. Work that is done by then shows nothing."""

REFRESHES_A_SECOND = 5.0
BAR_WIDTH = 30


class ProgressDisplay:
    """A display of the progress that a function returns, on standard error, while the context lasts.

    A thread draws it, so the function may only read. Call every method within the event loop.
    """

    def __init__(self, progress: Callable[[], WorkProgress]) -> None:
        self._progress = progress
        self._waiting: asyncio.TimerHandle | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self.show()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.hide()

    def show(self) -> None:
        """Show the line after `PATIENCE_S`, unless it is hidden before. A line that is shown stays."""
        if self._waiting is None and self._live is None and sys.stderr.isatty():
            time_left = TimeLeft(self._progress(), time.monotonic())
            self._waiting = asyncio.get_running_loop().call_later(PATIENCE_S, self._start, time_left)

    def hide(self) -> None:
        """Clear the line. Do so before anything else is printed."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _start(self, time_left: TimeLeft) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        spinner = Spinner("dots")
        self._waiting = None
        self._live = Live(
            get_renderable=lambda: _line(self._progress(), time_left, spinner),
            console=Console(stderr=True),
            refresh_per_second=REFRESHES_A_SECOND,
            transient=True,
        )
        self._live.start(refresh=True)


def _line(progress: WorkProgress, time_left: TimeLeft, spinner: "RenderableType") -> "RenderableType":
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [spinner, Text(progress.text)]
    if (fraction := progress.fraction) is not None:
        parts += [ProgressBar(total=1.0, completed=fraction, width=BAR_WIDTH), Text(f"{fraction:4.0%}")]
    parts.append(Text(time_left.words(progress, time.monotonic())))
    line = Table.grid(padding=(0, 1))
    line.add_row(*parts)
    return line


@contextmanager
def show_outstanding(replies: "Sequence[CommandReply]") -> Iterator[None]:
    """Show which services have not answered yet, while the context lasts."""

    def outstanding() -> WorkProgress:
        missing = [f"{reply.request.flow} {name}" for reply in replies for name in reply.missing]
        return WorkProgress(f"waiting for {', '.join(missing)}")

    with ProgressDisplay(outstanding):
        yield
