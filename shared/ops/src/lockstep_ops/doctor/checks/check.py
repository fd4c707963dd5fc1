"""A check of `lockstep doctor`, and its finding. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_ops import marks
from lockstep_ops.exit_codes import Exit
from lockstep_ops.findings.finding_kind import FindingKind

SHOWN = 3
"""The number of things of one kind that a finding names. For the others it says how many there are."""


class Category(StrEnum):
    """The categories in their order. The value is the name for `--category`."""

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
        """Return the heading above the lines of the category."""
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
    """The result of a check.

    A check is `UNKNOWN` if it could not be made, perhaps because an earlier one failed. It is `SKIPPED` if there is
    nothing to check.
    """

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"

    @property
    def mark(self) -> str:
        """Return the mark at the beginning of a line with this result."""
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
    """A check of `lockstep doctor`.

    `meaning` says what a line of it means, and `fix` what to do if it is not ok.
    """

    FAMILY = "check of lockstep doctor"
    PAGE = "docs/reference/doctor.md"

    category: Category = field(kw_only=True)

    def ok(self, subject: str, detail: str) -> "CheckFinding":
        return CheckFinding(self, subject, Result.OK, detail)

    def warning(self, subject: str, detail: str, fix: str = "") -> "CheckFinding":
        return CheckFinding(self, subject, Result.WARNING, detail, fix or self.plain_fix)

    def failed(
        self,
        subject: str,
        detail: str,
        fix: str = "",
        *,
        is_fatal: bool = False,
        probe_exit: Exit = Exit.TROUBLE,
    ) -> "CheckFinding":
        """Return the finding that the check failed.

        Args:
            subject: The cluster, flow or machine.
            detail: What is wrong.
            fix: What helps. "": the fix of the check itself.
            is_fatal: No later check of this subject can be made: the cluster cannot be used at all.
            probe_exit: The exit code of `lockstep probe`. If it is fatal, that is `NO_ANSWER`.
        """
        probe_exit = Exit.NO_ANSWER if is_fatal else probe_exit
        return CheckFinding(
            self, subject, Result.FAILED, detail, fix or self.plain_fix, is_fatal=is_fatal, probe_exit=probe_exit
        )

    def unknown(self, subject: str, detail: str, fix: str = "", *, probe_exit: Exit = Exit.FINE) -> "CheckFinding":
        """Return the finding that the check could not be made. `fix` says how it can be made."""
        return CheckFinding(self, subject, Result.UNKNOWN, detail, fix, probe_exit=probe_exit)

    def skipped(self, subject: str, detail: str) -> "CheckFinding":
        """Return the finding that there is nothing to check. `detail` says why."""
        return CheckFinding(self, subject, Result.SKIPPED, detail)

    def not_reached(self, subject: str, cause: "CheckFinding") -> "CheckFinding":
        """Return the finding that an earlier one, the cause, stopped the checks of this subject."""
        text = f"not checked, because {cause.check.code} ({cause.check.title}) failed for {cause.subject}"
        return CheckFinding(self, subject, Result.UNKNOWN, text, ended_by=cause.check.code)


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The outcome of one check for one subject: a cluster, a flow or this machine.

    `fix` is empty if there is nothing to do.
    """

    check: DoctorCheck
    subject: str
    result: Result
    detail: str
    fix: str = ""
    is_fatal: bool = False
    ended_by: str = ""
    """The code of an earlier check, whose failure ended the checks of this subject."""
    probe_exit: Exit = Exit.FINE
    """The exit code of `lockstep probe` if nothing graver is found."""

    def as_json(self) -> dict[str, str]:
        """Return the finding as JSON values."""
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
    """Yield the findings about one subject up to the first fatal one.

    After a fatal one, each later check of `checks` is unknown.
    """
    for finding in findings:
        yield finding
        if finding.is_fatal:
            later = checks[checks.index(finding.check) + 1 :]
            yield from (check.not_reached(subject, finding) for check in later)
            return
