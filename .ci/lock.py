"""The one lock, `requirements.lock`: every third-party package of every member and of the tools, with every hash.

`python .ci/lock.py write` resolves anew (with uv); `... write --upgrade` moves every pin to the newest one allowed;
`... check` says whether the lock still belongs to what the pyproject files declare (offline, instant).
The lock names no index, so it serves whoever installs through a mirror of their own.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
LOCK = REPOSITORY / "requirements.lock"
MEMBERS = ("services/*/pyproject.toml", "shared/*/pyproject.toml")
OLDEST_PYTHON = "3.11"
HEADER = "# Written by `make lock` from the pyproject files. Install with `make setup`.\n# requirements: {digest}\n"
# In no pyproject: what pyspark's source distribution is built with, so that it, too, has a pin and a hash.
BUILD = ("setuptools",)
# Asked for by a package, and never imported here. crc32c (LGPL) is what kio reads records with, and we do not use that.
LEFT_OUT = ("crc32c",)


def requirements() -> list[str]:
    """What the members, the tools and the builds ask for, without the members themselves; sorted, each once."""
    root = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    asked = {*BUILD, *root["dependency-groups"]["dev"]}
    own = set()
    for file in (file for pattern in MEMBERS for file in REPOSITORY.glob(pattern)):
        member = tomllib.loads(file.read_text())
        own.add(member["project"]["name"])
        asked.update(member["project"]["dependencies"], member["build-system"]["requires"])
        asked.update(*member["project"].get("optional-dependencies", {}).values())
    return sorted(one for one in asked if _name(one) not in own)


def digest() -> str:
    return hashlib.sha256("\n".join(requirements()).encode()).hexdigest()


def check() -> str | None:
    """None where the lock is current, else a sentence."""
    if not LOCK.exists() or digest() not in LOCK.read_text():
        return "requirements.lock does not belong to the pyproject files any more: run `make lock` and commit it"
    return None


def write(uv: str, *, upgrade: bool) -> None:
    """Resolves and writes the lock; without `upgrade` the pins of the present one are kept where they still fit."""
    with tempfile.TemporaryDirectory() as folder:
        overrides = Path(folder, "overrides.txt")
        overrides.write_text("".join(f"{name} ; python_version < '3'\n" for name in LEFT_OUT))
        _resolve(uv, overrides, upgrade=upgrade)
    LOCK.write_text(HEADER.format(digest=digest()) + LOCK.read_text())


def _resolve(uv: str, overrides: Path, *, upgrade: bool) -> None:
    subprocess.run(
        [
            *(uv, "pip", "compile", "-", "--universal", "--generate-hashes", "--python-version", OLDEST_PYTHON),
            *("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--quiet"),
            *("--output-file", str(LOCK), "--override", str(overrides)),
            *(["--upgrade"] if upgrade else []),
        ],
        input="\n".join(requirements()),
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,  # uv repeats there what it writes to the file
        cwd=REPOSITORY,
    )


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "write"])
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--upgrade", action="store_true")
    arguments = parser.parse_args()
    if arguments.action == "check":
        sys.exit(check())
    write(arguments.uv, upgrade=arguments.upgrade)


if __name__ == "__main__":
    main()
