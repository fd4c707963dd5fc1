"""`make images`: the container image of each service and of the command, with docker, podman or buildah.

`deploy/images/Dockerfile` says what is in them, and `docker build` alone makes one of them from it. The bases are named
by their digests, and all images come from the same ones. With `--offline` the files of packages are fetched first, so
that the build itself needs no network, only base images that are there. With `--push` the images go to their registry.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import requirements
import sbom
from lock_part import part_of

from lockstep_state import project_address

REPOSITORY = Path(__file__).resolve().parents[1]
WHEELS = REPOSITORY / "deploy" / "images" / "wheels"
DOCKERFILE = REPOSITORY / "deploy" / "images" / "Dockerfile"

BUILDERS = ("docker", "podman", "buildah")
PYTHON, MACHINE = "3.11", "x86_64"
PLATFORMS = tuple(f"{libc}_{MACHINE}" for libc in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"))
"""What an offline build is for: the base images of the tests. Any other build asks pip, in the image."""


DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class Bases:
    """The images that ours are made from: the services' own, the data plane's, and the one that has venv and pip."""

    python: str | None = None
    java: str | None = None
    build: str | None = None

    def arguments(self, image: str) -> list[str]:
        """The build arguments for an image."""
        base = self.java if image == "data-plane" and self.java else self.python
        chosen = {"BASE": base, "BUILD_BASE": self.build or self.python}
        return [word for key, value in chosen.items() if value for word in ("--build-arg", f"{key}={value}")]


def default_base() -> str:
    """Return the Dockerfile's own base."""
    (base,) = re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE)
    return str(base)


def pinned(builder: str, base: str) -> str:
    """Return the base as NAME@sha256:..., by the digest that its tag has now. It is pulled for that.

    A base that no registry has, and one for a builder of another name, stays as it is, and a line says so. Raises
    CalledProcessError if it cannot be pulled.
    """
    if DIGEST.search(base):
        return base
    digests: list[str] = []
    if Path(builder).name in ("docker", "podman"):
        subprocess.run([builder, "pull", "--quiet", base], check=True, stdout=sys.stderr)
        digests = json.loads(_asked(builder, "image", "inspect", "--format", "{{json .RepoDigests}}", base)) or []
    elif Path(builder).name == "buildah":
        subprocess.run([builder, "pull", "--quiet", base], check=True, stdout=sys.stderr)
        digest = _asked(builder, "inspect", "--type", "image", "--format", "{{.FromImageDigest}}", base)
        digests = [f"{_without_tag(base)}@{digest}"] if digest else []
    found = next((each for each in digests if DIGEST.search(each)), None)
    sys.stdout.write(f"images: base {base} is {found}\n" if found else f"images: base {base} has no digest here\n")
    return found or base


def _asked(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _without_tag(name: str) -> str:
    path, slash, last = name.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


def all_pinned(builder: str, bases: Bases) -> Bases:
    """Return the bases by their digests: all images have the same ones, and the build can be repeated."""
    python = pinned(builder, bases.python or default_base())
    java = pinned(builder, bases.java) if bases.java else None
    return replace(bases, python=python, java=java, build=pinned(builder, bases.build) if bases.build else None)


def download() -> None:
    """Fetch into deploy/images/wheels what pip would ask for in the images, once for each lock."""
    lock = sbom.LOCK.read_text()
    parts = {part: part_of(lock, names) for part, names in requirements.of_images().items()}
    whole = hashlib.sha256("".join(parts.values()).encode()).hexdigest()
    stamp = WHEELS / ".of"
    if stamp.exists() and stamp.read_text() == whole:
        return
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    pip += ["--dest", str(WHEELS), "--find-links", str(WHEELS)]
    built = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", PYTHON]
    built += [word for platform in PLATFORMS for word in ("--platform", platform)]
    sources = ["--no-binary", ":all:", "--no-build-isolation"]
    for part, text in parts.items():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            subprocess.run([*pip, *(sources if part == "pyspark" else built), "--requirement", file.name], check=True)
    stamp.write_text(whole)


def works(builder: str) -> bool:
    """Whether the command is there and has what it needs (docker: its daemon)."""
    ask = ["version"] if builder != "buildah" else ["images"]
    return shutil.which(builder) is not None and not subprocess.run([builder, *ask], capture_output=True).returncode


def building(builder: str, tag: str, options: Sequence[str]) -> list[str]:
    """The command that builds one image. A builder of another name is called as TAG CONTEXT OPTION..."""
    options = [*options, "--file", str(DOCKERFILE)]
    if Path(builder).name not in BUILDERS:
        return [builder, tag, str(REPOSITORY), *options]
    verb = "bud" if Path(builder).name == "buildah" else "build"
    layers = ["--layers"] if verb == "bud" else []
    return [builder, verb, *layers, *options, "--tag", tag, str(REPOSITORY)]


def build(builder: str, images: Sequence[str], bases: Bases, repository: str, tag: str, offline: bool) -> list[str]:
    """Build them, one after the other. Return their names."""
    version = sbom.version()
    made = []
    for image in images:
        name = f"{repository}/lockstep-{image}:{tag}"
        options = ["--target", image, "--build-arg", f"VERSION={version}", *bases.arguments(image)]
        if offline:
            options += ["--build-arg", "PIP_NO_INDEX=1", "--build-arg", f"WHEELS_FOR={PYTHON} {MACHINE}"]
        sys.stdout.write(f"images: {name}\n")
        sys.stdout.flush()
        subprocess.run(building(builder, name, options), check=True, stdout=sys.stderr)
        made.append(name)
    return made


def push(builder: str, names: Sequence[str]) -> None:
    """Send images to the registry that their names begin with. Raises CalledProcessError if it refuses one."""
    for name in names:
        subprocess.run([builder, "push", name], check=True, stdout=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="*", help=f"all of them unless named: {', '.join(requirements.IMAGES)}")
    parser.add_argument("--builder", help="docker, podman, buildah, or a command that takes TAG CONTEXT OPTION...")
    parser.add_argument("--base", help="image with Python 3.11 to 3.13 in the place of the Dockerfile's")
    parser.add_argument("--java-base", help="the data plane's, with Java 17 or newer, tini and libnss-wrapper too")
    parser.add_argument("--build-base", help="the same Python with venv")
    parser.add_argument("--repository", default=project_address.IMAGES, help="registry and path before each name")
    parser.add_argument("--push", action="store_true", help="send the images to the registry when all are built")
    parser.add_argument("--tag", default=sbom.version())
    parser.add_argument(
        "--offline",
        action="store_true",
        help=f"fetch the packages here, not in the build: for Python {PYTHON} on {MACHINE} alone",
    )
    given = parser.parse_args()
    if unknown := set(given.images) - set(requirements.IMAGES):
        parser.error(f"no image is named {', '.join(sorted(unknown))}: there are {', '.join(requirements.IMAGES)}")
    builder = given.builder or next((one for one in BUILDERS if works(one)), None)
    if builder is None:
        sys.exit(f"images: none of {', '.join(BUILDERS)} works here: install one, or name one with BUILDER=")
    if given.offline:
        download()
    bases = Bases(given.base, given.java_base, given.build_base)
    try:
        if not given.offline:
            bases = all_pinned(builder, bases)
        names = build(builder, given.images or requirements.IMAGES, bases, given.repository, given.tag, given.offline)
        if given.push:
            push(builder, names)
    except subprocess.CalledProcessError as failed:
        sys.exit(f"images: {' '.join(map(str, failed.cmd))} ended with {failed.returncode}")


if __name__ == "__main__":
    main()
