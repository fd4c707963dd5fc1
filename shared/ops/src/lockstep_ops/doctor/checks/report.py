"""All that `lockstep doctor` or `lockstep probe` found, by category, and the exit code that follows. Pure."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lockstep_ops.doctor.checks.check import Category, CheckFinding, Result
from lockstep_ops.exit_codes import Exit


@dataclass(frozen=True, slots=True)
class CategoryFindings:
    """A category, and its findings in their order."""

    category: Category
    findings: tuple[CheckFinding, ...]


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The categories that were examined, in their order."""

    categories: tuple[CategoryFindings, ...]

    def findings(self) -> Iterator[CheckFinding]:
        for category in self.categories:
            yield from category.findings

    @property
    def counts(self) -> Counter[Result]:
        return Counter(finding.result for finding in self.findings())

    @property
    def exit_code(self) -> Exit:
        """Return the exit code of the report.

        A failure counts more than a check that could not be made. Warnings do not count.
        """
        counts = self.counts
        if counts[Result.FAILED]:
            return Exit.TROUBLE
        return Exit.NOT_VERIFIED if counts[Result.UNKNOWN] else Exit.FINE

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "success": self.exit_code == Exit.FINE,
            "categories": [
                {"name": category.category.value, "checks": [finding.as_json() for finding in category.findings]}
                for category in self.categories
            ],
        }


@dataclass(frozen=True, slots=True)
class ProbeReport(DoctorReport):
    """The report of `lockstep probe`, which has exit codes of its own."""

    @property
    def exit_code(self) -> Exit:
        """Return the gravest code of the findings: a cluster that does not answer counts more than a failure."""
        return max((finding.probe_exit for finding in self.findings()), default=Exit.FINE)
