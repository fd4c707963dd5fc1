"""Every finding has a code of its own, fit texts and a section."""

import ast
import re

import pytest

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import DoctorCheck
from lockstep_ops.findings.alerts import ALERTS
from lockstep_ops.findings.catalogue import CATALOGUES, FINDINGS
from lockstep_ops.findings.finding_kind import FindingKind, markdown_to_text
from lockstep_ops.findings.halt_cases import HALT_CASES, REFUSED, TRANSFORM
from lockstep_rules.offsets.gap_policy import GapCase
from tests.support.source_modules import source_modules
from tests.support.watched import alerts
from tests.unit.house.test_docs_index import anchors
from tools.docs.pages import REPOSITORY


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda kinds: type(kinds[0]).__name__)
def test_codes_of_a_catalogue_are_unique(catalogue: tuple[FindingKind, ...]) -> None:
    codes = [kind.code for kind in catalogue]
    assert len(codes) == len(set(codes))
    assert len({kind.FAMILY for kind in catalogue}) == 1


def test_every_check_of_doctor_is_listed_and_yielded() -> None:
    checks = {name: check for name, check in vars(registry).items() if isinstance(check, DoctorCheck)}
    assert set(checks.values()) == set(registry.CHECKS)
    judging = [
        tree
        for module, tree in source_modules()
        if module.startswith("lockstep_ops.doctor.") and module != registry.__name__
    ]
    names = {node.id for tree in judging for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for tree in judging for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert checks.keys() <= names, "no module yields a finding of it"


def test_findings_have_texts_that_fit() -> None:
    for kind in FINDINGS:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", kind.code), kind.code
        assert kind.title, kind.code
        assert kind.severity in ("", "error", "warning", "note", "critical"), kind.code
        for text in (markdown_to_text(kind.title), markdown_to_text(kind.meaning), kind.plain_fix):
            assert text == text.strip(), kind.code
            assert not re.search(r"`|\]\(", text), kind.code


def test_findings_lead_to_sections_that_exist() -> None:
    sections = {place for kind in FINDINGS for place in (kind.page, *kind.links())}
    for section in sections:
        page, _, anchor = section.partition("#")
        assert (REPOSITORY / page).is_file(), section
        assert not anchor or anchor in anchors(REPOSITORY / page), section


def test_every_gap_that_halts_a_partition_is_a_case() -> None:
    assert [case.code for case in HALT_CASES] == [*(case.value for case in GapCase), REFUSED, TRANSFORM]


def test_alerts_are_those_of_the_rules() -> None:
    assert [(kind.code, kind.severity) for kind in ALERTS] == [(alert.name, alert.severity) for alert in alerts()]
    assert [kind.address for kind in ALERTS] == [alert.annotations["runbook_url"] for alert in alerts()]
