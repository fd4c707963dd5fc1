"""How much of a verification is done, and how long the rest takes, on a terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from lockstep_protocol.rows.state_rows import VerifiedPartition


class ComparedShare(NamedTuple):
    """Source offsets that are compared, of those that are wanted."""

    compared: int
    wanted: int


def compared_share(rows: Iterable[VerifiedPartition], request: str) -> ComparedShare:
    """Of the partitions that a request has reached."""
    mine = [row for row in rows if row.request == request and row.first >= 0]
    return ComparedShare(
        sum(max(0, row.upstream - row.first + 1) for row in mine),
        sum(max(0, max(row.upstream_end, row.source_end - 1) - row.first + 1) for row in mine),
    )


class ShareDisplay:
    """A bar on standard error; nothing without a terminal."""

    def __init__(self, progress: Progress | None = None, task: TaskID | None = None) -> None:
        self._progress = progress
        self._task = task

    def show(self, share: ComparedShare) -> None:
        """So much is compared now."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=share.compared, total=max(share.wanted, 1))


@contextmanager
def share_display() -> Iterator[ShareDisplay]:
    """As long as the context lasts."""
    if not sys.stderr.isatty():
        yield ShareDisplay()
        return
    columns = TextColumn("verifying"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield ShareDisplay(progress, progress.add_task("verifying", total=1))
