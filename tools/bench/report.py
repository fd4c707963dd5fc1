"""The measured figures as tables: on the terminal, and as Markdown. Systems side by side, one measure a row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable

from tools.bench.figures import (
    MEBIBYTE,
    OPEN,
    PLAIN,
    QUANTILES,
    TWO_SLOTS,
    WRITTEN,
    Copy,
    Latency,
    LatencyPart,
    Limit,
    Part,
    Start,
    StartPart,
    ThroughputPart,
    ratio,
)
from tools.bench.outcome import Failed, Scalar
from tools.bench.readings import SHEETS, ReadingsPart

NAMES = {
    "lockstep": "Lockstep",
    TWO_SLOTS: "with two slots",
    "mm2_tuned": "MM2 tuned",
    "mm2": "MM2 as shipped",
    "floor": "no mirror",
}
FAILED = "FAILED"
EMPTY = "-"

Column = Mapping[str, str] | Failed
"""What stands below one system's name, by measure."""


@dataclass(frozen=True, slots=True)
class Table:
    """``columns`` are in order; ``notes`` stand below, those about failures first."""

    title: str
    measures: Sequence[str]
    columns: Mapping[str, Column]
    notes: Sequence[str]

    def rows(self) -> list[list[str]]:
        """Each measure with its cells; a failed system says so in the first row and has nothing in the others."""
        return [
            [measure, *(_cell(column, measure, at) for column in self.columns.values())]
            for at, measure in enumerate(self.measures)
        ]

    def failed(self) -> list[str]:
        return [f"{name} {column}" for name, column in self.columns.items() if isinstance(column, Failed)]


def table(part: Part) -> Table:
    """The table of one part."""
    match part:
        case ThroughputPart():
            return _throughput(part)
        case LatencyPart():
            return _latency(part)
        case StartPart():
            return _start(part)
        case ReadingsPart():
            return _readings(part)


def show(parts: Iterable[Part], console: Console) -> None:
    """Print the tables, each with its failures in red and its notes below."""
    for part in parts:
        content = table(part)
        drawn = RichTable(title=content.title, title_justify="left")
        drawn.add_column("")
        for name in content.columns:
            drawn.add_column(name, justify="right")
        for row in content.rows():
            drawn.add_row(*(f"[red]{cell}[/red]" if cell == FAILED else cell for cell in row))
        console.print(drawn)
        for line in content.failed():
            console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)
        for line in content.notes:
            console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
        console.print()


def markdown(parts: Iterable[Part], environment: Mapping[str, Scalar]) -> str:
    """A whole page: what was measured on, then one table a part."""
    facts = "".join(f"- {name.replace('_', ' ')}: {value}\n" for name, value in environment.items())
    return f"# Bench\n\n{facts}\n" + "\n".join(_page(table(part)) for part in parts)


def _page(content: Table) -> str:
    lines = [
        f"## {content.title}",
        "",
        "| | " + " | ".join(content.columns) + " |",
        "|---|" + "---:|" * len(content.columns),
    ]
    lines += ["| " + " | ".join(row) + " |" for row in content.rows()]
    for note in (*content.failed(), *content.notes):
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _cell(column: Column, measure: str, at: int) -> str:
    if isinstance(column, Failed):
        return EMPTY if at else FAILED
    return column.get(measure, EMPTY)


def _times(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.2f}x"


def _plainly(value: float | None) -> str:
    return EMPTY if value is None else f"{value:.2f}"


def _throughput(part: ThroughputPart) -> Table:
    tuned = part.systems.get("mm2_tuned")
    rate = tuned.records_per_s if isinstance(tuned, Copy) else None
    cpu = tuned.cpu_s_per_million if isinstance(tuned, Copy) else None
    limit = part.limit.records_per_s if isinstance(part.limit, Limit) else None
    both = max(part.limit.both_at_once) if isinstance(part.limit, Limit) else None
    own = part.own.records_per_s if isinstance(part.own, Copy) else None
    to_own = f"  to {part.own_name}"
    record_mb = float(part.facts["record_bytes"]) / 1e6

    def of_rate(records_per_s: float) -> dict[str, str]:
        return {
            "records/s": f"{records_per_s:,.0f}",
            "MB/s": f"{records_per_s * record_mb:,.0f}",
            "  to tuned MM2": _times(ratio(records_per_s, rate)),
            "  to the limit": _times(ratio(records_per_s, limit)),
            "  to both at once": _times(ratio(records_per_s, both)),
        } | ({to_own: _times(ratio(records_per_s, own))} if part.own else {})

    def of_copy(copied: Copy) -> dict[str, str]:
        return of_rate(copied.records_per_s) | {
            "CPU s per million": f"{copied.cpu_s_per_million:.2f}",
            "  user + system": f"{copied.cpu_user_s_per_million:.2f} + {copied.cpu_system_s_per_million:.2f}",
            "  CPU to tuned MM2": _times(ratio(copied.cpu_s_per_million, cpu)),
            "brokers' CPU s per million": _plainly(copied.brokers_cpu_s_per_million),
            "start to first record, s": f"{copied.start_s:.1f}",
            "start to last record, s": f"{copied.total_s:.1f}",
            "CPU s per million, with start": f"{copied.cpu_s_per_million_from_start:.2f}",
            "peak RSS, MiB": f"{copied.peak_rss_bytes / MEBIBYTE:,.0f}",
            "copy": "equal",
            "  records compared": f"{copied.compared:,}",
        }

    columns: dict[str, Column] = {
        NAMES.get(system, system): what if isinstance(what, Failed) else of_copy(what)
        for system, what in part.systems.items()
    }
    if part.own is not None:
        columns[part.own_name] = part.own if isinstance(part.own, Failed) else of_copy(part.own)
    if isinstance(part.limit, Failed):
        columns["limit"] = part.limit
    elif part.limit is not None:
        columns["fetch only"] = of_rate(max(part.limit.fetch_only))
        columns["produce only"] = of_rate(max(part.limit.produce_only))
        columns["both at once"] = of_rate(max(part.limit.both_at_once))
    measures = (
        "records/s", "MB/s", "  to tuned MM2",
        *(("  to the limit", "  to both at once") if part.limit else ()), *((to_own,) if part.own else ()),
        "CPU s per million", "  user + system",
        "  CPU to tuned MM2", "brokers' CPU s per million",
        "start to first record, s", "start to last record, s", "CPU s per million, with start", "peak RSS, MiB", "copy",
        "  records compared",
    )  # fmt: skip
    facts = part.facts
    notes = [
        f"Source: {facts['records']:,} records of {facts['record_bytes']:.0f} bytes (key and value), {facts['codec']}, "
        f"{facts['partitions']} partitions; {facts['batches']:,} batches of {facts['batch_records']:.0f} records and "
        f"{facts['batch_stored_bytes']:,.0f} stored bytes on average.",
        ("The limit is the lower of fetch only and produce only, each the best of its runs. " if part.limit else "")
        + "Equal: the end offsets of every partition, and the sampled records in key, value, headers and timestamp.",
    ]
    notes += _way(part)
    return Table(f"Throughput, {part.name}", measures, columns, notes)


def _way(part: ThroughputPart) -> list[str]:
    """What stood between the source and the systems, and what the source was before it was cleaned."""
    facts, lines = part.facts, []
    if "round_trip_ms" in facts:
        lines.append(
            f"A proxy before the {facts['far']} makes each round trip {facts['round_trip_ms']:g} ms longer; undelayed "
            "is Lockstep through the same proxy without its delay."
        )
    if "proxy_mb_per_s" in facts:
        lines.append(
            f"Without delay the proxy alone carries {facts['proxy_mb_per_s']:,.0f} stored MB/s, "
            f"{facts['proxy_records_per_s']:,.0f} records/s (fetch only)."
        )
    if part.own_name == OPEN:
        lines.append(
            "Both clusters are reached over TLS, with the versions and suites that each side prefers; plaintext is "
            "Lockstep without, on the same brokers, the better of one run before and one after."
        )
    if part.own_name == PLAIN:
        lines.append(
            "Records and progress go to the target in transactions; plain is Lockstep without. Markers take offsets, "
            "so a copy is complete when what is committed has stopped to grow; every record was compared, not samples."
        )
    if "in_sync" in facts:
        lines.append(
            f"The target has {facts['brokers']} brokers, every topic there as many replicas, and {facts['in_sync']} of "
            "them must have what is acknowledged."
        )
    if "written" in facts:
        lines.append(
            f"The log cleaner has been through the source: {facts['records']:,} of {facts['written']:,} records are "
            "left, and batches have gaps. The limit is of before that. Every record was compared, not samples."
        )
    return lines


def _latency(part: LatencyPart) -> Table:
    shipped = part.systems.get("mm2")
    theirs = shipped if isinstance(shipped, Latency) else None
    columns: dict[str, Column] = {}
    for name, what in [(NAMES.get(system, system), what) for system, what in part.systems.items()] + [
        ("no mirror", part.floor)
    ]:
        if isinstance(what, Failed):
            columns[name] = what
            continue
        cells = {"records/s offered": f"{what.offered_per_s:,.0f}", "records measured": f"{len(what.ordered_ms):,}"}
        for quantile in QUANTILES:
            cells[_quantile(quantile)] = f"{what.at(QUANTILES[quantile]):.2f}"
            beside = theirs.at(QUANTILES[quantile]) if theirs else None
            cells[f"  {_quantile(quantile)} to shipped MM2"] = _times(ratio(what.at(QUANTILES[quantile]), beside))
        for quantile in WRITTEN:
            cells[f"{_quantile(quantile)} until A has it"] = f"{what.acknowledged_at(QUANTILES[quantile]):.2f}"
        columns[name] = cells | {
            "longest, ms": f"{what.ordered_ms[-1]:.1f}",
            "CPU, % of a core": f"{what.busy.system * 100:.0f}" if what is not part.floor else EMPTY,
            "  both brokers": f"{what.busy.brokers * 100:.0f}",
            "  their JIT compilers": f"{what.busy.compilers * 100:.1f}",
            "  writer and reader": f"{what.busy.bench * 100:.0f}",
        }
    measures = [
        each for quantile in QUANTILES for each in (_quantile(quantile), f"  {_quantile(quantile)} to shipped MM2")
    ]
    notes = [
        f"{part.facts['measured_s']:g} s after {part.facts['warm_up_s']:g} s of warm-up, {part.facts['partitions']} "
        "partitions, no linger in the writer; from just before produce on A to the arrival at a consumer of B. "
        "Lockstep with one slot, as MM2 as shipped has one task. "
        "Relay: the least of a mirror, which sends on what it fetches and does nothing else. "
        "No mirror: the same writer and reader, both on A. Until A has it: until A acknowledged the record to the "
        "writer, whatever mirrors it.",
    ]
    measures += [
        "longest, ms",
        *(f"{_quantile(quantile)} until A has it" for quantile in WRITTEN),
        "CPU, % of a core",
        "  both brokers",
        "  their JIT compilers",
        "  writer and reader",
        "records/s offered",
        "records measured",
    ]
    return Table(f"Latency, {part.facts['per_s']} records/s", measures, columns, notes)


def _quantile(quantile: str) -> str:
    return f"{quantile.replace('_', '.')} ms"


def _start(part: StartPart) -> Table:
    shipped, tuned = (part.systems.get(peer) for peer in ("mm2", "mm2_tuned"))
    columns: dict[str, Column] = {}
    notes = []
    for system, what in part.systems.items():
        name = NAMES.get(system, system)
        if isinstance(what, Failed):
            columns[name] = what
            continue
        columns[name] = {
            "start to first record, s": f"{what.median_s:.1f}",
            "  to shipped MM2": _times(ratio(what.median_s, shipped.median_s if isinstance(shipped, Start) else None)),
            "  to tuned MM2": _times(ratio(what.median_s, tuned.median_s if isinstance(tuned, Start) else None)),
            "  each": ", ".join(f"{seconds:.1f}" for seconds in what.seconds),
            "idle RSS, MiB": f"{sum(size for _, size in what.idle_rss) / MEBIBYTE:,.0f}",
            "idle CPU, % of a core": f"{what.idle_cpu_share * 100:.1f}",
        }
        notes.append(f"{name}, idle: {_processes(what)}.")
    return Table(
        "Start and rest",
        (
            *("start to first record, s", "  to shipped MM2", "  to tuned MM2", "  each"),
            *("idle RSS, MiB", "idle CPU, % of a core"),
        ),
        columns,
        notes,
    )


def _readings(part: ReadingsPart) -> Table:
    sheet = SHEETS[part.name]
    columns: dict[str, Column] = {}
    notes = [", ".join(f"{name.replace('_', ' ')} {value}" for name, value in part.facts.items()) + "."]
    for system, what in part.systems.items():
        name = NAMES.get(system, system)
        if isinstance(what, Failed):
            columns[name] = what
            continue
        columns[name] = {
            row.words: row.shown(what.values[key]) for key, row in sheet.rows.items() if key in what.values
        }
        notes += [f"{name}: {note}" for note in what.notes]
    columns["wanted"] = {row.words: row.wanted for row in sheet.rows.values() if row.wanted}
    return Table(sheet.title, tuple(row.words for row in sheet.rows.values()), columns, notes)


def _processes(what: Start) -> str:
    return ", ".join(
        f"{name} {size / MEBIBYTE:.0f} MiB" for name, size in sorted(what.idle_rss, key=lambda each: -each[1])
    )
