"""The bill of materials covers the lock, and an audit is never clean by mistake."""

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import pytest

from tests.support.source_modules import REPOSITORY
from tests.unit.house.ci_scripts import script

LOCK = (REPOSITORY / "requirements.lock").read_text()


AUDIT = script("audit")


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def bill() -> str:
    command = [sys.executable, str(REPOSITORY / ".ci" / "sbom.py"), "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_bill_has_every_locked_package_with_its_hashes_and_is_stable() -> None:
    text = bill()
    assert text == bill()
    document = json.loads(text)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert "timestamp" not in document["metadata"]
    pinned = dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)", LOCK, re.MULTILINE))
    components = {component["name"]: component for component in document["components"]}
    assert {name: component["version"] for name, component in components.items()} == pinned
    hashes = [h["content"] for component in components.values() for h in component["externalReferences"][0]["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", LOCK))
    untold = [name for name, component in components.items() if not component.get("licenses")]
    assert [name for name in untold if is_installed(name)] == []
    assert {components[name]["scope"] for name in ("aiokafka", "pyspark", "aiohttp")} == {"required"}
    assert {components[name]["scope"] for name in ("pytest", "ruff", "pip-audit")} == {"excluded"}
    (whole,) = (dependency for dependency in document["dependencies"] if dependency["ref"] == "lockstep")
    assert len(whole["dependsOn"]) == sum(component["scope"] == "required" for component in components.values())


def answer(*dependencies: dict[str, Any]) -> dict[str, Any]:
    return {"dependencies": list(dependencies), "fixes": []}


WELL = {"name": "click", "version": "8.0", "vulns": []}
SKIPPED = {"name": "click", "skip_reason": "Dependency not found on PyPI and could not be audited"}
BAD = {"name": "click", "version": "8.0", "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["8.1"]}]}
PROBED = answer({"name": "idna", "version": "3.6", "vulns": [{"id": "PYSEC-2", "fix_versions": ["3.7"]}]})
UNPROBED = answer({"name": "idna", "version": "3.6", "vulns": []})


@pytest.mark.parametrize(
    ("lock", "probe", "locked", "code", "words"),
    [
        (answer(WELL), PROBED, ["click"], 0, "nothing is known against any of 1 packages"),
        (answer(BAD), PROBED, ["click"], 1, "click 8.0: PYSEC-1 (CVE-1), mended in 8.1"),
        (answer(BAD), None, ["click"], 2, "gave no answer"),
        (answer(BAD), UNPROBED, ["click"], 1, "PYSEC-1"),
        (None, PROBED, ["click"], 2, "gave no answer"),
        (answer(WELL), UNPROBED, ["click"], 2, "the index here knows of nothing against idna==3.6"),
        (answer(WELL), answer(SKIPPED), ["click"], 2, "knows of nothing"),
        (answer(SKIPPED), PROBED, ["click"], 2, "not audited: click"),
        (answer(WELL), PROBED, ["click", "rich"], 2, "not audited: rich"),
        (answer(), PROBED, ["click"], 2, "not audited: click"),
    ],
)
def test_audit_is_clean_only_with_advisories_for_every_package(
    lock: Any, probe: Any, locked: list[str], code: int, words: str
) -> None:
    verdict = AUDIT.judge(lock, probe, locked)
    assert verdict.code == code
    assert words in "\n".join(verdict.lines)


def test_audit_needs_every_locked_package() -> None:
    assert len(AUDIT.names_in(LOCK)) == len(re.findall(r"^[a-z0-9][a-z0-9._-]*==", LOCK, re.MULTILINE))
