"""A report of `lockstep verify` as lines and a table, and as a page in Markdown. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.findings import (
    ShownFinding,
    beyond_finding,
    difference_finding,
    finding_lines,
    unverified_finding,
)
from lockstep_cli.rendering.lines import IndentedText, first_lines
from lockstep_cli.rendering.table import Column, RowTable
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import count_text, in_bytes
from lockstep_ops.verify.verification_report import VerificationReport, VerifiedTopic

SHOWN = 20
"""The number of differences, and of stretches, that are shown one by one. JSON has all that are kept."""

TOPICS: Sequence[Column[VerifiedTopic]] = (
    Column("topic", lambda topic: topic.topic, "name"),
    Column("records", lambda topic: f"{topic.records:,}", "number"),
    Column("bytes", lambda topic: in_bytes(topic.bytes), "number"),
    Column("differ", lambda topic: f"{topic.differ:,}", "number"),
    Column("missing", lambda topic: f"{topic.missing:,}", "number"),
    Column("extra", lambda topic: f"{topic.extra:,}", "number"),
    Column("not-verified", lambda topic: f"{topic.not_verified:,}", "number"),
    Column("verified-to", lambda topic: f"{topic.behind:,} before the end" if topic.behind else "end"),
    Column("seconds", lambda topic: f"{topic.seconds:,.1f}", "number"),
)


def verdict(report: VerificationReport) -> str:
    """Return the sentence about the whole flow."""
    records = sum(topic.records for topic in report.topics)
    differences = sum(topic.differ + topic.missing + topic.extra + topic.beyond for topic in report.topics)
    not_verified = sum(topic.not_verified + topic.behind for topic in report.topics)
    through = _through_transforms(report)
    if report.exit_code is Exit.TROUBLE:
        more = f"; {not_verified:,} not verified" if not_verified else ""
        return (
            f"{report.flow}: {count_text(differences, 'difference')} in {count_text(records, 'record')}{more}{through}"
        )
    if report.exit_code is Exit.FINE:
        return f"{report.flow}: equal, {count_text(records, 'record')} verified by {report.depth}{through}"
    if not report.topics:
        return f"{report.flow}: no topic is mirrored, so nothing is verified"
    return f"{report.flow}: no difference in {count_text(records, 'record')}; {not_verified:,} not verified{through}"


def _through_transforms(report: VerificationReport) -> str:
    topics = [topic.topic for topic in report.topics if topic.transforms]
    if not topics:
        return ""
    return f". The source of {', '.join(topics)} was compared as the transform leaves it"


def verification_parts(report: VerificationReport) -> Iterator[RenderableType]:
    """Yield the report for a terminal, or as whole lines for a file."""
    yield RowTable(TOPICS, report.topics)
    for title, findings in _sections(report):
        yield Text(f"\n{title}")
        yield from first_lines([*finding_lines(findings, 2)], SHOWN, lambda count: IndentedText(Text(_more(count)), 2))
    style = {Exit.TROUBLE: "bold red", Exit.FINE: "bold green"}.get(report.exit_code, "bold yellow")
    yield Text(verdict(report), style)


def as_markdown(report: VerificationReport) -> str:
    """Return the report as a page: the evidence of a verification."""
    lines = [f"# Verification of {report.flow}", "", verdict(report), ""]
    lines += RowTable(TOPICS, report.topics).as_markdown()
    for title, findings in _sections(report):
        lines.append(f"\n## {title}\n")
        lines += [f"- {line}" for line in first_lines([str(finding.line) for finding in findings], SHOWN, _more)]
    return "\n".join(lines) + "\n"


def _sections(report: VerificationReport) -> Iterator[tuple[str, Sequence[ShownFinding]]]:
    """Yield the titles of what was found, and the findings under each."""
    sections = (
        ("Differences", [difference_finding(difference) for difference in report.differences]),
        ("Beyond the copy", [beyond_finding(beyond) for beyond in report.beyond]),
        ("Not verified", [unverified_finding(stretch) for stretch in report.not_verified]),
        ("Waiting", [ShownFinding(Text("  ".join(item))) for item in sorted(report.waiting.items())]),
    )
    return ((title, findings) for title, findings in sections if findings)


def _more(count: int) -> str:
    return f"and {count:,} more, which --output json has"
