"""Every locked package may be used and passed on without terms for the whole: none is under GPL, LGPL or AGPL."""

import re

import pytest

from tests.support.source_modules import REPOSITORY
from tests.unit.house.ci_scripts import script

SBOM = script("sbom")
LOCKED = SBOM.locked((REPOSITORY / "requirements.lock").read_text())
COPYLEFT = re.compile(r"\b(A|L)?GPL|\bGNU\b|General Public", re.IGNORECASE)
ELSEWHERE = {
    # What is not installed on this system, with its licence as its project tells it.
    "colorama": ["BSD-3-Clause"]
}


def licences_of(name: str) -> list[str]:
    package = SBOM.installed(name)
    return ELSEWHERE.get(name, []) if package is None else list(SBOM.licences(package))


@pytest.mark.parametrize("name", [package.name for package in LOCKED])
def test_locked_package_has_a_licence_without_copyleft(name: str) -> None:
    licences = licences_of(name)
    assert licences, f"{name} does not tell its licence: find it, and add it to ELSEWHERE if it is not installed here"
    assert not [each for each in licences if COPYLEFT.search(each)], f"{name}: {licences}"


def test_lock_has_packages_that_are_looked_at() -> None:
    assert len(LOCKED) > 40


@pytest.mark.parametrize(
    "licence",
    [
        "LGPL-2.1-or-later",
        "GNU Lesser General Public License v2 or later (LGPLv2+)",
        "GPL-3.0-only",
        "AGPL-3.0",
        "GNU Affero General Public License v3",
        "GPLv2",
    ],
)
def test_copyleft_is_recognised(licence: str) -> None:
    assert COPYLEFT.search(licence)
