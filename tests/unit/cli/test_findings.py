"""The lines of the report."""

from lockstep_cli.rendering.findings import category_lines, checks_verdict
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import Category, CheckFinding
from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport
from tests.support.printed import printed

FAILED = registry.PORTS.failed("B", "b:9092: 10.0.3.7: connection refused", is_fatal=True)


def lines(*findings: CheckFinding, terminal: bool = False) -> list[str]:
    parts = category_lines(CategoryFindings(Category.CONNECTION, findings), terminal=terminal)
    return printed(parts, terminal=False).splitlines()


def test_failed_line_has_its_fix_and_its_page() -> None:
    assert lines(FAILED) == [
        "connection",
        "✗ LD301 B: port of each address: b:9092: 10.0.3.7: connection refused",
        "    fix: Check the port, the firewall, and that a broker listens there.",
        f"    see: {registry.PORTS.address}",
        "",
    ]


def test_good_line_is_one_line() -> None:
    assert lines(registry.PORTS.ok("A", "x"))[1:] == ["✓ LD301 A: port of each address: x", ""]


def test_line_about_this_machine_has_no_subject() -> None:
    assert lines(registry.SPARK.ok("this machine", "4.1.0"))[1] == "✓ LD103 Spark: 4.1.0"


def test_what_one_failure_ended_is_one_line_for_each_subject() -> None:
    checks = registry.checks_in(Category.LIMITS)
    findings = [check.not_reached(flow, FAILED) for flow in ("A->B", "B->A") for check in checks]
    codes, reason = f"LD801-{checks[-1].code[2:]}", "not checked, because LD301 (port of each address) failed for B"
    assert lines(*findings)[1:3] == [f"- {codes} {flow}: {len(checks)} checks: {reason}" for flow in ("A->B", "B->A")]


def test_control_characters_of_a_cluster_are_shown_as_text() -> None:
    assert "a\\x1b[31m" in lines(registry.PORTS.ok("A", "a\x1b[31m"))[1]


def test_lines_for_a_terminal_are_in_columns() -> None:
    assert lines(registry.PORTS.ok("A->B", "x"), FAILED, terminal=True) == [
        "connection",
        "✓ LD301 A->B port of each address: x",
        "✗ LD301 B    port of each address: b:9092: 10.0.3.7: connection refused",
        "    fix: Check the port, the firewall, and that a broker listens there.",
        f"    see: {registry.PORTS.address}",
        "",
    ]


def test_last_line_counts_what_is_not_ok() -> None:
    ok, warning = registry.PORTS.ok("A", "x"), registry.PORTS.warning("A", "x")
    everything = (ok, warning, FAILED, registry.PORTS.unknown("A", "x"), registry.PORTS.skipped("A", "x"))
    assert checks_verdict(DoctorReport((CategoryFindings(Category.CONNECTION, everything),))) == (
        "1 ok, 1 failed, 1 warning, 1 not checked"
    )
    assert checks_verdict(DoctorReport((CategoryFindings(Category.CONNECTION, (ok,)),))) == "1 ok: no issues found"
