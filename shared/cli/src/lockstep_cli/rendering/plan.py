"""A plan of `lockstep plan`: tables on a terminal, whole lines elsewhere. Pure: it prints nothing."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.findings import finding_lines, hazard_finding, right_finding
from lockstep_cli.rendering.lines import IndentedText, first_lines
from lockstep_cli.rendering.table import Column, RowTable
from lockstep_cli.rendering.traffic_lines import traffic_lines
from lockstep_ops.formatting import count_text, in_time, shorten, visible
from lockstep_ops.plan.rules.changes import change_text
from lockstep_ops.plan.rules.comparison import THIS, PlanComparison
from lockstep_ops.plan.rules.flow_plan import (
    ALTER,
    CREATE,
    LOCKSTEP,
    MIRROR_MAKER,
    CopyForecast,
    FlowPlan,
    Plan,
    TopicForecast,
    treatments,
)
from lockstep_ops.plan.rules.rate import rate_text, size_text
from lockstep_ops.status.report import PausedPart

SHOWN = 40
"""The number of lines of a section on a terminal. Elsewhere all of them are written."""

SMALL = 100
"""A growth below this part of the rate changes nothing."""

NAMED_GROUPS = 5
"""The number of groups in a line on a terminal."""

INDENT = 2
"""The blanks before the lines of a section."""

STYLES = {CREATE: "green", ALTER: "yellow"}

BASES = {
    "stated": "as stated with --rate",
    "measured": "as measured by reading from the source for a few seconds",
    "limited": "the file's lockstep.max.bytes.per.second",
    "assumed": "an assumption: say --rate 200MB/s, or --measure",
}
SIZES = {
    "log-directories": "as the brokers have them on disk",
    "sampled": "estimated from a sample of records, uncompressed",
    "unknown": "not known",
}
BEGINNINGS = {
    LOCKSTEP: "where Lockstep is",
    MIRROR_MAKER: "where MirrorMaker 2 is",
    "legacy-group": "the group's offset",
}

COPY: Sequence[Column[TopicForecast]] = (
    Column("  topic", lambda topic: f"  {topic.topic}", "name"),
    Column("partitions", lambda topic: f"{len(topic.partitions):,}", "number"),
    Column("from", lambda topic: _beginnings(topic)),
    Column("records", lambda topic: _number(topic.records), "number"),
    Column("bytes", lambda topic: _size(topic.bytes, "?"), "number"),
    Column("time", lambda topic: _duration(topic), "number"),
    Column("retention", lambda topic: _retention(topic), "number"),
)
ON_THE_WAY: Column[TopicForecast] = Column("on the way", lambda topic: ", ".join(treatments(topic)))
"""The column of what becomes of records, if a topic is not copied as it is."""

Parts = Iterator[RenderableType]


def plan_parts(plan: Plan, *, terminal: bool) -> Parts:
    """Yield the whole plan, with its last line."""
    for flow in plan.flows:
        yield from _flow_parts(flow, terminal=terminal)
    yield Text(summary_line(plan), "bold")


def summary_line(plan: Plan) -> str:
    """Return the last line of a plan.

    An example is `Plan: 12 to create, 3 to alter, 0 to delete; 41.2 GB to copy in about 14 min at 50 MB/s; 2 hazards`.
    """
    summary = plan.summary
    parts = [f"{summary.create:,} to create, {summary.alter:,} to alter, {summary.delete:,} to delete"]
    if summary.records == 0:
        parts.append("nothing to copy")
    else:
        rates = sorted({flow.copy.rate for flow in plan.flows if flow.copy.topics})
        rate = rate_text(rates[0]) if len(rates) == 1 else "the rates above"
        duration = "in a time that is not known"
        if summary.seconds is not None:
            duration = f"in {'' if summary.seconds < 1 else 'about '}{_time(summary.seconds)}"
        parts.append(f"{_size(summary.bytes, 'unknown bytes')} to copy {duration} at {rate}")
    parts.append(count_text(summary.hazards, "hazard"))
    if summary.notes:
        parts.append(count_text(summary.notes, "note"))
    if summary.rights:
        parts.append(count_text(summary.rights, "missing right"))
    return "Plan: " + "; ".join(parts)


def comparison_parts(comparison: PlanComparison) -> Parts:
    """Yield the differences of two plans, and a last line that counts them."""
    if comparison.settings:
        yield Text(f"Settings: {comparison.this} -> {comparison.other}", "bold")
        for setting in comparison.settings:
            values = ("not set" if value is None else value or "empty" for value in (setting.this, setting.other))
            yield _line(f"~ {setting.flow}  {setting.key}: {' -> '.join(values)}", "yellow")
    if comparison.plan:
        yield Text("Plan", "bold")
        for difference in comparison.plan:
            file = comparison.this if difference.only == THIS else comparison.other
            yield _line(f"{difference.flow}  only with {file}: {difference.line}")
    if comparison.is_empty:
        yield Text(f"{comparison.this} and {comparison.other} have the same effect", "bold")
        return
    settings, lines = len(comparison.settings), len(comparison.plan)
    differing = count_text(settings, "setting differs", "settings differ")
    yield Text(f"{differing}, {count_text(lines, 'line')} of the plan", "bold")


def _flow_parts(flow: FlowPlan, *, terminal: bool) -> Parts:
    route = f"{flow.source.bootstrap} ({flow.source.cluster_id}) to {flow.target.bootstrap} ({flow.target.cluster_id})"
    yield Text.assemble((flow.flow, "bold"), f"  {route}" + ("" if flow.enabled else ", heartbeats only"))
    yield Text("")
    yield from _section("Changes", _changes(flow, terminal=terminal))
    if flow.enabled:
        yield from _section("Copy", _copy(flow.copy, terminal=terminal))
        if flow.traffic.partitions + flow.traffic.uncounted:
            yield from _section("Traffic a day", map(_line, traffic_lines(flow.traffic)))
    if flow.held_back:
        yield from _section("Paused or stopped", _held_back(flow.held_back, terminal=terminal))
    if flow.hazards:
        hazards = [hazard_finding(hazard, terminal=terminal) for hazard in flow.hazards]
        yield from _section("Hazards", finding_lines(hazards, INDENT))
    if flow.rights:
        yield from _section("Missing rights", finding_lines(map(right_finding, flow.rights), INDENT))
    if flow.remarks:
        yield from (IndentedText(Text(visible(remark), "dim"), 0) for remark in flow.remarks)
        yield Text("")


def _section(title: str, parts: Iterable[RenderableType]) -> Parts:
    yield Text(title, "bold")
    yield from parts
    yield Text("")


def _line(text: str, style: str = "") -> IndentedText:
    return IndentedText(Text(visible(text), style), INDENT)


def _first_lines(lines: Sequence[RenderableType], *, terminal: bool) -> Parts:
    """Yield the lines that are shown, and how many more there are."""
    return first_lines(lines, SHOWN if terminal else None, _more)


def _more(count: int) -> IndentedText:
    return _line(f"and {count:,} more: lockstep plan FILE | less shows all", "dim")


def _changes(flow: FlowPlan, *, terminal: bool) -> Parts:
    if not flow.changes:
        yield _line("none: topics, configs, ACLs and groups are as they should be")
    lines = [_line(change_text(change), STYLES.get(change.action, "red")) for change in flow.changes]
    yield from _first_lines(lines, terminal=terminal)
    for fate, words in (("sync", "kept in step"), ("checkpoints", "translated, not set on the target")):
        names = [group.group for group in flow.groups if group.fate == fate]
        if names:
            names_text = shorten(names, NAMED_GROUPS if terminal else len(names))
            yield _line(f"{count_text(len(names), 'group')} {words}: {names_text}")


def _copy(copy: CopyForecast, *, terminal: bool) -> Parts:
    if copy.topics:
        basis = f"{BASES[copy.rate_basis]}; bytes: {SIZES[copy.bytes_basis]}"
        yield _line(f"{rate_text(copy.rate)}: {basis}", "dim")
    else:
        yield _line("no topic is selected, or none can be copied")
    if copy.growth is not None and copy.growth * SMALL >= copy.rate:
        yield _line(f"producers add {rate_text(copy.growth)} on average, which the copy has to keep up with")
    if not terminal:
        yield from (_line(_copy_line(topic)) for topic in copy.topics)
    elif copy.topics:
        largest = sorted(copy.topics, key=lambda topic: -(topic.bytes or topic.records or 0))
        treated = any(treatments(topic) for topic in copy.topics)
        yield RowTable((*COPY, ON_THE_WAY) if treated else COPY, largest[:SHOWN])
        if len(largest) > SHOWN:
            yield _more(len(largest) - SHOWN)


def _copy_line(topic: TopicForecast) -> str:
    size = _size(topic.bytes, "unknown bytes")
    copied = "nothing to copy"
    if topic.records != 0:
        copied = f"{_number(topic.records)} records, {size}, {_duration(topic)}"
    partitions = count_text(len(topic.partitions), "partition")
    names = f"{topic.topic} -> {topic.remote}"
    how = "".join(f", {treatment}" for treatment in treatments(topic))
    return f"{names}: {partitions}, from {_beginnings(topic)}, {copied}, kept {_retention(topic)}{how}"


def _beginnings(topic: TopicForecast) -> str:
    """Return where the copy of a topic begins: one place, or all of its partitions' if they differ."""
    begins = [topic.begins] if topic.begins != "mixed" else [partition.begins for partition in topic.partitions]
    return ", ".join(dict.fromkeys(BEGINNINGS.get(begin, begin or "?") for begin in begins))


def _duration(topic: TopicForecast) -> str:
    return "?" if topic.seconds is None else _time(topic.seconds)


def _retention(topic: TopicForecast) -> str:
    limits = [] if topic.retention_ms is None else [in_time(topic.retention_ms)]
    limits += [] if topic.retention_bytes is None else [size_text(topic.retention_bytes)]
    return ", ".join(limits) or "without limit"


def _held_back(parts: Sequence[PausedPart], *, terminal: bool) -> Parts:
    lines = [_line(f"{part.scope} is {part.wanted}", "yellow") for part in parts]
    yield from _first_lines(lines, terminal=terminal)
    yield _line("It stays so until lockstep resume, or until lockstep.state in the file allows it", "dim")


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _size(size: int | None, unknown: str) -> str:
    return unknown if size is None else size_text(size)


def _time(seconds: float) -> str:
    return "under 1 s" if seconds < 1 else in_time(round(seconds * 1000))
