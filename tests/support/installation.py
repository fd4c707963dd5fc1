"""Lockstep installed from wheels, as users install it: into an environment of its own, outside the checkout."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import requires, version
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = REPOSITORY / "requirements.lock"
OF_THE_CHECKOUT = (
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "SPARK_HOME",
    "SPARK_SUBMIT_OPTS",
    "PYSPARK_PYTHON",
    "COVERAGE_PROCESS_START",
)
"""Variables that would lend an installation what is in the checkout."""

SPARK = """
[[dependency-metadata]]
name = "pyspark"
version = {version}
requires-dist = {requires}
"""
"""What Spark needs, for uv to resolve without it: where an index has no lasting answers, uv would download and build it
anew each time. What `make setup` has built is then installed."""

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


def build_wheels(folder: Path) -> Path:
    """The wheels of every member, as `make release` builds them. Returns the folder."""
    subprocess.run([sys.executable, REPOSITORY / ".ci" / "release.py", "--wheels", folder], check=True)
    return folder


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder of the test's own: what is installed there comes from `wheels`, and third-party packages from the index
    in the versions of the lock."""

    folder: Path
    wheels: Path

    def __post_init__(self) -> None:
        """Writes uv's configuration. It replaces the user's, so it has what that says."""
        users = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "uv" / "uv.toml"
        needed = [one for one in requires("pyspark") or () if "extra ==" not in one]
        spark = SPARK.format(version=json.dumps(version("pyspark")), requires=json.dumps(needed))
        (self.folder / "uv.toml").write_text((users.read_text() if users.exists() else "") + spark)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of commands of users: uv searches the wheels, and has its tools in `folder`."""
        kept = {name: value for name, value in os.environ.items() if name not in OF_THE_CHECKOUT}
        return {
            **kept,
            "UV_FIND_LINKS": str(self.wheels),
            "UV_CONSTRAINT": str(LOCK),
            "UV_BUILD_CONSTRAINT": str(LOCK),
            "UV_CONFIG_FILE": str(self.folder / "uv.toml"),
            "UV_PYTHON": sys.executable,
            "UV_TOOL_DIR": str(self.folder / "tools"),
            "UV_TOOL_BIN_DIR": str(self.folder / "bin"),
        }

    def run(self, *command: str | Path, code: int = 0) -> str:
        """What a command prints on both streams, in a folder without a checkout. Asserts its exit code."""
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
        """The modules of `packages` that cannot be imported, each with the package that is missing."""
        lines = self.run(python, "-c", IMPORTS, *packages).splitlines()
        return dict(line.split(" ", 1) for line in lines)


def uv() -> str:
    """The uv that `make setup` uses."""
    return shutil.which("uv") or str(REPOSITORY / ".cache" / "uv" / "bin" / "uv")
