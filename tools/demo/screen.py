"""Where the demo shows itself: a live table in a terminal, a few plain lines now and then everywhere else."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tools.demo.snapshot import Snapshot
from tools.demo.table import as_lines, as_table
from tools.demo.verdict import Finding

PLAIN_EVERY_SECONDS = 4.0


class Screen:
    """Use it as a context manager; the live table goes when it ends, what was said stays."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._shown_at = 0.0
        self._phase = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()

    def clear(self) -> None:
        """Takes the live table away, its last state stays above what follows."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, markup=False, soft_wrap=True)

    def show(self, snapshot: Snapshot) -> None:
        if self._console.is_terminal:
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            self._live.update(as_table(snapshot), refresh=True)
            return
        if snapshot.phase != self._phase:
            self._phase = snapshot.phase
            self.say(f"{snapshot.seconds:4.0f} s  -- {snapshot.phase}")
        if time.monotonic() - self._shown_at >= PLAIN_EVERY_SECONDS:
            self._shown_at = time.monotonic()
            for line in as_lines(snapshot):
                self.say(line)

    def conclude(self, findings: Sequence[Finding], measured: Sequence[tuple[str, str]]) -> None:
        """The summary: each claim with what was found, then the figures."""
        self.clear()
        if not self._console.is_terminal:
            for finding in findings:
                self.say(f"{'ok    ' if finding.held else 'FAILED'}  {finding.claim}: {finding.measured}")
            for name, value in measured:
                self.say(f"        {name}: {value}")
            return
        table = Table(title="What was compared", title_justify="left", show_lines=False)
        table.add_column("")
        table.add_column("claim")
        table.add_column("measured")
        for finding in findings:
            mark = "[green]ok[/]" if finding.held else "[bold red]FAILED[/]"
            table.add_row(mark, finding.claim, finding.measured)
        table.add_section()
        for name, value in measured:
            table.add_row("", name, value)
        self._console.print(table)
