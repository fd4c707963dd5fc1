"""Find files that have changed, and that are no longer being written.

The digest is of the contents, behind all links: Kubernetes swaps a link to a folder, others write in place. Keys and
certificates are replaced one after the other, so only what was the same twice counts.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from lockstep_config.text.files import read_content

MISSING = "missing"


def digests(files: Iterable[Path]) -> dict[Path, str]:
    """Return a digest of each file, of a folder that of its names, and `MISSING` for what cannot be read."""
    return {file: _digest(file) for file in files}


def _digest(file: Path) -> str:
    try:
        if file.is_dir():
            return hashlib.sha256("\0".join(sorted(entry.name for entry in file.iterdir())).encode()).hexdigest()
        return hashlib.sha256(read_content(file)).hexdigest()
    except OSError:
        return MISSING


class FileChanges:
    """Find changed files by their digests. `accepted` has the digests that are in use."""

    def __init__(self, accepted: Mapping[Path, str]) -> None:
        self.accepted = dict(accepted)
        self._before = dict(accepted)

    def differs(self, current: Mapping[Path, str]) -> bool:
        """Return whether files have changed, and are complete: two checks in a row read the same digests."""
        unchanged, self._before = dict(current) == self._before, dict(current)
        return unchanged and self._before != self.accepted
