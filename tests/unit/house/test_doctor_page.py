"""`doctor.md` has what the program links to."""

import re

from lockstep_ops.doctor.checks.check import PAGE as ADDRESS
from lockstep_ops.doctor.checks.registry import CHECKS
from tools.docs.doctor import PAGE


def test_doctor_page_has_an_anchor_for_each_check() -> None:
    anchors = re.findall(r'<a id="(ld\d+)">', PAGE.read_text())
    assert anchors == [check.page.removeprefix(f"{ADDRESS}#") for check in CHECKS]
