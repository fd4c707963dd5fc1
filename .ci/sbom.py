"""`make sbom`: a software bill of materials of the locked packages, CycloneDX 1.6 as JSON.

Each package of `requirements.lock` with its version, its licence (as its own metadata tells, where it is installed) and
the SHA-256 of every file that the lock admits. What only the tools need has the scope `excluded`. The same lock and the
same environment give the same bytes: there is no time in it, and its serial number follows from the lock.
"""

import argparse
import re
import sys
import tomllib
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from lock_part import part_of
from packageurl import PackageURL
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"
MEMBERS = ("services/*/pyproject.toml", "shared/*/pyproject.toml")
NAMESPACE = uuid.UUID("6f1a1f4e-4f0b-5c55-9a54-0d7f6a4d8f10")

PYTHONS = tuple({"python_version": each, "python_full_version": f"{each}.0"} for each in ("3.11", "3.12", "3.13"))
"""Those that Lockstep runs on, as markers of requirements have them."""

_ENTRY = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Locked:
    """A package as the lock has it."""

    name: str
    version: str
    sha256: tuple[str, ...]


def locked(text: str) -> list[Locked]:
    """Every package of a lock, in its order."""
    found: list[Locked] = []
    for entry in re.split(r"\n(?=\S)", text):
        if named := _ENTRY.match(entry):
            found.append(Locked(named[1], named[2], tuple(_HASH.findall(entry))))
    return found


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licences(found: Distribution | None) -> Iterator[str]:
    """As the package tells them: an SPDX expression, else its classifiers, else its words."""
    if found is None:
        return
    metadata: Any = found.metadata
    if expression := metadata.get("License-Expression"):
        yield expression
        return
    classified = [c.rpartition("::")[2].strip() for c in metadata.get_all("Classifier", []) if c.startswith("License")]
    classified = [one for one in classified if one != "OSI Approved"]
    words = (metadata.get("License") or "").strip().splitlines()
    yield from classified or [line for line in words[:1] if line and len(words) < 3]


def needed_to_run(members: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names of what Lockstep's own packages need, their extras included (whoever sets lockstep.tracing finds what it
    takes), and what that needs in its turn, here."""
    own = {_name(member["project"]["name"]) for member in members}
    asked = [one for member in members for one in member["project"]["dependencies"]]
    for member in members:
        asked += chain(*member["project"].get("optional-dependencies", {}).values())
    return needed_by(asked) - own


def needed_by(requirements: Iterable[str]) -> set[str]:
    """Return the names of the packages asked for, and of what those that are installed need in their turn.

    What one of the Pythons needs that Lockstep runs on is among them, whichever runs this.
    """
    waiting = [Requirement(one) for one in requirements]
    found: set[str] = set()
    while waiting:
        one = waiting.pop()
        name = _name(one.name)
        if name in found:
            continue
        found.add(name)
        there = installed(name)
        for asked in (there.requires or []) if there else []:
            further = Requirement(asked)
            if further.marker is None or any(
                further.marker.evaluate({**python, "extra": extra})
                for python in PYTHONS
                for extra in one.extras or {""}
            ):
                waiting.append(further)
    return found


def bill(text: str, runs: Collection[str], version: str, name: str = "lockstep") -> str:
    """The document, for the lock `text`, of `name`, which needs the packages `runs` of it."""
    factory = LicenseFactory()
    bom = Bom(serial_number=uuid.uuid5(NAMESPACE, text))
    whole = bom.metadata.component = Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=name,
        licenses=[factory.make_from_string("Apache-2.0")],
    )
    run_by: list[Component] = []
    for one in locked(text):
        url = PackageURL("pypi", None, one.name, one.version)
        files = ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(f"https://pypi.org/simple/{one.name}/"),
            comment="each of the files that the lock admits",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=content) for content in one.sha256],
        )
        component = Component(
            name=one.name,
            version=one.version,
            type=ComponentType.LIBRARY,
            bom_ref=str(url),
            purl=url,
            scope=ComponentScope.REQUIRED if one.name in runs else ComponentScope.EXCLUDED,
            licenses=[factory.make_from_string(license_name) for license_name in licences(installed(one.name))],
            external_references=[files],
        )
        bom.components.add(component)
        if one.name in runs:
            run_by.append(component)
    bom.register_dependency(whole, run_by)
    bom.metadata.timestamp = None  # type: ignore[assignment]  # left out: the same lock gives the same bytes
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def member_projects() -> list[Mapping[str, Any]]:
    """What the pyproject.toml of each member says."""
    return [tomllib.loads(found.read_text()) for pattern in MEMBERS for found in sorted(REPOSITORY.glob(pattern))]


def version() -> str:
    """Lockstep's own."""
    project: Mapping[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where to write it; - for standard output")
    parser.add_argument("--image", metavar="NAME", help="of an image, of the packages in PART alone")
    parser.add_argument("--version", help="of Lockstep (default: what pyproject.toml has)")
    parser.add_argument("--lock", type=Path, default=LOCK)
    parser.add_argument("--part", type=Path, action="append", default=[], help="a file with names of packages")
    given = parser.parse_args()
    file, lock = given.file, given.lock.read_text()
    if given.image:
        names = {name for part in given.part for name in part.read_text().split()}
        text = bill(part_of(lock, names), names, given.version or version(), f"lockstep-{given.image}")
    else:
        text = bill(lock, needed_to_run(member_projects()), given.version or version())
    if str(file) == "-":
        sys.stdout.write(text)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


if __name__ == "__main__":
    main()
