"""A report of `lockstep status` as tables. Pure: it prints nothing."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.findings import finding_lines, trouble_finding
from lockstep_cli.rendering.table import FAINT, Column, RowTable, facts
from lockstep_ops.formatting import ago, count_text, in_bytes, in_time, lasting, visible, without_name
from lockstep_ops.status.overview_sentence import verdict
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

PASSED_OVER = {"quarantined": "quarantined", "given_up": "given up", "target_lost": "lost on the target"}
"""The counts of a `PartitionLine` of records that never come to the target, with the words for them."""

RESTRAINED, BAD, GOOD = "yellow", "red", "green"
RESTRAINED_STATES = {"paused", "stopped", "waiting", NOT_BEGUN, UNASSIGNED, IN_USE, UNKNOWN}
BAD_STATES = {"halted", "failed", "failing", AHEAD_ON_TARGET, REWOUND_ON_SOURCE, REFUSED, SILENT, STALLED}


def _headline(report: Report) -> Text:
    """Return one line that says how the flow is."""
    mirrored = [line for line in report.topics if line.phase == "mirrored"]
    counts = count_text(len(mirrored), "topic"), count_text(len(report.partitions), "partition"), _behind(report)
    return Text.assemble((report.flow, "bold"), f"  {', '.join(counts)}: ", _verdict(report))


def _behind(report: Report) -> str:
    least = f"{count_text(report.lag_at_least, 'record')} behind"
    if report.lag_unknown:
        return f"at least {least}, and of {count_text(report.lag_unknown, 'partition')} it is unknown"
    return f"{least} ({in_time(report.lag_ms)})" if report.lag_ms else least


def _verdict(report: Report) -> Text:
    return Text(verdict(report), GOOD if report.fine else BAD if report.troubles else RESTRAINED)


def _readiness(ready: bool, blockers: Sequence[Blocker]) -> Text:
    """Return one line that says if clients can move to the target, and the first reason why not."""
    shown = [blocker for blocker in blockers if blocker.blocks is not ready]
    more = f" (and {len(shown) - 1:,} more)" if len(shown) > 1 else ""
    reason = f"{visible(format_blocker(shown[0]))}{more}" if shown else ""
    if ready:
        return Text.assemble("ready to switch: ", ("yes", GOOD), f"; note: {reason}" if reason else "")
    return Text.assemble("ready to switch: ", ("no", BAD), f": {reason}")


def report_parts(report: Report, sections: Collection[str], *, only_trouble: bool) -> Iterator[RenderableType]:
    """Yield the report for a person: the headline, the sections asked for, and what is in trouble.

    If no section is named, it has the total of each section, and the short ones.
    """
    yield _headline(report)
    if report.switch_ready is not None:
        yield _readiness(report.switch_ready, report.switch_blockers)
    if not sections and not only_trouble:
        yield _section("services", report, report.services)
        yield _sums(report)
    for name in SECTIONS:
        lines = [line for line in getattr(report, name) if line.cause or not only_trouble]
        if name in sections and lines:
            yield _section(name, report, lines)
        elif name in sections:
            yield Text(f"no {name}" + (" in trouble" if only_trouble else ""), FAINT)
        elif not sections and not only_trouble and name in ("topics", "groups") and 0 < len(lines) <= FEW:
            yield _section(name, report, lines)
    if not sections or only_trouble:
        yield from _troubles(report, None if only_trouble else FEW)


def _section(name: str, report: Report, lines: Sequence[Any]) -> RenderableType:
    return RowTable(SECTIONS[name](report), lines, title=f"\n{name}")


def _troubles(report: Report, most: int | None) -> Iterator[RenderableType]:
    if report.troubles:
        yield Text("\nin trouble", "bold")
    findings = [trouble_finding(trouble) for trouble in report.troubles]
    yield from finding_lines(findings[:most])
    if most is not None and len(findings) > most:
        yield Text(f"and {count_text(len(findings) - most, 'trouble')} more: --only trouble shows all", FAINT)


def _sums(report: Report) -> RenderableType:
    slot_bytes = sum(line.held_bytes for line in report.slots if line.phase == "started")
    slots = f"{_by_word(line.phase for line in report.slots)}; {in_bytes(slot_bytes)} in memory"
    behind = sum(line.records for line in report.groups)
    again = f"; at most {count_text(behind, 'record')} read again" if behind else ""
    sums: Sequence[tuple[str, str | Text]] = (
        ("topics", _by_word(line.phase for line in report.topics)),
        ("partitions", _by_word(line.state for line in report.partitions)),
        ("appends", _appends(report) if report.appends else ""),
        ("passed over", _restrained(_passed_over(report))),
        ("slots", slots),
        ("groups", _by_word(line.readiness for line in report.groups) + again),
        ("ACLs", "" if report.acls is None else _acls(report.acls)),
        ("clusters", "; ".join(map(str, report.clusters))),
        ("heartbeats", report.heartbeat or "none yet"),
        *(("selection", _restrained(sentence)) for sentence in report.empty_selections),
        ("unreadable", _restrained(_unreadable(report.unreadable))),
        ("held back", _restrained(_held_back(report))),
    )
    return facts(*((name, text) for name, text in sums if text), title="\n")


def _restrained(text: str) -> Text:
    return Text(visible(text), RESTRAINED)


def _passed_over(report: Report) -> str:
    sums = {words: sum(getattr(line, kind) for line in report.partitions) for kind, words in PASSED_OVER.items()}
    return ", ".join(f"{count:,} {words}" for words, count in sums.items() if count)


def _held_back(report: Report) -> str:
    words = [f"{part.scope} is {part.wanted}" for part in report.held_back[:FEW]]
    more = len(report.held_back) - len(words)
    return ", ".join(words) + (f", and {more:,} more" if more else "")


def _appends(report: Report) -> Text:
    """Return the means that keep records from being on the target twice, and whether the copy is exact."""
    counted = len(report.appends) > 1
    modes = ", ".join(f"{mode} ({count:,})" if counted else mode for mode, count in report.appends.items())
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
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in line.left_out_for)
    counts += [f"{line.left_out:,} left out" + (f" ({reasons})" if reasons else "")]
    reason = [line.reason] if line.reason and not line.cause else []  # a trouble is said among the troubles
    return "; ".join((", ".join(counts), *reason, *line.notes))


def _by_word(words: Iterable[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{count:,} {word}" for word, count in counts.most_common()) or "none"


def _why(line: TopicLine | PartitionLine | GroupLine, kind: str, name: str, otherwise: str = "") -> Text:
    """Return the last cell: what is wrong, or what else is to be said."""
    reason = visible(without_name(line.trouble or otherwise, kind, name))
    return Text(reason, BAD if line.cause else FAINT)


def _word(word: str) -> Text:
    return Text(word, BAD if word in BAD_STATES else RESTRAINED if word in RESTRAINED_STATES else "")


def _acting(report: Report, line: ServiceLine) -> str:
    newest_ms = max((leader.since_ms for leader in line.leaders), default=0)
    instances = ", ".join(sorted({leader.instance for leader in line.leaders}))
    return f"{instances}, for {lasting(newest_ms, report.at_ms)}" if instances and line.replicas != 0 else ""


def _topic_state(line: TopicLine) -> Text:
    words = [_word(line.phase)]
    words += [_word(line.wanted)] if line.wanted != "running" else []
    words += [Text(f"{line.halted} halted", BAD)] if line.halted else []
    return Text(" ").join(words)


def _behind_records(line: TopicLine | PartitionLine) -> str:
    return "?" if line.lag_records is None else f"{line.lag_records:,}"


def _lag(line: TopicLine | PartitionLine) -> str:
    """Return the lag in time: "" if nothing is behind, and `?` if it is unknown."""
    if line.lag_records == 0:
        return ""
    return "?" if line.lag_records is None or line.lag_ms is None else in_time(line.lag_ms)


def _service_columns(report: Report) -> Sequence[Column[ServiceLine]]:
    return (
        Column("service", lambda line: line.service, "name"),
        Column("wanted", lambda line: _word(line.wanted)),
        Column("replicas", lambda line: "?" if line.replicas is None else str(line.replicas), "number"),
        Column("acting", partial(_acting, report)),
        Column("why", lambda line: Text(line.trouble, BAD)),
    )


def _topic_columns(report: Report) -> Sequence[Column[TopicLine]]:
    return (
        Column("topic", lambda line: line.topic, "name"),
        Column("remote topic", lambda line: line.remote, "name"),
        Column("state", _topic_state),
        Column("partitions", lambda line: f"{line.partitions:,}", "number"),
        Column("behind", _behind_records, "number"),
        Column("lag", _lag, "number"),
        Column("why", lambda line: _why(line, "topic", line.topic, line.note)),
    )


def _partition_columns(report: Report) -> Sequence[Column[PartitionLine]]:
    return (
        Column("partition", lambda line: f"{line.topic}-{line.partition}", "name"),
        Column("state", lambda line: _word(line.state)),
        Column("behind", _behind_records, "number"),
        Column("lag", _lag, "number"),
        Column("copied to", lambda line: f"{line.upstream:,}" if line.upstream >= 0 else "", "number"),
        Column("slot", lambda line: str(line.slot) if line.slot >= 0 else "", "number"),
        Column("written", lambda line: ago(line.written_ms, report.at_ms)),
        Column("why", lambda line: _why(line, "partition", f"{line.topic}-{line.partition}", line.why)),
    )


def _slot_columns(report: Report) -> Sequence[Column[SlotLine]]:
    return (
        Column("slot", lambda line: str(line.slot), "number"),
        Column("state", lambda line: line.phase),
        Column("wanted", lambda line: _word(line.wanted)),
        Column("partitions", lambda line: f"{line.partitions:,}", "number"),
        Column("resting", lambda line: f"{line.resting:,}", "number"),
        Column("in memory", lambda line: in_bytes(line.held_bytes) if line.phase == "started" else "", "number"),
        Column("why", lambda line: Text(line.trouble, BAD)),
    )


def _group_columns(report: Report) -> Sequence[Column[GroupLine]]:
    return (
        Column("group", lambda line: line.group, "name"),
        Column("state", lambda line: _word(line.readiness)),
        Column("exact", lambda line: f"{line.exact:,}", "number"),
        Column("behind", lambda line: f"{line.behind:,}", "number"),
        Column("read again", lambda line: f"{line.records:,}" if line.behind else "", "number"),
        Column("waiting", lambda line: f"{line.waiting:,}", "number"),
        Column("synced", lambda line: "yes" if line.synced else ""),
        Column("why", lambda line: _why(line, "group", line.group, line.why)),
    )


SECTIONS: Mapping[str, Callable[[Report], Sequence[Column[Any]]]] = {
    "services": _service_columns,
    "topics": _topic_columns,
    "partitions": _partition_columns,
    "slots": _slot_columns,
    "groups": _group_columns,
}
"""The columns of each section. A section has the lines of the report that have its name."""
