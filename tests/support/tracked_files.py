"""The files of the repository that are text: those that git tracks, and new ones that it does not ignore."""

import subprocess
from collections.abc import Mapping
from functools import cache

from tests.support.source_modules import REPOSITORY


@cache
def tracked_texts() -> Mapping[str, str]:
    """Return content by path. Each file is read once for all tests."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    texts = {}
    for name in listed.stdout.splitlines():
        file = REPOSITORY / name
        if file.is_file() and b"\0" not in (content := file.read_bytes()):
            texts[name] = content.decode()
    return texts
