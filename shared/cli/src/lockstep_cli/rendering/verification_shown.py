"""A verification as people read it, on a terminal and as Markdown. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.row_table import Column, RowTable
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import count_text, in_bytes, visible
from lockstep_ops.verify.verification_report import BeyondCopy, FoundDifference, UnverifiedStretch, VerificationReport
from lockstep_state.reasons.verification_reason import NotComparedReason

SHOWN = 20
"""The number of differences, and of stretches, that are shown one by one. JSON has all that are kept."""

HEADINGS = ("topic", "records", "bytes", "differ", "missing", "extra", "not-verified", "verified-to", "seconds")

KINDS: Mapping[str, Literal["name", "text"]] = {"topic": "name", "verified-to": "text"}
"""The kinds of the columns that are no numbers, by heading."""

SHORT_REASONS = {reason.value: reason.short for reason in NotComparedReason}


def _table_cells(report: VerificationReport) -> list[tuple[str, ...]]:
    """Return a line for each topic, as texts under `HEADINGS`."""
    return [
        (
            visible(one.topic),
            f"{one.records:,}",
            in_bytes(one.bytes),
            f"{one.differ:,}",
            f"{one.missing:,}",
            f"{one.extra:,}",
            f"{one.not_verified:,}",
            "end" if not one.behind else f"{one.behind:,} before the end",
            f"{one.seconds:,.1f}",
        )
        for one in report.topics
    ]


def verdict(report: VerificationReport) -> str:
    """Return the sentence about the whole flow."""
    records = sum(one.records for one in report.topics)
    wrong = sum(topic.differ + topic.missing + topic.extra + topic.beyond for topic in report.topics)
    left = sum(one.not_verified + one.behind for one in report.topics)
    if report.exit_code is Exit.TROUBLE:
        more = f"; {left:,} not verified" if left else ""
        return f"{report.flow}: {count_text(wrong, 'difference')} in {count_text(records, 'record')}{more}"
    if report.exit_code is Exit.FINE:
        return f"{report.flow}: equal, {count_text(records, 'record')} verified by {report.depth}"
    if not report.topics:
        return f"{report.flow}: no topic is mirrored, so nothing is verified"
    return f"{report.flow}: no difference in {count_text(records, 'record')}; {left:,} not verified"


def difference_text(one: FoundDifference) -> str:
    """Return a difference as a text: `orders-3  missing  source 1,234`."""
    places = [
        f"{log} {offset:,}"
        for log, offset in (("source", one.source_offset), ("target", one.target_offset))
        if offset >= 0
    ]
    return f"{visible(one.topic)}-{one.partition}  {one.kind}  {', '.join(places)}"


def _beyond_text(beyond: BeyondCopy) -> str:
    """Return a text such as `orders-3 beyond the copy 2 records from target 1,234 on`."""
    offset = f" from target {beyond.target_offset:,} on" if beyond.target_offset >= 0 else ""
    return (
        f"{visible(beyond.topic)}-{beyond.partition}  beyond the copy  {count_text(beyond.records, 'record')}{offset}"
    )


def _stretch_text(one: UnverifiedStretch) -> str:
    """Return a stretch as a text: `orders-3  120 to 130: quarantined or skipped by a policy (11)`."""
    where = f"source {one.first:,} to {one.last:,}" if one.first >= 0 else "records of the target"
    reason = SHORT_REASONS.get(one.reason, one.reason)
    return f"{visible(one.topic)}-{one.partition}  {where}: {reason} ({one.records:,})"


def verification_shown(report: VerificationReport) -> Iterator[RenderableType]:
    """Yield the report for a terminal, or as whole lines for a file."""
    table = RowTable([Column(heading, KINDS.get(heading, "number")) for heading in HEADINGS])
    for cells in _table_cells(report):
        table.add_row(*cells)
    yield table
    yield from map(Text, _details(report))
    style = {Exit.TROUBLE: "bold red", Exit.FINE: "bold green"}.get(report.exit_code, "bold yellow")
    yield Text(verdict(report), style)


def _details(report: VerificationReport) -> Iterator[str]:
    sections: Sequence[tuple[str, list[str]]] = (
        ("Differences", [difference_text(one) for one in report.differences]),
        ("Beyond the copy", [_beyond_text(beyond) for beyond in report.beyond]),
        ("Not verified", [_stretch_text(one) for one in report.not_verified]),
        ("Waiting", [f"{name}  {why}" for name, why in sorted(report.waiting.items())]),
    )
    for title, lines in sections:
        if lines:
            yield f"\n{title}"
            yield from (f"  {line}" for line in lines[:SHOWN])
            if len(lines) > SHOWN:
                yield f"  and {len(lines) - SHOWN:,} more, which --output json has"


def as_markdown(report: VerificationReport) -> str:
    """Return the report as a page: the evidence of a verification."""
    lines = [f"# Verification of {report.flow}", "", verdict(report), ""]
    lines += [f"| {' | '.join(HEADINGS)} |", f"|{'---|' * len(HEADINGS)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |" for cells in _table_cells(report)]
    for line in _details(report):
        text = line.strip()
        lines.append(f"\n## {text}\n" if line.startswith("\n") else f"- {text}")
    return "\n".join(lines) + "\n"
