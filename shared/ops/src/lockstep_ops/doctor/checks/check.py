"""One check of `lockstep doctor`, and what it found. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_ops import marks
from lockstep_ops.findings.finding_kind import FindingKind


class Category(StrEnum):
    """The categories in their order; the value is the name for `--category`."""

    MACHINE = "machine"
    NAMES = "names"
    CONNECTION = "connection"
    TLS = "tls"
    LOGIN = "login"
    CLUSTER = "cluster"
    CAPABILITIES = "capabilities"
    RIGHTS = "rights"
    LIMITS = "limits"
    FLOW = "flow"

    @property
    def heading(self) -> str:
        """Above its lines."""
        return _HEADINGS[self]


_HEADINGS = {
    Category.MACHINE: "this machine",
    Category.NAMES: "name resolution",
    Category.CONNECTION: "connection",
    Category.TLS: "TLS",
    Category.LOGIN: "login",
    Category.CLUSTER: "cluster",
    Category.CAPABILITIES: "what the cluster can do",
    Category.RIGHTS: "rights",
    Category.LIMITS: "limits",
    Category.FLOW: "flow",
}


class Result(StrEnum):
    """`UNKNOWN` could not be checked, perhaps because an earlier check failed. `SKIPPED`: there is nothing to check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"

    @property
    def mark(self) -> str:
        """Of its line."""
        return _MARKS[self]


_MARKS = {
    Result.OK: marks.FINE,
    Result.WARNING: marks.WARNING,
    Result.FAILED: marks.FAILED,
    Result.UNKNOWN: marks.NOT_DONE,
    Result.SKIPPED: marks.NOT_DONE,
}


@dataclass(frozen=True, slots=True)
class DoctorCheck(FindingKind):
    """Describe what is checked. `meaning` says what a line of it means, `fix` what to do where it is not ok."""

    FAMILY = "check of lockstep doctor"
    PAGE = "docs/reference/doctor.md"

    category: Category = field(kw_only=True)

    def ok(self, subject: str, detail: str) -> "CheckFinding":
        return CheckFinding(self, subject, Result.OK, detail)

    def warning(self, subject: str, detail: str, fix: str = "") -> "CheckFinding":
        return CheckFinding(self, subject, Result.WARNING, detail, fix or self.plain_fix)

    def failed(self, subject: str, detail: str, fix: str = "", *, is_fatal: bool = False) -> "CheckFinding":
        """`is_fatal`: nothing that comes later can be checked for this subject."""
        return CheckFinding(self, subject, Result.FAILED, detail, fix or self.plain_fix, is_fatal)

    def unknown(self, subject: str, detail: str, fix: str = "") -> "CheckFinding":
        """It could not be checked, and `fix` says how it can be."""
        return CheckFinding(self, subject, Result.UNKNOWN, detail, fix)

    def skipped(self, subject: str, detail: str) -> "CheckFinding":
        """There is nothing to check, and `detail` says why."""
        return CheckFinding(self, subject, Result.SKIPPED, detail)

    def not_reached(self, subject: str, cause: "CheckFinding") -> "CheckFinding":
        """An earlier finding stopped the checks of this subject."""
        text = f"not checked, because {cause.check.code} ({cause.check.title}) failed for {cause.subject}"
        return CheckFinding(self, subject, Result.UNKNOWN, text, ended_by=cause.check.code)


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """What one check found about one subject: a cluster, a flow or this machine. `fix` is empty where nothing is to be
    done."""

    check: DoctorCheck
    subject: str
    result: Result
    detail: str
    fix: str = ""
    is_fatal: bool = False
    ended_by: str = ""
    """The code of an earlier check, whose failure ended the checks of this subject."""

    def as_json(self) -> dict[str, str]:
        """For programs."""
        return {
            "code": self.check.code,
            "title": self.check.title,
            "subject": self.subject,
            "result": self.result.value,
            "detail": self.detail,
            "fix": self.fix,
            "page": self.check.address,
        }


def until_fatal(
    subject: str, checks: Sequence[DoctorCheck], findings: Iterable[CheckFinding]
) -> Iterator[CheckFinding]:
    """The findings about one subject up to the first fatal one. Each of `checks` that comes later is then unknown."""
    for finding in findings:
        yield finding
        if finding.is_fatal:
            later = checks[checks.index(finding.check) + 1 :]
            yield from (check.not_reached(subject, finding) for check in later)
            return
