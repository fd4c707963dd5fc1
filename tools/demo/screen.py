"""What one sees of the mirroring at one moment, and where it is shown: a table that is live in a terminal."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tools.demo.verdict import Finding

PLAIN_EVERY_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One topic of one flow. Ends are summed over its partitions; `rate` is records a second reaching the target."""

    flow: str
    topic: str
    source_end: int
    target_end: int
    lag_records: int
    lag_ms: int
    rate: float


@dataclass(frozen=True, slots=True)
class FlowLine:
    """One flow. Ages in milliseconds, None where there was no such record yet. `checkpoints`: read since the
    beginning. `halted`: partitions that stand still, with the reason."""

    flow: str
    heartbeat_age_ms: int | None
    checkpoints: int
    checkpoint_age_ms: int | None
    halted: tuple[str, ...] = ()

    def text(self) -> str:
        parts = [f"{self.flow}  heartbeat {_age(self.heartbeat_age_ms)}, {self.checkpoints:,} checkpoints"]
        if self.checkpoint_age_ms is not None:
            parts.append(f", the last {_age(self.checkpoint_age_ms)}")
        return "".join([*parts, *(f"; HALTED {partition}" for partition in self.halted)])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything, at one moment. `phase` says what is going on, `group` what the consumer group does."""

    seconds: float
    phase: str
    group: str
    topics: tuple[TopicLine, ...]
    flows: tuple[FlowLine, ...]

    @property
    def lag_records(self) -> int:
        return sum(line.lag_records for line in self.topics)


def _age(milliseconds: int | None) -> str:
    return "none yet" if milliseconds is None else f"{milliseconds / 1000:.1f} s ago"


def as_table(snapshot: Snapshot) -> Group:
    """Return what is shown of the mirroring."""
    table = Table(title=f"{snapshot.phase}  ({snapshot.seconds:.0f} s)", title_justify="left", expand=False)
    table.add_column("flow", style="magenta")
    table.add_column("topic", style="cyan")
    for name in ("source end", "target end", "lag records", "lag ms", "records/s"):
        table.add_column(name, justify="right")
    last = ""
    for line in snapshot.topics:
        if last and line.flow != last:
            table.add_section()
        table.add_row(
            line.flow if line.flow != last else "",
            line.topic,
            f"{line.source_end:,}",
            f"{line.target_end:,}",
            Text(f"{line.lag_records:,}", style="yellow" if line.lag_records else "green"),
            f"{line.lag_ms:,}",
            f"{line.rate:,.0f}",
        )
        last = line.flow
    return Group(table, Text("\n".join([*(line.text() for line in snapshot.flows), snapshot.group])))


class Screen:
    """Use it as a context manager; the live table goes when it ends, what was said stays."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._shown_at = 0.0
        self._phase = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """End the live table. Its last state stays above what follows."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Print a line that stays."""
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
            self._console.print(as_table(snapshot))

    def conclude(self, findings: Sequence[Finding], measured: Sequence[tuple[str, str]]) -> None:
        """Print the summary: each claim with what was found, then the figures."""
        self.clear()
        for finding in findings:
            mark = ("ok    ", "green") if finding.held else ("FAILED", "bold red")
            self._console.print(Text.assemble(mark, f"  {finding.claim}: {finding.measured}"), soft_wrap=True)
        for name, value in measured:
            self.say(f"        {name}: {value}")
