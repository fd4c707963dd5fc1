"""Every finding has a code of its own, fit texts and a section."""

import re

import pytest

from lockstep_ops.findings.alerts import ALERTS
from lockstep_ops.findings.catalogue import CATALOGUES, FINDINGS
from lockstep_ops.findings.finding_kind import FindingKind, plain
from tests.support.watched import alerts
from tests.unit.house.test_docs_index import anchors
from tools.docs.pages import REPOSITORY


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda kinds: type(kinds[0]).__name__)
def test_codes_of_a_catalogue_are_unique(catalogue: tuple[FindingKind, ...]) -> None:
    codes = [kind.code for kind in catalogue]
    assert len(codes) == len(set(codes))
    assert len({kind.FAMILY for kind in catalogue}) == 1


def test_findings_have_texts_that_fit() -> None:
    for kind in FINDINGS:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", kind.code), kind.code
        assert kind.title, kind.code
        assert kind.severity in ("", "error", "warning", "note", "critical"), kind.code
        for text in (plain(kind.title), plain(kind.meaning), kind.plain_fix):
            assert text == text.strip(), kind.code
            assert not re.search(r"`|\]\(", text), kind.code


def test_findings_lead_to_sections_that_exist() -> None:
    sections = {place for kind in FINDINGS for place in (kind.page, *kind.links())}
    for section in sections:
        page, _, anchor = section.partition("#")
        assert (REPOSITORY / page).is_file(), section
        assert not anchor or anchor in anchors(REPOSITORY / page), section


def test_alerts_are_those_of_the_rules() -> None:
    assert [(kind.code, kind.severity) for kind in ALERTS] == [(alert.name, alert.severity) for alert in alerts()]
    assert [kind.address for kind in ALERTS] == [alert.annotations["runbook_url"] for alert in alerts()]
