"""`make release`: everything of a release in build/release, the same bytes from the same sources.

The wheel and the source distribution of each member and of the one that pins them, a requirements file for each choice
of what is installed (the packages that were tested, with hashes), the bill of materials, the notes from CHANGELOG.md,
the packaged chart where helm is, and SHA256SUMS of them all. `--tag v0.1.0` refuses a tag or a changelog that is not of
this version. `--installable FOLDER` makes what an installation needs, and nothing else.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import requirements
import sbom

from lockstep_state import project_address

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE = REPOSITORY / "build" / "release"
CHART = REPOSITORY / "deploy" / "helm" / "lockstep"
STATED = (
    "README.md",
    "deploy/**/*.yaml",
    "deploy/images/Dockerfile",
    "docs/*.md",
    "docs/guides/*.md",
    "docs/reference/*.md",
)
"""Files, besides each pyproject.toml, that may state Lockstep's own version."""
ROOT = "lockstep-kafka"
"""The distribution that pins the others."""
ROOT_FILES = ("pyproject.toml",)
"""What the distribution that pins the others, whose folder is the repository, is made of."""
SUMS = "SHA256SUMS"
CHANGED_AT = 1580601600
"""2 February 2020, the time of every file in hatchling's archives: a release does not say when it was built."""

_SECTION = re.compile(r"^## \[(?P<version>[^]]+)\](?: - (?P<date>[^\n]+))?\n(?P<text>.*?)(?=^## \[|\Z)", re.M | re.S)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LINK = re.compile(r"\[([^]]*)\]\((?![a-z]+:)([^)]*)\)")


class NotReleasable(Exception):
    """What stops a release; the message is a sentence."""


# -- texts, pure -------------------------------------------------------------------------------------------------------


def notes(changelog: str, version: str, pages: str = "") -> str:
    """The changes of one version. Links into the repository begin with `pages` (`https://.../blob/v0.1.0`); without it
    their words alone are left. Raises NotReleasable if the version has no section."""
    text = _section(changelog, version)["text"].strip()
    if not pages:
        return _LINK.sub(r"\1", text) + "\n"
    return _LINK.sub(lambda link: f"[{link[1]}]({pages.rstrip('/')}/{link[2]})", text) + "\n"


def check_tag(tag: str, version: str, changelog: str) -> None:
    """Raises NotReleasable unless `tag` names the version, and the changelog has its date."""
    if tag != f"v{version}":
        raise NotReleasable(f"tag {tag} is not of version {version}, which pyproject.toml has: its tag is v{version}")
    date = _section(changelog, version)["date"] or ""
    if not _DATE.fullmatch(date):
        raise NotReleasable(f"CHANGELOG.md has {date or 'no date'!r} behind [{version}]: write the day of the release")


def _section(changelog: str, version: str) -> re.Match[str]:
    for found in _SECTION.finditer(changelog):
        if found["version"] == version:
            return found
    raise NotReleasable(f"CHANGELOG.md has no section [{version}]")


def check_repository(address: str) -> None:
    """Raise NotReleasable unless the files of this checkout state this address of the repository."""
    if address.rstrip("/").lower() != project_address.REPOSITORY.lower():
        raise NotReleasable(
            f"this is {address}, and the files state {project_address.REPOSITORY}: write the address into "
            "lockstep_state/project_address.py, run make docs, and commit both"
        )


def sums(digests: Mapping[str, str]) -> str:
    """What `sha256sum --check` reads."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def with_version(text: str, old: str, new: str) -> str:
    """A pyproject.toml in which each mention of Lockstep's own version is the new one."""
    before = r'^(version = "|(?:    |[\w-]+ = \[)"lockstep-kafka[^"]*==)'
    return re.sub(before + re.escape(old), lambda found: found[1] + new, text, flags=re.MULTILINE)


def with_stated_version(text: str, old: str, new: str) -> str:
    """A page or a manifest, in which no other version than Lockstep's own is the same."""
    return re.sub(rf"(?<![\d.]){re.escape(old)}(?![\d.]*\d)", new, text)


# -- files -------------------------------------------------------------------------------------------------------------


def folders() -> list[Path]:
    """Return the folders of all distributions: of the one that pins the others first."""
    return [REPOSITORY, *sorted(file.parent for pattern in sbom.MEMBERS for file in REPOSITORY.glob(pattern))]


def stage(folder: Path, into: Path) -> Path:
    """A copy of what git tracks of a distribution, with the licence in it."""
    names: tuple[str, ...] = ROOT_FILES
    if folder != REPOSITORY:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=folder, capture_output=True, text=True, check=True)
        names = tuple(filter(None, listed.stdout.split("\0")))
    for name in names:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, into / name)
    shutil.copyfile(REPOSITORY / "LICENSE", into / "LICENSE")
    return into


def build(folder: Path, into: Path, *, kinds: Iterable[str]) -> None:
    """Builds a distribution into `into`, with the hatchling of the lock. `kinds`: wheel, sdist. Raises NotReleasable
    with what hatchling said."""
    targets = [word for kind in kinds for word in ("--target", kind)]
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    with tempfile.TemporaryDirectory() as scratch:
        staged = stage(folder, Path(scratch) / folder.name)
        command = [sys.executable, "-m", "hatchling", "build", *targets, "--directory", str(into.resolve())]
        ran = subprocess.run(command, cwd=staged, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NotReleasable(f"{folder.relative_to(REPOSITORY)} cannot be built: {ran.stderr.strip()}")


def package_chart(helm: str, into: Path) -> Path:
    """The chart as `helm package` makes it, with fixed times and owners in it."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([helm, "package", str(CHART), "--destination", scratch], check=True, stdout=subprocess.DEVNULL)
        (made,) = Path(scratch).glob("*.tgz")
        packed = into / made.name
        packed.write_bytes(with_fixed_times(made.read_bytes()))
    return packed


def push_chart(helm: str, version: str) -> None:
    """Send the packaged chart to the registry beside the images. Raises NotReleasable with what helm said."""
    packed = RELEASE / f"{CHART.name}-{version}.tgz"
    if not packed.exists():
        raise NotReleasable(f"there is no {packed.relative_to(REPOSITORY)}: run make release where helm is")
    ran = subprocess.run(
        [helm, "push", str(packed), f"oci://{project_address.IMAGES}/charts"],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise NotReleasable(f"{packed.name} was not pushed: {ran.stderr.strip()}")


def with_fixed_times(archive: bytes) -> bytes:
    """A .tgz with the same files in it, the same bytes whenever and by whom it was made."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as read, tarfile.open(fileobj=plain, mode="w") as written:
        for member in sorted(read.getmembers(), key=lambda one: one.name):
            kept = tarfile.TarInfo(member.name)
            kept.size, kept.mode, kept.mtime, kept.type = member.size, member.mode, CHANGED_AT, member.type
            written.addfile(kept, read.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=0)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def installable(version: str, into: Path) -> None:
    """Write into a folder what an installation needs: our archives, and requirements files that name them by hash."""
    for folder in folders():
        build(folder, into, kinds=("wheel", "sdist"))
    every, lock = requirements.projects(), sbom.LOCK.read_text()
    archives: dict[str, list[str]] = {name: [] for name in every}
    for file in sorted((*into.glob("*.whl"), *into.glob("*.tar.gz"))):
        archives[file.name.split("-")[0].replace("_", "-")].append(digest(file))
    before = into / f"lockstep-{version}-requirements"
    for choice in requirements.CHOICES:
        text = requirements.installation(choice, ROOT, every, lock, archives)
        Path(f"{before}-{choice}.txt").write_text(text)
    Path(f"{before}-build.txt").write_text(requirements.builders(lock))


def release(version: str, helm: str | None, pages: str) -> list[Path]:
    """Writes build/release anew. Returns its files."""
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    text = notes((REPOSITORY / "CHANGELOG.md").read_text(), version, pages)
    installable(version, RELEASE)
    lock, before = sbom.LOCK.read_text(), RELEASE / f"lockstep-{version}"
    Path(f"{before}-notes.md").write_text(text)
    Path(f"{before}.cdx.json").write_text(sbom.bill(lock, sbom.needed_to_run(sbom.member_projects()), version))
    if helm:
        package_chart(helm, RELEASE)
    files = sorted(RELEASE.iterdir())
    (RELEASE / SUMS).write_text(sums({file.name: digest(file) for file in files}))
    return [*files, RELEASE / SUMS]


def set_version(new: str) -> list[Path]:
    """Writes another version into each file that states it. Returns those that changed."""
    old = sbom.version()
    rules = {folder / "pyproject.toml": with_version for folder in folders()}
    rules |= {file: with_stated_version for pattern in STATED for file in REPOSITORY.glob(pattern)}
    texts = {file: (file.read_text(), rule) for file, rule in rules.items()}
    changed = {file: after for file, (text, rule) in texts.items() if (after := rule(text, old, new)) != text}
    for file, after in changed.items():
        file.write_text(after)
    return sorted(changed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="the tag that is released, such as v0.1.0")
    parser.add_argument("--helm", default=shutil.which("helm"), help="packages the chart (default: helm on PATH)")
    parser.add_argument(
        "--pages", default="", help="where links of the notes begin, such as https://HOST/REPO/blob/TAG"
    )
    parser.add_argument("--installable", type=Path, metavar="FOLDER", help="write what an installation needs, and end")
    parser.add_argument("--push-chart", action="store_true", help="send the packaged chart to the registry, and end")
    parser.add_argument("--repository", help="refuse unless this is the address that the files state")
    parser.add_argument("--set-version", metavar="VERSION", help="write VERSION into each file that has it, and end")
    given = parser.parse_args()
    if given.set_version:
        sys.stdout.writelines(f"{file.relative_to(REPOSITORY)}\n" for file in set_version(given.set_version))
        return
    try:
        if given.push_chart:
            push_chart(given.helm or "helm", sbom.version())
            return
        if given.installable:
            installable(sbom.version(), given.installable)
            return
        if given.repository:
            check_repository(given.repository)
        if given.tag:
            check_tag(given.tag, sbom.version(), (REPOSITORY / "CHANGELOG.md").read_text())
        files = release(sbom.version(), given.helm or None, given.pages)
    except NotReleasable as why:
        sys.exit(f"release: {why}")
    if not given.helm:
        sys.stderr.write("release: without the chart, for there is no helm (make helm builds one into .cache/helm)\n")
    sys.stdout.writelines(f"{file.relative_to(REPOSITORY)}\n" for file in files)


if __name__ == "__main__":
    main()
