"""The Java that brokers, MirrorMaker and Ivy run on: the very one that `lockstep` finds for Spark.

`python -m tests.support.java` is the set-up's step: it says which Java was found, installs one with apt where that is
possible without asking (root on Debian or Ubuntu), and otherwise ends with one sentence on how to get it.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from lockstep_runtime.util import java

# Debian and Ubuntu releases carry different ones; the oldest that does comes first, as most tried with Spark.
PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless", "default-jre-headless")


class NoJava(Exception):
    """There is no Java of a sufficient version; the message is one sentence that says what to do."""


def find_java() -> Path:
    """Return the `java` to run. Raises NoJava."""
    executable = java.find_java(os.environ)
    if executable is None:
        raise NoJava(
            f"Java {java.OLDEST} or newer is needed and there is none: install it (Debian, Ubuntu: "
            f"apt install {PACKAGES[0]} or {PACKAGES[1]}, whichever there is; macOS: brew install openjdk@17), "
            "or point JAVA_HOME at one."
        )
    return executable


def java_version(executable: Path) -> int:
    """Return the major version of one `java`, by running it. Raises NoJava if it does not say."""
    ran = subprocess.run([executable, "-version"], capture_output=True, text=True, check=False)
    version = java.major_version(ran.stderr + ran.stdout)
    if version is None:
        raise NoJava(f"The Java at {executable} does not start: {(ran.stderr or ran.stdout).strip()[:200]}")
    return version


def archive_name(executable: Path) -> str:
    """Return what a class-data archive is called: it is of use only to the very JVM that wrote it."""
    build = java.java_build(executable).encode()
    return f"{hashlib.sha256(bytes(executable.resolve()) + build).hexdigest()[:12]}.jsa"


def jvm_performance(shipped: str) -> list[str]:
    """Return a JVM's options: those of `shipped`, or instead of them those of the variable that Kafka's scripts look
    at."""
    return shlex.split(os.environ.get("KAFKA_JVM_PERFORMANCE_OPTS", shipped))


def _checked() -> Path:
    """Return the `java` to run, of a version that is new enough. Raises NoJava."""
    if problem := java.missing_java(os.environ):
        raise NoJava(f"{problem[0].upper()}{problem[1:]}.")
    return find_java()


def _can_install() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install() -> None:
    sys.stdout.write("Java: installing with apt-get\n")
    sys.stdout.flush()
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=quiet)
    for package in PACKAGES:
        # A release may know a package's name and still have nothing to install for it, so it is tried.
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        ran = subprocess.run(install, check=False, env=quiet, capture_output=package != PACKAGES[-1])
        if ran.returncode == 0:
            sys.stdout.write(f"Java: {package}\n")
            return
    ran.check_returncode()


def main() -> None:
    try:
        if java.missing_java(os.environ) and not os.environ.get("JAVA_HOME") and _can_install():
            _install()
        _checked()
    except NoJava as missing:
        sys.exit(str(missing))
    except subprocess.CalledProcessError as failed:
        sys.exit(f"Java could not be installed: `{' '.join(failed.cmd)}` ended with status {failed.returncode}.")


if __name__ == "__main__":
    main()
