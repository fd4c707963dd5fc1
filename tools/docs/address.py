"""The project's address in files that cannot ask for it.

The chart, its rules and dashboards, the quick starts, pages and golden files state it. The chart's `home` says which
one they have until then. `lockstep_state.project_address` is the one place where it is chosen.
"""

import re
import subprocess
from pathlib import Path

from lockstep_state.project_address import REPOSITORY, image_registry
from tools.docs import pages

CHART = pages.REPOSITORY / "deploy" / "helm" / "lockstep" / "Chart.yaml"
_HOME = re.compile(r"^home: (\S+)$", re.MULTILINE)


def stated() -> str:
    """Return the address that the files have now."""
    (home,) = _HOME.findall(CHART.read_text(encoding="utf-8"))
    return str(home)


def with_address(text: str, old: str, new: str) -> str:
    """Return the text of a file with the new address, and with the new registry of images."""
    for before, after in zip(_forms(old), _forms(new), strict=True):
        text = re.sub(rf"(?<![\w.]){re.escape(before)}(?![\w-])", after, text)
    return text


def _forms(address: str) -> tuple[str, str, str]:
    """Return what stands in files: the address, where single files are, and the registry."""
    path = address.partition("://")[2]
    return path, path.replace("github.com/", "raw.githubusercontent.com/", 1), image_registry(address)


def files() -> list[Path]:
    """Return each file that git tracks and that may state the address: code asks for it instead."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=pages.REPOSITORY, capture_output=True, text=True, check=True)
    paths = (pages.REPOSITORY / name for name in listed.stdout.split("\0") if name and not name.endswith(".py"))
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


def rewrite() -> None:
    """Write the address into each file that has another one."""
    old = stated()
    for path in files() if old != REPOSITORY else ():
        text = path.read_text(encoding="utf-8")
        if (after := with_address(text, old, REPOSITORY)) != text:
            path.write_text(after, encoding="utf-8")
