"""An archive of this installation for Spark's executors (`python -m lockstep_data_plane.pack FILE.tar.gz`).

It serves executors whose machines have Python and Spark, but not Lockstep. `spark.archives=FILE.tar.gz#environment`
unpacks it beside each executor, with compiled packages, which do not load from a zip. Two things are not in it.
Python itself must be there in the same minor version and for the same platform. pyspark is Spark's own part of an
executor.
"""

import importlib.util
import io
import re
import sys
import tarfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

PREFIX = "lockstep-kafka-"
"""The prefix of the names of Lockstep's distributions. Their packages are named without `kafka`."""

ROOT = f"{PREFIX}data-plane"
SPARKS_OWN = frozenset({"pyspark", "py4j"})

START = """#!/bin/sh
# The executors' own Python, with the packages beside this file. LOCKSTEP_PYTHON names another one.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec "${{LOCKSTEP_PYTHON:-python{version}}}" "$@"
"""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def required_distributions() -> dict[str, metadata.Distribution]:
    """Return the installed distributions that `ROOT` needs, itself included, by normalised name.

    Spark's own are left out, and so are requirements of extras.

    Raises:
        PackageNotFoundError: `ROOT` itself is not installed.
    """
    distributions = {_normal(ROOT): metadata.distribution(ROOT)}
    waiting = [ROOT]
    while waiting:
        for requirement in distributions[_normal(waiting.pop())].requires or ():
            match = _NAME.match(requirement)
            name = _normal(match[0]) if match else ""
            if not name or name in distributions or name in SPARKS_OWN or re.search(r";.*\bextra\b", requirement):
                continue
            try:
                distributions[name] = metadata.distribution(name)
            except metadata.PackageNotFoundError:
                continue  # for another platform or another Python
            waiting.append(name)
    return distributions


def pack(path: Path) -> int:
    """Write the archive, replacing an existing file, and return the number of files in it."""
    count = 0
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        text = START.format(version=f"{sys.version_info.major}.{sys.version_info.minor}").encode()
        start = tarfile.TarInfo("bin/python")
        start.mode, start.size = 0o755, len(text)
        archive.addfile(start, io.BytesIO(text))
        for name, distribution in sorted(required_distributions().items()):
            for file, inside in _files(name, distribution):
                archive.add(file, f"lib/{inside}", recursive=False)
                count += 1
    return count


def _files(name: str, distribution: metadata.Distribution) -> Iterator[tuple[Path, str]]:
    """Yield each file of a distribution with its place under `lib`.

    The package may be installed as a copy, or be editable.
    """
    editable = False
    for entry in distribution.files or ():
        file = Path(str(distribution.locate_file(entry)))
        editable = editable or entry.suffix == ".pth"
        if ".." not in entry.parts and entry.suffix not in (".pyc", ".pth") and file.is_file():
            yield file, entry.as_posix()
    package = name.replace(PREFIX, "lockstep-").replace("-", "_")
    spec = importlib.util.find_spec(package) if editable else None
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file, f"{package}/{file.relative_to(root).as_posix()}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Run the command line, and return the exit code: 2 if the arguments are wrong."""
    if len(sys.argv) != 2 or not sys.argv[1].endswith((".tar.gz", ".tgz")):
        sys.stderr.write("usage: python -m lockstep_data_plane.pack FILE.tar.gz\n")
        return 2
    path = Path(sys.argv[1])
    count = pack(path)
    sys.stdout.write(f"{path}: {count} files, {path.stat().st_size / 1e6:.0f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
