"""Lockstep installed from wheels, as users install it: into an environment of its own, outside the checkout."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.source_modules import REPOSITORY

INSTALL_PAGE = REPOSITORY / "docs" / "guides" / "install.md"
OF_THE_CHECKOUT = (
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "SPARK_HOME",
    "SPARK_SUBMIT_OPTS",
    "PYSPARK_PYTHON",
    "COVERAGE_PROCESS_START",
)
"""Variables that would lend an installation what is in the checkout."""

IMPORTS = """
import importlib, pkgutil, sys

for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        try:
            importlib.import_module(module.name)
        except ImportError as missing:
            print(module.name, missing.name)
"""


def build_release(folder: Path) -> Path:
    """Write what `make release` writes for an installation into a folder. Return the folder."""
    subprocess.run([sys.executable, REPOSITORY / ".ci" / "release.py", "--installable", folder], check=True)
    return folder


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder of the test's own with a virtual environment: what is installed there comes from a release."""

    folder: Path
    release: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment of a user's commands: nothing of the checkout is in it."""
        return {name: value for name, value in os.environ.items() if name not in OF_THE_CHECKOUT}

    def program(self, name: str) -> Path:
        """Return a program of the virtual environment."""
        return self.folder / "lockstep" / "bin" / name

    def install_line(self, choice: str, tool: str) -> list[str]:
        """Return the line of docs/guides/install.md that installs a choice with uv or pip, for this folder."""
        lines = map(str.strip, INSTALL_PAGE.read_text(encoding="utf-8").splitlines())
        (line,) = (each for each in lines if each.startswith(tool) and f"-requirements-{choice}.txt" in each)
        program, *arguments = shlex.split(line.replace(" release", f" {self.release}"))
        return [uv() if program == "uv" else program, *arguments]

    def run(self, *command: str | Path, code: int = 0) -> str:
        """Return what a command prints on both streams, in a folder without a checkout. Asserts its exit code."""
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == code, f"{command} ended with {ran.returncode}:\n{ran.stdout}"
        return ran.stdout

    def modules_that_lack(self, python: Path, packages: Sequence[str]) -> dict[str, str]:
        """Return the modules of `packages` that cannot be imported, each with the package that is missing."""
        lines = self.run(python, "-c", IMPORTS, *packages).splitlines()
        return dict(line.split(" ", 1) for line in lines)


def uv() -> str:
    """Return the uv that `make setup` uses."""
    return shutil.which("uv") or str(REPOSITORY / ".cache" / "uv" / "bin" / "uv")
