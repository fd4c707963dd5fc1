"""Which packages of `requirements.lock` an installation or an image needs.

A release has a requirements file for each choice of what is installed, with Lockstep's own archives in it: one version
of each package, with all its hashes. The images have lists of names in deploy/images/packages, so that `docker build`
needs nothing from its host. `python .ci/requirements.py` writes those lists (`make docs` does).
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import sbom
from lock import LEFT_OUT
from lock_part import part_of

REPOSITORY = Path(__file__).resolve().parents[1]
OF_IMAGES = REPOSITORY / "deploy" / "images" / "packages"

Projects = Mapping[str, Mapping[str, Any]]
"""The [project] table of each distribution, by its name."""

CHOICES: Mapping[str, tuple[str, ...] | None] = {
    "all": ("client", "console", "control", "data-plane"),
    "control": ("console", "control"),
    "command": ("console",),
    "client": None,
}
"""What a release offers: extras of the distribution that pins the others. None: the client library alone."""

CONTROL = ("topic-sync", "heartbeat", "checkpoint", "acl-sync")
"""Images that need the same packages."""
IMAGES = (*CONTROL, "console", "cli", "data-plane")
PARTS = ("build", "bill", "control", "ops", "data-plane", "pyspark")
"""What an image is put together from, and what builds it."""
BUILDERS = ("setuptools", "hatchling")
COMMON = ("state", "rules", "config", "kafka", "runtime")
"""Members that all of them have."""
WITH_OPS = ("console", "cli")
"""Images that have `ops` too."""


def members() -> dict[str, Mapping[str, Any]]:
    """Return what each member's pyproject.toml says, by the name of its folder."""
    found = (file for pattern in sbom.MEMBERS for file in sorted(REPOSITORY.glob(pattern)))
    return {file.parent.name: tomllib.loads(file.read_text()) for file in found}


def projects() -> Projects:
    """Return the [project] table of each distribution: of the root too, which pins the others."""
    files = [REPOSITORY / "pyproject.toml", *(file for each in sbom.MEMBERS for file in REPOSITORY.glob(each))]
    tables = (tomllib.loads(file.read_text())["project"] for file in files)
    return {str(table["name"]): table for table in tables}


# -- installations -----------------------------------------------------------------------------------------------------


def distributions(choice: str, root: str, every: Projects) -> set[str]:
    """Return the names of our own distributions that a choice installs. `root`: the one that pins the others."""
    extras = CHOICES[choice]
    if extras is None:
        return _with_own_needs([f"{root}-client"], every)
    asked = [
        *every[root]["dependencies"],
        *(one for extra in extras for one in every[root]["optional-dependencies"][extra]),
    ]
    return {root} | _with_own_needs(asked, every)


def _with_own_needs(requirements: Iterable[str], every: Projects) -> set[str]:
    waiting, found = [_name(one) for one in requirements], set[str]()
    while waiting:
        name = waiting.pop()
        if name in every and name not in found:
            found.add(name)
            waiting += (_name(one) for one in every[name].get("dependencies", ()))
    return found


def installation(choice: str, root: str, every: Projects, lock: str, archives: Mapping[str, Collection[str]]) -> str:
    """Return a requirements file of a choice and nothing else, for pip and uv with `--require-hashes --no-deps`.

    Args:
        choice: One of CHOICES.
        root: The distribution that pins the others.
        every: All distributions.
        lock: The text of requirements.lock.
        archives: SHA-256 of the wheel and of the source of each of our distributions, by its name.
    """
    own = distributions(choice, root, every)
    others = sbom.needed_to_run([{"project": every[name]} for name in own if name != root])
    others -= every.keys() | set(LEFT_OUT)
    pins = (f"{name}=={every[name]['version']}" for name in sorted(own))
    ours = (
        " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in sorted(archives[name]))])
        for pin, name in zip(pins, sorted(own), strict=True)
    )
    return "".join(f"{entry}\n" for entry in ours) + part_of(lock, others)


def builders(lock: str) -> str:
    """Return a requirements file of what builds a source archive: Spark's, and the data plane's for other machines."""
    return part_of(lock, sbom.needed_by(BUILDERS))


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


# -- images ------------------------------------------------------------------------------------------------------------


def needed(image: str, known: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the names of the packages that an image needs. `known`: the members."""
    own = ("ops", image) if image in WITH_OPS else (image,)
    return sbom.needed_to_run([known[name] for name in (*COMMON, *own)]) - set(LEFT_OUT)


def of_images() -> dict[str, set[str]]:
    """Return the names of the packages of each part of the images. Parts share what several images need."""
    known = members()
    control = needed(CONTROL[0], known)
    data_plane = needed("data-plane", known) - control
    return {
        "build": sbom.needed_by(BUILDERS),
        "bill": sbom.needed_by(["cyclonedx-python-lib", "packaging"]),
        "control": control,
        "ops": {name for image in WITH_OPS for name in needed(image, known)} - control,
        "data-plane": data_plane - {"pyspark"},
        "pyspark": data_plane & {"pyspark"},  # there are only its sources, which something has to build
    }


def texts_of_images() -> dict[Path, str]:
    """Return the lists of names, each with its file."""
    parts = of_images()
    return {OF_IMAGES / f"{part}.txt": "".join(f"{name}\n" for name in sorted(parts[part])) for part in PARTS}


def main() -> None:
    OF_IMAGES.mkdir(parents=True, exist_ok=True)
    for file, text in texts_of_images().items():
        file.write_text(text)


if __name__ == "__main__":
    main()
