"""The images that the tests run: built here, without a registry, on minimal Debians (docs/decisions/0036)."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.kubelab.tools import KIT

__all__ = ["NAMES", "REPOSITORY", "TAG", "build"]

CHECKOUT = Path(__file__).resolve().parents[2]
REPOSITORY, TAG = "localhost", "e2e"
SERVICES = ("topic-sync", "heartbeat", "checkpoint", "acl-sync", "cli", "data-plane")
NAMES = tuple(f"{REPOSITORY}/lockstep-{service}:{TAG}" for service in SERVICES)


def build() -> None:
    """Builds what has changed; seconds where nothing has. Raises CalledProcessError."""
    python = _base("lockstep-python", ["python3"])
    java = _base("lockstep-java", ["python3", "openjdk-17-jre-headless", "tini"])
    building = _base("lockstep-build", ["python3", "python3-venv"])
    subprocess.run(
        [
            *(sys.executable, str(CHECKOUT / ".ci" / "images.py"), "--offline", "--builder", str(KIT / "image")),
            *("--repository", REPOSITORY, "--tag", TAG),
            *("--base", python, "--java-base", java, "--build-base", building),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=None,
    )


def _base(name: str, packages: Iterable[str]) -> str:
    """The name of an image of Debian with these packages."""
    made = subprocess.run([str(KIT / "rootfs"), name, *packages], check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.strip()
