"""A snapshot as a table for a terminal, and as plain lines for everything else. Pure."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tools.demo.snapshot import FlowLine, Snapshot


def as_table(snapshot: Snapshot) -> Group:
    """What the live display shows."""
    table = Table(title=f"{snapshot.phase}  ({snapshot.seconds:.0f} s)", title_justify="left", expand=False)
    table.add_column("flow", style="magenta")
    table.add_column("topic", style="cyan")
    for name in ("source end", "target end", "lag records", "lag ms", "records/s"):
        table.add_column(name, justify="right")
    last = ""
    for line in snapshot.topics:
        if last and line.flow != last:
            table.add_section()
        lag_style = "green" if line.lag_records == 0 else "yellow"
        table.add_row(
            line.flow if line.flow != last else "",
            line.topic,
            f"{line.source_end:,}",
            f"{line.target_end:,}",
            Text(f"{line.lag_records:,}", style=lag_style),
            f"{line.lag_ms:,}",
            f"{line.rate:,.0f}",
        )
        last = line.flow
    below = Text("\n".join([*(_flow(line) for line in snapshot.flows), snapshot.group]))
    return Group(table, below)


def as_lines(snapshot: Snapshot) -> list[str]:
    """The same in one line a flow, and one for the group."""
    lines = []
    for flow in snapshot.flows:
        topics = [line for line in snapshot.topics if line.flow == flow.flow]
        lag = sum(line.lag_records for line in topics)
        source, target = sum(line.source_end for line in topics), sum(line.target_end for line in topics)
        rate = sum(line.rate for line in topics)
        lag_ms = max((line.lag_ms for line in topics), default=0)
        lines.append(
            f"{snapshot.seconds:4.0f} s  {_flow(flow)}; "
            f"{target:,} of {source:,} records, {rate:,.0f}/s, lag {lag:,} records, {lag_ms:,} ms"
        )
    lines.append(f"{snapshot.seconds:4.0f} s  {snapshot.group}")
    return lines


def _flow(line: FlowLine) -> str:
    parts = [f"{line.flow}  heartbeat {_age(line.heartbeat_age_ms)}, {line.checkpoints:,} checkpoints"]
    if line.checkpoint_age_ms is not None:
        parts.append(f", the last {_age(line.checkpoint_age_ms)}")
    parts += [f"; HALTED {partition}" for partition in line.halted]
    return "".join(parts)


def _age(milliseconds: int | None) -> str:
    return "none yet" if milliseconds is None else f"{milliseconds / 1000:.1f} s ago"
