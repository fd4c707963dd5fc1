"""`requirements.lock` is one lock for everybody: current, hashed throughout, and tied to no index and no machine."""

import re
import subprocess
import sys

from tests.support.source_modules import REPOSITORY

LOCK = (REPOSITORY / "requirements.lock").read_text()


def test_lock_matches_the_pyproject_files() -> None:
    ran = subprocess.run(
        [sys.executable, REPOSITORY / ".ci" / "lock.py", "check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_lock_names_no_index_and_no_local_file() -> None:
    assert not re.search(r"https?:|file:|--(extra-)?index-url|--find-links|^-e |^\.{0,2}/", LOCK, re.MULTILINE)


def test_every_package_is_pinned_with_hashes() -> None:
    entries = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE).strip())
    assert len(entries) > 40
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry.splitlines()[0]


def test_lock_pins_build_backends() -> None:
    for builder in ("hatchling", "setuptools"):
        assert re.search(rf"^{builder}==", LOCK, re.MULTILINE)
