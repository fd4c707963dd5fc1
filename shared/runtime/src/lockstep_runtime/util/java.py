"""Find a Java for Spark as Spark does: JAVA_HOME first, then PATH."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_HOW = (
    "install Java 17 or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless or openjdk-21-jre-headless, "
    "whichever there is), or point JAVA_HOME at one"
)


def find_java(environment: Mapping[str, str]) -> Path | None:
    """Return the `java` that Spark would start, or None. A JAVA_HOME without one counts as no Java, as in Spark."""
    if home := environment.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        return java if java.exists() else None
    on_path = shutil.which("java", path=environment.get("PATH"))
    return Path(on_path) if on_path else None


def major_version(text: str) -> int | None:
    """Return 17 for `openjdk version "17.0.15"` or `JAVA_VERSION="17.0.15"`, 8 for `"1.8.0_392"`, else None."""
    match = re.search(r'(?:version |JAVA_VERSION=)"(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


def version_text(text: str) -> str:
    """Return 17.0.15 for `openjdk version "17.0.15"` or `JAVA_VERSION="17.0.15"`, else ""."""
    match = re.search(r'(?:version |JAVA_VERSION=)"([^"]+)"', text)
    return match[1] if match else ""


def missing_java(environment: Mapping[str, str]) -> str | None:
    """Return why Spark cannot start here and what to do about it, or None when it can."""
    java = find_java(environment)
    if java is None:
        location = f"under JAVA_HOME={environment['JAVA_HOME']}" if environment.get("JAVA_HOME") else "on PATH"
        return f"the data plane runs on Spark, which needs Java, and there is none {location}: {_HOW}"
    version = java_version(java)
    if version is None:
        return f"the data plane runs on Spark, which needs Java, and {java} does not say its version: {_HOW}"
    if version < OLDEST:
        return (
            f"the data plane runs on Spark, which needs Java {OLDEST} or newer, and {java} is version {version}: {_HOW}"
        )
    return None


def java_version(java: Path) -> int | None:
    """Return the major version of this `java`; None if it does not show it."""
    return major_version(_release(java)) or major_version(_answer(java))


def java_release(java: Path) -> str:
    """Return the whole version of this `java`, such as 17.0.15; "" if it does not show it."""
    return version_text(_release(java)) or version_text(_answer(java))


def java_build(java: Path) -> str:
    """Return what distinguishes this `java` from another one at the same path: its `release` file, else its mtime."""
    return _release(java) or str(java.resolve().stat().st_mtime_ns)


def _release(java: Path) -> str:
    """Return the `release` file that a JDK or JRE has beside `bin`. To read it takes less than to start a JVM."""
    file = java.resolve().parent.parent / "release"
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _answer(java: Path) -> str:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout
