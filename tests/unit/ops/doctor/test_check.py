"""A category ends at its first fatal finding, and the exit code follows from all findings."""

import pytest

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import Category, CheckFinding, Result, until_fatal
from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport, ProbeReport
from lockstep_ops.exit_codes import Exit
from lockstep_state import project_address

TLS = registry.checks_in(Category.TLS)


def report(*findings: CheckFinding) -> DoctorReport:
    return DoctorReport((CategoryFindings(Category.TLS, findings),))


def test_findings_after_a_fatal_one_are_unknown() -> None:
    stores = registry.STORES.ok("A", "x")
    spoken = registry.TLS_SPOKEN.failed("A", "no", is_fatal=True)
    findings = list(until_fatal("A", TLS, iter([stores, spoken, registry.CHAIN.ok("A", "never")])))
    assert findings[:2] == [stores, spoken]
    assert [finding.check for finding in findings[2:]] == list(TLS[2:])
    assert {finding.result for finding in findings[2:]} == {Result.UNKNOWN}
    assert {finding.ended_by for finding in findings[2:]} == {"LD402"}
    assert findings[2].detail == "not checked, because LD402 (TLS handshake) failed for A"


def test_failure_that_is_not_fatal_ends_nothing() -> None:
    judged = [registry.TLS_SPOKEN.failed("A", "no"), registry.CHAIN.ok("A", "yes")]
    assert list(until_fatal("A", TLS, iter(judged))) == judged


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([Result.OK, Result.WARNING, Result.SKIPPED], 0),
        ([Result.OK, Result.UNKNOWN], 4),
        ([Result.UNKNOWN, Result.FAILED], 1),
        ([], 0),
    ],
)
def test_exit_code_is_that_of_the_gravest_result(results: list[Result], code: int) -> None:
    findings = [CheckFinding(registry.CHAIN, "A", result, "x") for result in results]
    assert report(*findings).exit_code == code
    assert report(*findings).as_json()["success"] is (code == 0)


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ((registry.CHAIN.warning("A", "x"), registry.CLOCK.unknown("A", "x")), 0),
        ((registry.RIGHTS.failed("A->B", "x"), registry.CLOCK.unknown("A", "x")), 1),
        ((registry.RIGHTS.unknown("A->B", "x", probe_exit=Exit.TROUBLE),), 1),
        ((registry.PORTS.failed("A", "x", is_fatal=True), registry.RIGHTS.failed("A->B", "x")), 3),
        ((registry.RIGHTS.unknown("A->B", "x", probe_exit=Exit.NO_ANSWER),), 3),
        ((), 0),
    ],
)
def test_probe_exits_with_the_gravest_code_of_its_findings(findings: tuple[CheckFinding, ...], code: int) -> None:
    probed = ProbeReport((CategoryFindings(Category.TLS, findings),))
    assert probed.exit_code == code
    assert probed.as_json()["success"] is (code == 0)


def test_json_has_each_finding_with_its_page() -> None:
    body = report(registry.CHAIN.failed("A", "no")).as_json()
    assert body == {
        "success": False,
        "categories": [
            {
                "name": "tls",
                "checks": [
                    {
                        "code": "LD404",
                        "title": "chain",
                        "subject": "A",
                        "result": "failed",
                        "detail": "no",
                        "fix": "Put the authority that signed it into ssl.truststore.location.",
                        "page": project_address.page("docs/reference/doctor.md#ld404"),
                    }
                ],
            }
        ],
    }


def test_fix_of_a_line_has_no_markdown() -> None:
    finding = registry.MEMORY.warning("this machine", "little")
    assert finding.fix == "Give the machine or the container more memory, or lower tasks.max (size and tune)."


def test_codes_are_unique_and_begin_with_their_category() -> None:
    codes = [check.code for check in registry.CHECKS]
    assert sorted(set(codes)) == codes
    hundreds = [category for category in Category if category is not Category.CAPABILITIES]  # LD65x, behind the cluster
    digits: dict[Category, int] = {category: number for number, category in enumerate(hundreds, start=1)}
    digits[Category.CAPABILITIES] = digits[Category.CLUSTER]
    assert all(int(check.code[2]) == digits[check.category] for check in registry.CHECKS)
