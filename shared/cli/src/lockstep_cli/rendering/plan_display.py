"""A plan as people read it: tables on a terminal, whole lines elsewhere. Pure: it prints nothing."""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.row_table import Column, IndentedText, RowTable
from lockstep_cli.rendering.traffic_lines import traffic_lines
from lockstep_ops.formatting import count_text, in_time, shorten, visible
from lockstep_ops.plan.rules.changes import change_text
from lockstep_ops.plan.rules.comparison import THIS, PlanComparison
from lockstep_ops.plan.rules.flow_plan import (
    ALTER,
    CREATE,
    ERROR,
    LOCKSTEP,
    MIRROR_MAKER,
    WARNING,
    CopyForecast,
    FlowPlan,
    PartitionForecast,
    Plan,
    PlanHazard,
    TopicForecast,
    TrafficForecast,
)
from lockstep_ops.plan.rules.rate import rate_text, size_text
from lockstep_ops.status.report import PausedPart

SHOWN = 40
"""The number of lines of a section on a terminal. Elsewhere all of them are written."""

SMALL = 100
"""A growth below this part of the rate changes nothing."""

NAMED_DETAILS = 5
"""The number of sentences of a hazard on a terminal."""

STYLES = {CREATE: "green", ALTER: "yellow"}
SEVERITIES = {ERROR: "bold red", WARNING: "yellow"}

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

COPY = (
    *(Column("  topic", "name"), Column("partitions", "number"), Column("from"), Column("records", "number")),
    *(Column("bytes", "number"), Column("time", "number"), Column("retention", "number")),
)

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
    one = plan.summary
    parts = [f"{one.create:,} to create, {one.alter:,} to alter, {one.delete:,} to delete"]
    if one.records == 0:
        parts.append("nothing to copy")
    else:
        size = "unknown bytes" if one.bytes is None else size_text(one.bytes)
        rates = sorted({flow.copy.rate for flow in plan.flows if flow.copy.topics})
        at = rate_text(rates[0]) if len(rates) == 1 else "the rates above"
        when = "in a time that is not known"
        if one.seconds is not None:
            when = f"in {'' if one.seconds < 1 else 'about '}{_time(one.seconds)}"
        parts.append(f"{size} to copy {when} at {at}")
    parts.append(count_text(one.hazards, "hazard"))
    if one.notes:
        parts.append(count_text(one.notes, "note"))
    if one.rights:
        parts.append(count_text(one.rights, "missing right"))
    return "Plan: " + "; ".join(parts)


def comparison_parts(comparison: PlanComparison, *, terminal: bool) -> Parts:
    """Yield the differences, and a last line that counts them."""
    line = partial(_line, terminal=terminal)
    if comparison.settings:
        yield Text(f"Settings: {comparison.this} -> {comparison.other}", "bold")
        for one in comparison.settings:
            before, after = ("not set" if value is None else value or "empty" for value in (one.this, one.other))
            yield line(f"~ {one.flow}  {one.key}: {before} -> {after}", style="yellow")
    if comparison.plan:
        yield Text("Plan", "bold")
        for difference in comparison.plan:
            file = comparison.this if difference.only == THIS else comparison.other
            yield line(f"{difference.flow}  only with {file}: {difference.line}")
    if comparison.is_empty:
        yield Text(f"{comparison.this} and {comparison.other} have the same effect", "bold")
        return
    settings, lines = len(comparison.settings), len(comparison.plan)
    differing = count_text(settings, "setting differs", "settings differ")
    yield Text(f"{differing}, {count_text(lines, 'line')} of the plan", "bold")


def _flow_parts(flow: FlowPlan, *, terminal: bool) -> Parts:
    line = partial(_line, terminal=terminal)
    route = f"{flow.source.bootstrap} ({flow.source.cluster_id}) to {flow.target.bootstrap} ({flow.target.cluster_id})"
    yield Text.assemble((flow.flow, "bold"), f"  {route}" + ("" if flow.enabled else ", heartbeats only"))
    yield Text("")
    yield from _changes(flow, terminal=terminal)
    if flow.enabled:
        yield from _copy(flow.copy, terminal=terminal)
        yield from _traffic(flow.traffic, terminal=terminal)
    yield from _held_back(flow.held_back, terminal=terminal)
    yield from _hazards(flow.hazards, terminal=terminal)
    if flow.rights:
        yield Text("Missing rights", "bold")
        for right in flow.rights:
            yield line(f"{right.cluster}: {right.lacks}")
            if right.command:
                yield line(right.command, 4, "cyan")
        yield Text("")
    if flow.remarks:
        yield from (line(remark, 0, "dim") for remark in flow.remarks)
        yield Text("")


def _line(text: str, indent: int = 2, style: str = "", *, terminal: bool) -> RenderableType:
    """Return a line of a section. On a terminal what does not fit goes on below its beginning."""
    if not terminal:
        return Text(" " * indent + visible(text))
    return IndentedText(Text(visible(text), style), indent)


def _cut(lines: Sequence[RenderableType], count: int, *, terminal: bool) -> Parts:
    """Yield the lines that are shown of `count` lines, and how many more there are."""
    shown = lines[:SHOWN] if terminal else lines
    yield from shown
    if count > len(shown):
        yield _line(
            f"and {count - len(shown):,} more: lockstep plan FILE | less shows all", 2, "dim", terminal=terminal
        )


def _changes(flow: FlowPlan, *, terminal: bool) -> Parts:
    line = partial(_line, terminal=terminal)
    yield Text("Changes", "bold")
    if not flow.changes:
        yield line("none: topics, configs, ACLs and groups are as they should be")
    lines = [line(change_text(one), style=STYLES.get(one.action, "red")) for one in flow.changes]
    yield from _cut(lines, len(lines), terminal=terminal)
    for fate, words in (("sync", "kept in step"), ("checkpoints", "translated, not set on the target")):
        names = [one.group for one in flow.groups if one.fate == fate]
        if names:
            shown = shorten(names, NAMED_DETAILS if terminal else len(names))
            yield line(f"{count_text(len(names), 'group')} {words}: {shown}")
    yield Text("")


def _copy(copy: CopyForecast, *, terminal: bool) -> Parts:
    line = partial(_line, terminal=terminal)
    yield Text("Copy", "bold")
    if copy.topics:
        basis = f"{BASES[copy.rate_basis]}; bytes: {SIZES[copy.bytes_basis]}"
        yield line(f"{rate_text(copy.rate)}: {basis}", style="dim")
    else:
        yield line("no topic is selected, or none can be copied")
    if copy.growth is not None and copy.growth * SMALL >= copy.rate:
        yield line(f"producers add {rate_text(copy.growth)} on average, which the copy has to keep up with")
    if copy.topics:
        lines = [_copy_table(copy)] if terminal else [line(_copy_line(one)) for one in copy.topics]
        yield from _cut(lines, len(lines) + max(0, len(copy.topics) - SHOWN if terminal else 0), terminal=terminal)
    yield Text("")


def _copy_table(copy: CopyForecast) -> RenderableType:
    table = RowTable(COPY)
    ordered = sorted(copy.topics, key=lambda one: -(one.bytes or one.records or 0))
    for one in ordered[:SHOWN]:
        cells = (
            f"  {visible(one.topic)}",
            f"{len(one.partitions):,}",
            _from(one),
            _number(one.records),
            "?" if one.bytes is None else size_text(one.bytes),
            _duration(one),
            _retention(one),
        )
        table.add_row(*cells)
    return table


def _copy_line(one: TopicForecast) -> str:
    size = "unknown bytes" if one.bytes is None else size_text(one.bytes)
    what = "nothing to copy" if one.records == 0 else f"{_number(one.records)} records, {size}, {_duration(one)}"
    partitions = count_text(len(one.partitions), "partition")
    names = f"{one.topic} -> {one.remote}"
    return f"{names}: {partitions}, from {_from(one)}, {what}, kept {_retention(one)}"


def _from(topic: TopicForecast) -> str:
    if topic.begins != "mixed":
        return BEGINNINGS.get(topic.begins, topic.begins or "?")
    return ", ".join(dict.fromkeys(_beginning(one) for one in topic.partitions))


def _beginning(one: PartitionForecast) -> str:
    return BEGINNINGS.get(one.begins, one.begins or "?")


def _duration(topic: TopicForecast) -> str:
    return "?" if topic.seconds is None else _time(topic.seconds)


def _retention(topic: TopicForecast) -> str:
    limits = [] if topic.retention_ms is None else [in_time(topic.retention_ms)]
    limits += [] if topic.retention_bytes is None else [size_text(topic.retention_bytes)]
    return ", ".join(limits) or "without limit"


def _traffic(traffic: TrafficForecast, *, terminal: bool) -> Parts:
    if not traffic.partitions + traffic.uncounted:
        return
    yield Text("Traffic a day", "bold")
    yield from (_line(text, terminal=terminal) for text in traffic_lines(traffic))
    yield Text("")


def _held_back(parts: Sequence[PausedPart], *, terminal: bool) -> Parts:
    if not parts:
        return
    line = partial(_line, terminal=terminal)
    yield Text("Paused or stopped", "bold")
    yield from _cut(
        [line(f"{one.scope} is {one.wanted}", style="yellow") for one in parts], len(parts), terminal=terminal
    )
    yield line("It stays so until lockstep resume, or until lockstep.state in the file allows it", style="dim")
    yield Text("")


def _hazards(hazards: Sequence[PlanHazard], *, terminal: bool) -> Parts:
    if not hazards:
        return
    line = partial(_line, terminal=terminal)
    yield Text("Hazards", "bold")
    for one in hazards:
        style = SEVERITIES.get(one.severity, "dim")
        yield Text.assemble("  ", (f"{one.code} {one.severity}", style), f"  {one.title}")
        shown = one.details[:NAMED_DETAILS] if terminal else one.details
        yield from (line(sentence, 4) for sentence in shown)
        if len(one.details) > len(shown):
            yield line(f"and {len(one.details) - len(shown):,} more", 4, "dim")
        yield line(f"fix: {one.fix}", 4, "dim")
        yield line(one.page, 4, "dim")
    yield Text("")


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _time(seconds: float) -> str:
    return "under 1 s" if seconds < 1 else in_time(round(seconds * 1000))
