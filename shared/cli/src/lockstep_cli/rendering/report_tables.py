"""A `Report` as tables for a terminal, and as JSON. Pure: it prints nothing."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.row_table import FAINT, Column, RowTable
from lockstep_ops.formatting import ago, count_text, in_bytes, in_time, lasting, visible, without_name
from lockstep_ops.status.readiness import blockers_as_json
from lockstep_ops.status.report import (
    AHEAD_ON_TARGET,
    IN_USE,
    NOT_BEGUN,
    REFUSED,
    REWOUND_ON_SOURCE,
    SILENT,
    STALLED,
    UNASSIGNED,
    UNKNOWN,
    AclLine,
    GroupLine,
    PartitionLine,
    Report,
    ServiceLine,
    SlotLine,
    TopicLine,
    UnreadableTopic,
)
from lockstep_rules.switch.switch_sentences import format_blocker
from lockstep_state.reasons.switch_reason import Blocker

FEW = 20
"""The most lines of a kind that are shown unasked. If there are more, only their sum is shown."""

PASSED_OVER = ("quarantined", "given_up", "target_lost")
"""The counts of a `PartitionLine` of records that never come to the target."""

NAMES = ("service", "topic", "remote topic", "partition", "group")
"""The columns whose cells stay on one line, however narrow the terminal."""

PLAIN = (
    *("flow", "at_ms", "fine", "lag_records", "lag_at_least", "lag_unknown", "lag_ms"),
    *("not_copying", "groups_held", "passed_over", "appends", "exact", "heartbeat", "empty_selections"),
)
"""Values of a report that are in JSON as they are."""

Cells = tuple[str | Text, ...]

RESTRAINED, BAD, GOOD = "yellow", "red", "green"


def as_json(report: Report, sections: Collection[str], *, only_trouble: bool) -> dict[str, Any]:
    """Return the report as JSON values: sums, troubles, and the lines of `sections`, or of all if none is named."""
    body: dict[str, Any] = {name: getattr(report, name) for name in PLAIN}
    body["switch_ready"] = report.switch_ready
    body["switch_blockers"] = blockers_as_json(report.switch_blockers)
    body["acls"] = None if report.acls is None else _line_as_json(report.acls)
    for name in ("held_back", "troubles", "unreadable", "clusters"):
        body[name] = [asdict(one) for one in getattr(report, name)]
    for name, section in SECTIONS.items():
        if not sections or name in sections:
            body[name] = [_line_as_json(line) for line in section.lines(report) if line.cause or not only_trouble]
    return body


def _line_as_json(line: Any) -> dict[str, Any]:
    """Return the fields of a line, with the code of what fails beside its sentence."""
    return {**asdict(line), "trouble": line.trouble, "cause": line.cause.to_json()}


def _headline(report: Report) -> Text:
    """Return one line that says how the flow is."""
    mirrored = [line for line in report.topics if line.phase == "mirrored"]
    counts = (
        f"{count_text(len(mirrored), 'topic')}, {count_text(len(report.partitions), 'partition')}, {_behind(report)}: "
    )
    return Text.assemble((report.flow, "bold"), "  ", counts, _verdict(report))


def _behind(report: Report) -> str:
    least = f"{count_text(report.lag_at_least, 'record')} behind"
    if report.lag_unknown:
        return f"at least {least}, and of {count_text(report.lag_unknown, 'partition')} it is unknown"
    return f"{least} ({in_time(report.lag_ms)})" if report.lag_ms else least


def _verdict(report: Report) -> Text:
    if report.fine:
        return Text("fine", GOOD)
    words = [f"{count:,} {state}" for state, count in report.not_copying.items()]
    words += [f"{count_text(count, 'group')} {why}" for why, count in report.groups_held.items()]
    states = ", ".join(words)
    if report.troubles:
        troubles = count_text(len(report.troubles), "trouble")
        return Text(f"{troubles}; {states}" if states else troubles, BAD)
    return Text(states or "behind by nobody knows how much", RESTRAINED)


def _readiness(ready: bool, blockers: Sequence[Blocker]) -> Text:
    """Return one line that says if clients can move to the target, and the first reason why not."""
    shown = [one for one in blockers if one.blocks is not ready]
    more = f" (and {len(shown) - 1:,} more)" if len(shown) > 1 else ""
    why = f"{visible(format_blocker(shown[0]))}{more}" if shown else ""
    if ready:
        return Text.assemble("ready to switch: ", ("yes", GOOD), f"; note: {why}" if why else "")
    return Text.assemble("ready to switch: ", ("no", BAD), f": {why}")


def as_tables(report: Report, sections: Collection[str], *, only_trouble: bool) -> Iterator[RenderableType]:
    """Yield the report for a person: the headline, the sections asked for, and what is in trouble.

    If no section is named, it has the total of each section, and the short ones.
    """
    yield _headline(report)
    if report.switch_ready is not None:
        yield _readiness(report.switch_ready, report.switch_blockers)
    if not sections and not only_trouble:
        yield SECTIONS["services"].table("services", report, report.services)
        yield _sums(report)
    for name, section in SECTIONS.items():
        some = [line for line in section.lines(report) if line.cause or not only_trouble]
        if name in sections and some:
            yield section.table(name, report, some)
        elif name in sections:
            yield Text(f"no {name}" + (" in trouble" if only_trouble else ""), FAINT)
        elif not sections and not only_trouble and name in ("topics", "groups") and 0 < len(some) <= FEW:
            yield section.table(name, report, some)
    if not sections or only_trouble:
        yield from _troubles(report, None if only_trouble else FEW)


def _troubles(report: Report, most: int | None) -> Iterator[RenderableType]:
    shown = report.troubles[:most]
    if shown:
        yield Text("\nin trouble", "bold")
    for trouble in shown:
        kind, _, name = trouble.what.partition(" ")
        why = without_name(trouble.why, kind, name)
        yield Text.assemble((visible(trouble.what), BAD), f": {visible(why)}")
    if left := len(report.troubles) - len(shown):
        yield Text(f"and {count_text(left, 'trouble')} more: --only trouble shows all", FAINT)


def _sums(report: Report) -> RenderableType:
    table = RowTable((Column("", "name"), Column("")), title="\n")
    _add_row(table, "topics", _by_word(line.phase for line in report.topics))
    _add_row(table, "partitions", _by_word(line.state for line in report.partitions))
    if report.appends:
        _add_row(table, "appends", _appends(report))
    if report.passed_over:
        kinds = ("quarantined", "given up", "lost on the target")
        sums = [sum(getattr(line, kind) for line in report.partitions) for kind in PASSED_OVER]
        said = ", ".join(f"{count:,} {kind}" for count, kind in zip(sums, kinds, strict=True) if count)
        _add_row(table, "passed over", Text(said, RESTRAINED))
    held = sum(line.held_bytes for line in report.slots if line.phase == "started")
    _add_row(table, "slots", f"{_by_word(line.phase for line in report.slots)}; {in_bytes(held)} in memory")
    behind = sum(line.records for line in report.groups)
    again = f"; at most {count_text(behind, 'record')} read again" if behind else ""
    _add_row(table, "groups", _by_word(line.readiness for line in report.groups) + again)
    if report.acls is not None:
        _add_row(table, "ACLs", _acls(report.acls))
    if report.clusters:
        _add_row(table, "clusters", "; ".join(map(str, report.clusters)))
    _add_row(table, "heartbeats", report.heartbeat or "none yet")
    for sentence in report.empty_selections:
        _add_row(table, "selection", Text(visible(sentence), RESTRAINED))
    if report.unreadable:
        _add_row(table, "unreadable", Text(_unreadable(report.unreadable), RESTRAINED))
    if report.held_back:
        words = [f"{one.scope} is {one.wanted}" for one in report.held_back[:FEW]]
        more = len(report.held_back) - len(words)
        _add_row(table, "held back", Text(", ".join(words) + (f", and {more:,} more" if more else ""), RESTRAINED))
    return table


def _appends(report: Report) -> Text:
    """Return the means that keep records from being on the target twice, and whether the copy is exact."""
    modes = ", ".join(
        mode if len(report.appends) == 1 else f"{mode} ({count:,})" for mode, count in report.appends.items()
    )
    if report.exact:
        return Text(f"{modes}: exact")
    doubled = sum(line.doubled for line in report.partitions)
    inexact = count_text(sum(line.exact is False for line in report.partitions), "partition")
    twice = f", {count_text(doubled, 'record')} found twice" if doubled else ""
    return Text(f"{modes}: {inexact} not exact{twice}", RESTRAINED)


def _unreadable(topics: Iterable[UnreadableTopic]) -> str:
    """Return how many records of each topic were passed over.

    Several replicas read the same ones, so the highest count is taken.
    """
    counts: dict[str, int] = {}
    for line in topics:
        counts[line.topic] = max(line.count, counts.get(line.topic, 0))
    return ", ".join(f"{count_text(count, 'record')} of {topic}" for topic, count in sorted(counts.items()))


def _acls(line: AclLine) -> str:
    counts = [line.phase, f"{line.copied:,} copied"]
    counts += [f"{line.owned:,} ours"] if line.owned else []
    counts += [f"{line.revoked:,} revoked and still there"] if line.revoked else []
    why = ", ".join(f"{count:,} {reason}" for reason, count in line.left_out_for)
    counts += [f"{line.left_out:,} left out" + (f" ({why})" if why else "")]
    reason = [line.reason] if line.reason and not line.cause else []  # a trouble is said among the troubles
    return "; ".join((", ".join(counts), *reason, *line.notes))


def _by_word(words: Iterable[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{count:,} {word}" for word, count in counts.most_common()) or "none"


def _add_row(table: RowTable, *cells: str | Text) -> None:
    """Add a row whose texts are shown as they are, because names may look like markup."""
    table.add_row(*(visible(cell) if isinstance(cell, str) else cell for cell in cells))


def _why(line: TopicLine | PartitionLine | GroupLine, kind: str, name: str, otherwise: str = "") -> Text:
    """Return the last cell: what is wrong, or what else is to be said."""
    why = visible(without_name(line.trouble or otherwise, kind, name))
    return Text(why, BAD if line.cause else FAINT)


def _word(word: str) -> Text:
    style = {
        "paused": RESTRAINED,
        "stopped": RESTRAINED,
        "halted": BAD,
        "failed": BAD,
        "failing": BAD,
        "waiting": RESTRAINED,
        NOT_BEGUN: RESTRAINED,
        UNASSIGNED: RESTRAINED,
        IN_USE: RESTRAINED,
        AHEAD_ON_TARGET: BAD,
        REWOUND_ON_SOURCE: BAD,
        REFUSED: BAD,
        UNKNOWN: RESTRAINED,
        SILENT: BAD,
        STALLED: BAD,
    }
    return Text(word, style.get(word, ""))


def _service(report: Report, line: ServiceLine) -> Cells:
    newest = max((one.since_ms for one in line.leaders), default=0)
    instances = ", ".join(sorted({one.instance for one in line.leaders}))
    count = "?" if line.replicas is None else str(line.replicas)
    acting = f"{instances}, for {lasting(newest, report.at_ms)}" if instances and line.replicas != 0 else ""
    return line.service, _word(line.wanted), count, acting, Text(line.trouble, BAD)


def _topic(report: Report, line: TopicLine) -> Cells:
    words = [_word(line.phase)]
    words += [_word(line.wanted)] if line.wanted != "running" else []
    words += [Text(f"{line.halted} halted", BAD)] if line.halted else []
    count, why = f"{line.partitions:,}", _why(line, "topic", line.topic, line.note)
    return line.topic, line.remote, Text(" ").join(words), count, *_lag(line), why


def _partition(report: Report, line: PartitionLine) -> Cells:
    name = f"{line.topic}-{line.partition}"
    copied_to = f"{line.upstream:,}" if line.upstream >= 0 else ""
    slot, written = str(line.slot) if line.slot >= 0 else "", ago(line.written_ms, report.at_ms)
    why = _why(line, "partition", name, line.why)
    return name, _word(line.state), *_lag(line), copied_to, slot, written, why


def _lag(line: TopicLine | PartitionLine) -> tuple[str, str]:
    """Return the lag in records and in time, with `?` for what is unknown."""
    if line.lag_records is None:
        return "?", "?"
    if not line.lag_records:
        return "0", ""
    return f"{line.lag_records:,}", "?" if line.lag_ms is None else in_time(line.lag_ms)


def _slot(report: Report, line: SlotLine) -> Cells:
    held = in_bytes(line.held_bytes) if line.phase == "started" else ""
    counts = f"{line.partitions:,}", f"{line.resting:,}", held
    return str(line.slot), line.phase, _word(line.wanted), *counts, Text(line.trouble, BAD)


def _group(report: Report, line: GroupLine) -> Cells:
    again = f"{line.records:,}" if line.behind else ""
    counts = f"{line.exact:,}", f"{line.behind:,}", again, f"{line.waiting:,}"
    why = _why(line, "group", line.group, line.why)
    return line.group, _word(line.readiness), *counts, "yes" if line.synced else "", why


class Section(NamedTuple):
    """A section of a report: its lines, and how they are shown."""

    lines: Callable[[Report], Sequence[Any]]
    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    """The columns that are aligned to the right."""
    cells: Callable[[Report, Any], Cells]

    def table(self, title: str, report: Report, lines: Sequence[Any]) -> RowTable:
        """Return the lines under their title."""
        table = RowTable([self._column(name) for name in self.columns], title=f"\n{title}")
        for line in lines:
            _add_row(table, *self.cells(report, line))
        return table

    def _column(self, name: str) -> Column:
        return Column(name, "name" if name in NAMES else "number" if name in self.numbers else "text")


SECTIONS = {
    "services": Section(
        lambda report: report.services, ("service", "wanted", "replicas", "acting", "why"), ("replicas",), _service
    ),
    "topics": Section(
        lambda report: report.topics,
        ("topic", "remote topic", "state", "partitions", "behind", "lag", "why"),
        ("partitions", "behind", "lag"),
        _topic,
    ),
    "partitions": Section(
        lambda report: report.partitions,
        ("partition", "state", "behind", "lag", "copied to", "slot", "written", "why"),
        ("behind", "lag", "copied to", "slot"),
        _partition,
    ),
    "slots": Section(
        lambda report: report.slots,
        ("slot", "state", "wanted", "partitions", "resting", "in memory", "why"),
        ("slot", "partitions", "resting", "in memory"),
        _slot,
    ),
    "groups": Section(
        lambda report: report.groups,
        ("group", "state", "exact", "behind", "read again", "waiting", "synced", "why"),
        ("exact", "behind", "read again", "waiting"),
        _group,
    ),
}
