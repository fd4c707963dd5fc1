"""The images that the tests run: built here, without a registry, on minimal Debians."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.support.kubelab import KIT
from tests.support.processes import tail

CHECKOUT = Path(__file__).resolve().parents[2]
LOG = CHECKOUT / "build" / "images.log"
REPOSITORY, TAG = "localhost", "e2e"
SERVICES = ("topic-sync", "heartbeat", "checkpoint", "acl-sync", "console", "cli", "data-plane")
NAMES = tuple(f"{REPOSITORY}/lockstep-{service}:{TAG}" for service in SERVICES)


class NotBuilt(Exception):
    """An image could not be built; the message ends with the last lines of the build."""


def build() -> None:
    """Build what has changed. Raises NotBuilt, and CalledProcessError where no base can be made."""
    python = _base("lockstep-python", ["python3"])
    java = _base("lockstep-java", ["python3", "openjdk-17-jre-headless", "tini", "libnss-wrapper"])
    building = _base("lockstep-build", ["python3", "python3-venv"])
    command = [sys.executable, str(CHECKOUT / ".ci" / "images.py"), "--offline", "--builder", str(KIT / "image")]
    command += ["--repository", REPOSITORY, "--tag", TAG]
    command += ["--base", python, "--java-base", java, "--build-base", building]
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("w") as log:
        built = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT)
    if built.returncode:
        raise NotBuilt(f"the images were not built; all of {LOG} ends with\n{tail(LOG)}")


def _base(name: str, packages: Iterable[str]) -> str:
    """Return the name of an image of Debian with these packages."""
    made = subprocess.run([str(KIT / "rootfs"), name, *packages], check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.strip()
