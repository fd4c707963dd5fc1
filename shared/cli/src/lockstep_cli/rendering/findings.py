"""The one renderer of findings: checks of doctor, hazards of a plan, refusals, troubles, and differences of verify.

A finding is a line that says what is so. Below it are the details, what helps, and where to read more.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from lockstep_cli.rendering.lines import IndentedText, first_lines
from lockstep_cli.rendering.result import print_parts
from lockstep_ops.doctor.checks.check import Category, CheckFinding, Result
from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport
from lockstep_ops.findings.finding_kind import FindingKind
from lockstep_ops.formatting import count_text, visible, without_name
from lockstep_ops.plan.rules.flow_plan import ERROR, WARNING, MissingRight, PlanHazard
from lockstep_ops.status.report import Trouble
from lockstep_ops.verify.verification_report import BeyondCopy, FoundDifference, UnverifiedStretch
from lockstep_state.reasons.verification_reason import NotComparedReason

RESULT_STYLES = {
    Result.OK: "green",
    Result.WARNING: "yellow",
    Result.FAILED: "red",
    Result.UNKNOWN: "magenta",
    Result.SKIPPED: "dim",
}
SEVERITY_STYLES = {ERROR: "bold red", WARNING: "yellow"}

WIDTH = 100
"""The columns of a terminal that `lockstep explain` fills."""

MOST_DETAILS = 5
"""The number of details of a hazard that a terminal shows."""

BELOW = 4
"""The blanks before the lines below that of a finding."""

SHORT_REASONS = {reason.value: reason.short for reason in NotComparedReason}


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding as it is shown: its line, and the lines below it."""

    line: Text
    below: Sequence[Text] = ()


def finding_lines(findings: Iterable[ShownFinding], indent: int = 0) -> Iterator[IndentedText]:
    """Yield the lines of findings, some blanks from the left."""
    for finding in findings:
        yield IndentedText(finding.line, indent)
        yield from (IndentedText(line, BELOW) for line in finding.below)


def category_lines(category: CategoryFindings, *, terminal: bool) -> Iterator[IndentedText]:
    """Yield the lines of a category of checks, under its heading.

    On a terminal codes and subjects are columns. In a file no line depends on another one.
    """
    yield IndentedText(Text(category.category.heading, "bold"), 0)
    groups = [*_groups(category.findings)]
    cells = [_check_cells(findings) for findings in groups]
    code_width, subject_width = (max((len(row[column]) for row in cells), default=0) for column in (0, 1))
    for (finding, *_), (codes, subject, text) in zip(groups, cells, strict=True):
        if terminal:
            codes, subject = f"{codes:{code_width}}", f"{subject:{subject_width}} " if subject_width else ""
        elif subject:
            subject = f"{subject}: "
        style = RESULT_STYLES[finding.result]
        line = Text.assemble(
            (f"{finding.result.mark} ", style),
            (f"{codes} ", "dim"),
            subject,
            (text, "" if finding.result is Result.OK else style),
        )
        yield from finding_lines([ShownFinding(line, [*_check_help(finding)])])
    yield IndentedText(Text(""), 0)


def _groups(findings: Iterable[CheckFinding]) -> Iterator[Sequence[CheckFinding]]:
    """Yield the findings that share a line: those that one failure ended for one subject. Others are alone."""
    for _, group in groupby(enumerate(findings), key=_group_key):
        yield [finding for _, finding in group]


def _group_key(numbered: tuple[int, CheckFinding]) -> tuple[str, str | int]:
    """Return a key that is equal for findings in a row that share a line."""
    number, finding = numbered
    return finding.ended_by, finding.subject if finding.ended_by else number


def _check_cells(findings: Sequence[CheckFinding]) -> tuple[str, str, str]:
    """Return codes, subject and detail of one line. Lines about this machine need no subject."""
    finding, check = findings[0], findings[0].check
    codes, title = check.code, check.title
    if len(findings) > 1:
        codes, title = f"{codes}-{findings[-1].check.code.removeprefix('LD')}", count_text(len(findings), "check")
    subject = "" if check.category is Category.MACHINE else visible(finding.subject)
    return codes, subject, f"{title}: {visible(finding.detail)}"


def _check_help(finding: CheckFinding) -> Iterator[Text]:
    if finding.fix and finding.result in (Result.WARNING, Result.FAILED, Result.UNKNOWN):
        yield Text(f"fix: {visible(finding.fix)}")
    if finding.result in (Result.WARNING, Result.FAILED):
        yield Text(f"see: {finding.check.address}", "dim")


def checks_verdict(report: DoctorReport) -> str:
    """Return the last line of a report of checks: how many had which result."""
    counts = report.counts
    words = [
        f"{counts[Result.FAILED]:,} failed" if counts[Result.FAILED] else "",
        count_text(counts[Result.WARNING], "warning") if counts[Result.WARNING] else "",
        f"{counts[Result.UNKNOWN]:,} not checked" if counts[Result.UNKNOWN] else "",
    ]
    not_ok = ", ".join(filter(None, words))
    return f"{counts[Result.OK]:,} ok, {not_ok}" if not_ok else f"{counts[Result.OK]:,} ok: no issues found"


def hazard_finding(hazard: PlanHazard, *, terminal: bool) -> ShownFinding:
    """Return a hazard with its details, of which a terminal shows the first ones."""
    style = SEVERITY_STYLES.get(hazard.severity, "dim")
    details = [Text(visible(detail)) for detail in hazard.details]
    shown = first_lines(details, MOST_DETAILS if terminal else None, lambda count: Text(f"and {count:,} more", "dim"))
    help_lines = Text(visible(f"fix: {hazard.fix}"), "dim"), Text(visible(hazard.page), "dim")
    line = Text.assemble((f"{hazard.code} {hazard.severity}", style), f"  {hazard.title}")
    return ShownFinding(line, [*shown, *help_lines])


def right_finding(right: MissingRight) -> ShownFinding:
    """Return a missing right, with the command that grants it."""
    command = [Text(visible(right.command), "cyan")] if right.command else []
    return ShownFinding(Text(visible(f"{right.cluster}: {right.lacks}")), command)


def trouble_finding(trouble: Trouble) -> ShownFinding:
    """Return a trouble of a flow, without its name in the reason."""
    kind, _, name = trouble.what.partition(" ")
    reason = visible(without_name(trouble.why, kind, name))
    return ShownFinding(Text.assemble((visible(trouble.what), "red"), f": {reason}"))


def print_refusals(sentences: Iterable[str]) -> None:
    """Print to standard error why a command does nothing."""
    findings = [ShownFinding(Text(f"refused: {visible(sentence)}")) for sentence in sentences]
    print_parts(finding_lines(findings), stderr=True)


def difference_finding(difference: FoundDifference) -> ShownFinding:
    """Return a difference, such as `orders-3  missing  source 1,234`."""
    offsets = (("source", difference.source_offset), ("target", difference.target_offset))
    text = ", ".join(f"{log} {offset:,}" for log, offset in offsets if offset >= 0)
    return _of_partition(difference.topic, difference.partition, f"{difference.kind}  {text}")


def beyond_finding(beyond: BeyondCopy) -> ShownFinding:
    """Return records beyond the copy, such as `orders-3  beyond the copy  2 records from target 1,234 on`."""
    offset = f" from target {beyond.target_offset:,} on" if beyond.target_offset >= 0 else ""
    text = f"beyond the copy  {count_text(beyond.records, 'record')}{offset}"
    return _of_partition(beyond.topic, beyond.partition, text)


def unverified_finding(stretch: UnverifiedStretch) -> ShownFinding:
    """Return what was not compared, as `orders-3  source 120 to 130: quarantined or skipped by a policy (11)`."""
    records = f"source {stretch.first:,} to {stretch.last:,}" if stretch.first >= 0 else "records of the target"
    reason = SHORT_REASONS.get(stretch.reason, stretch.reason)
    return _of_partition(stretch.topic, stretch.partition, f"{records}: {reason} ({stretch.records:,})")


def _of_partition(topic: str, partition: int, text: str) -> ShownFinding:
    return ShownFinding(Text(f"{visible(topic)}-{partition}  {text}"))


def explained_lines(kind: FindingKind) -> Iterator[str]:
    """Yield what a code means, and what to do, with the names of texts in a column."""
    texts = kind.texts
    yield f"{kind.code}  {texts['title']}"
    severity = f", {kind.severity}" if kind.severity else ""
    lines = {"kind": kind.FAMILY + severity, "means": texts["meaning"], "look": texts.get("look_at", "")}
    for name, text in {**lines, "fix": texts["fix"]}.items():
        if text:
            yield from textwrap.wrap(
                text,
                WIDTH,
                initial_indent=f"  {name + ':':7}",
                subsequent_indent=" " * 9,
                break_long_words=False,
                break_on_hyphens=False,
            )
    yield f"  {'see:':7}{kind.address}"
