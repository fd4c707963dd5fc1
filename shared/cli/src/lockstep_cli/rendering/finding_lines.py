"""The lines of findings, and of the meaning of a code, for a terminal or a file. Nothing is printed."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from lockstep_ops.doctor.checks.check import Category, CheckFinding, Result
from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport
from lockstep_ops.findings.finding_kind import FindingKind
from lockstep_ops.formatting import count_text, visible

STYLES = {
    Result.OK: "green",
    Result.WARNING: "yellow",
    Result.FAILED: "red",
    Result.UNKNOWN: "magenta",
    Result.SKIPPED: "dim",
}

WIDTH = 100
"""The columns of a terminal that `lockstep explain` fills."""

SHOWN_FIX = (Result.WARNING, Result.FAILED, Result.UNKNOWN)


def _lines(finding: CheckFinding) -> Iterator[str]:
    """Yield the lines below a finding."""
    if finding.fix and finding.result in SHOWN_FIX:
        yield f"fix: {visible(finding.fix)}"
    if finding.result in (Result.WARNING, Result.FAILED):
        yield f"see: {finding.check.address}"


def _gathered(findings: Iterable[CheckFinding]) -> Iterator[Sequence[CheckFinding]]:
    """Yield findings one by one. Those that one failure ended for one subject come together."""
    for (ended_by, _), some in groupby(findings, key=lambda one: (one.ended_by, one.ended_by and one.subject)):
        if ended_by:
            yield list(some)
        else:
            yield from ([one] for one in some)


def _text(findings: Sequence[CheckFinding]) -> tuple[str, str, str]:
    """Return codes, subject and detail of one line. Lines about this machine need no subject."""
    first, last = findings[0], findings[-1]
    codes = first.check.code if len(findings) == 1 else f"{first.check.code}-{last.check.code.removeprefix('LD')}"
    title = f"{first.check.title}: " if len(findings) == 1 else f"{count_text(len(findings), 'check')}: "
    subject = "" if first.check.category is Category.MACHINE else visible(first.subject)
    return codes, subject, f"{title}{visible(first.detail)}"


def plain_lines(category: CategoryFindings) -> Iterator[str]:
    """Yield the lines of a category for a file or another program.

    Nothing is wrapped, and no column depends on another line.
    """
    yield category.category.heading
    for some in _gathered(category.findings):
        codes, subject, text = _text(some)
        yield f"{some[0].result.mark} {codes} {subject}{': ' if subject else ''}{text}"
        yield from (f"    {line}" for line in _lines(some[0]))
    yield ""


def styled_lines(category: CategoryFindings) -> Iterator[Text]:
    """Yield the lines of a category for a terminal, in columns and colours.

    The terminal itself wraps them, so that a command can be copied.
    """
    yield Text(category.category.heading, "bold")
    every = [(some, *_text(some)) for some in _gathered(category.findings)]
    widths = [max((len(row[at]) for row in every), default=0) for at in (1, 2)]
    for some, codes, subject, text in every:
        result = some[0].result
        style = STYLES[result]
        columns = f"{subject:{widths[1]}} " if widths[1] else ""
        yield Text.assemble(
            (f"{result.mark} ", style),
            (f"{codes:{widths[0]}} ", "dim"),
            columns,
            (text, "" if result is Result.OK else style),
        )
        for line in _lines(some[0]):
            yield Text(f"    {line}", "dim" if line.startswith("see:") else "")
    yield Text("")


def verdict(report: DoctorReport) -> str:
    """Return the last line of the report."""
    counts = report.counts
    words = [
        f"{counts[Result.FAILED]:,} failed" if counts[Result.FAILED] else "",
        count_text(counts[Result.WARNING], "warning") if counts[Result.WARNING] else "",
        f"{counts[Result.UNKNOWN]:,} not checked" if counts[Result.UNKNOWN] else "",
    ]
    found = ", ".join(filter(None, words))
    return f"{counts[Result.OK]:,} ok, {found}" if found else f"{counts[Result.OK]:,} ok: no issues found"


def explained_lines(kind: FindingKind) -> Iterator[str]:
    """Return what a code means, and what to do, with the names of texts in a column."""
    yield f"{kind.code}  {kind.with_paths(kind.title)}"
    grave = f", {kind.severity}" if kind.severity else ""
    texts = (("kind", kind.FAMILY + grave), ("means", kind.meaning), ("fix", kind.fix))
    for name, text in texts:
        if text:
            yield from textwrap.wrap(
                kind.with_paths(text),
                WIDTH,
                initial_indent=f"  {name + ':':7}",
                subsequent_indent=" " * 9,
                break_long_words=False,
                break_on_hyphens=False,
            )
    yield f"  {'see:':7}{kind.address}"


def explained_as_json(kind: FindingKind) -> dict[str, Any]:
    """Return the entry of a code for programs."""
    return {
        "code": kind.code,
        "kind": kind.FAMILY,
        "severity": kind.severity,
        "title": kind.with_paths(kind.title),
        "meaning": kind.with_paths(kind.meaning),
        "fix": kind.with_paths(kind.fix),
        "page": kind.address,
    }
