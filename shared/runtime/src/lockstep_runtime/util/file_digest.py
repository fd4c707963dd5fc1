"""Whether files have changed, and stand still again.

The digest is of the contents, behind all links: Kubernetes swaps a link to a folder, others write in place. Keys and
certificates are replaced one after the other, so only what was the same twice counts."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from lockstep_config.text.files import read_content

MISSING = "missing"


def digests(files: Iterable[Path]) -> dict[Path, str]:
    """A digest of each file, of a folder that of its names, and of one that cannot be read a word that is none."""
    return {file: _digest(file) for file in files}


def _digest(file: Path) -> str:
    try:
        if file.is_dir():
            return hashlib.sha256("\0".join(sorted(entry.name for entry in file.iterdir())).encode()).hexdigest()
        return hashlib.sha256(read_content(file)).hexdigest()
    except OSError:
        return MISSING


class FileDigest:
    """Reports, one check after another, whether something else than `accepted` is there since the check before."""

    def __init__(self, accepted: Mapping[Path, str]) -> None:
        self.accepted = dict(accepted)
        self._before = dict(accepted)

    def differs(self, seen: Mapping[Path, str]) -> bool:
        """Whether what is seen now was seen the last time as well, and is not what was taken."""
        unchanged, self._before = dict(seen) == self._before, dict(seen)
        return unchanged and self._before != self.accepted
