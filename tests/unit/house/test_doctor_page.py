"""`doctor.md` is what the registry of checks makes of it."""

import re

from lockstep_ops.doctor.checks.check import PAGE as ADDRESS
from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.registry import CHECKS
from tools.docs.doctor import PAGE, filled


def test_doctor_page_matches_the_registry() -> None:
    page = PAGE.read_text()
    assert filled(page) == page, "docs/reference/doctor.md is stale: python -m tools.docs.doctor"


def test_doctor_page_has_an_anchor_for_each_check() -> None:
    anchors = re.findall(r'<a id="(ld\d+)">', PAGE.read_text())
    assert anchors == [check.page.removeprefix(f"{ADDRESS}#") for check in CHECKS]


def test_doctor_page_has_a_table_for_each_category() -> None:
    assert re.findall(r"<!-- checks of (\w+) -->", PAGE.read_text()) == [one.value for one in Category]
