"""Which Java the brokers, MirrorMaker and Ivy run on: 17 or newer, from JAVA_HOME, else from PATH."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["OLDEST", "NoJava", "find_java", "java_version"]

OLDEST = 17  # Kafka 4 brokers and Spark 4 both ask for it


class NoJava(Exception):
    """No Java of a sufficient version was found; the message is one sentence that says what to do."""


def find_java(environment: Mapping[str, str] | None = None) -> Path:
    """The `java` to run: that of JAVA_HOME if set, else the first on PATH. Raises NoJava if missing or too old."""
    env = os.environ if environment is None else environment
    home = env.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=env.get("PATH"))
    how = f"install Java {OLDEST} or newer (a JRE is enough) and put it on PATH or set JAVA_HOME"
    if found is None or not Path(found).exists():
        raise NoJava(f"There is no Java in {'JAVA_HOME' if home else 'PATH'}: {how}.")
    java = Path(found)
    version = java_version(java)
    if version < OLDEST:
        raise NoJava(f"The Java at {java} is version {version}: {how}.")
    return java


@cache
def java_version(java: Path) -> int:
    """The major version of one `java` executable. Raises NoJava if it does not run."""
    ran = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    said = re.search(r'version "(\d+)(?:\.(\d+))?', ran.stderr + ran.stdout)
    if said is None:
        raise NoJava(f"The Java at {java} does not start: {(ran.stderr or ran.stdout).strip()[:200]}")
    first, second = said.groups()
    return int(second) if first == "1" and second else int(first)  # Java 8 calls itself 1.8


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_java()}\n")
    except NoJava as missing:
        sys.exit(str(missing))
