"""`make e2e`: the tests of the chart on a real Kubernetes.

On a machine that can run `tools/kubelab` it makes the images, starts a cluster for itself and brokers beside it. On any
other it uses kubectl's current context, and what the environment names:

LOCKSTEP_E2E_SOURCE, LOCKSTEP_E2E_TARGET  bootstrap servers of two clusters, reachable from here and from pods
LOCKSTEP_E2E_REPOSITORY, LOCKSTEP_E2E_TAG  where `make images` and a push have put the images

What stands on the command line goes to pytest.
"""

import os
import subprocess
import sys
import time

from tests.kube import images
from tools.kubelab.tools import KIT

PYTEST = (sys.executable, "-m", "pytest", "-q", "-m", "kube", "-p", "no:cacheprovider", "tests/kube")
NEEDED = ("LOCKSTEP_E2E_SOURCE", "LOCKSTEP_E2E_TARGET")


def on_the_current_context(arguments: list[str]) -> int:
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        say(f"set {' and '.join(missing)}: bootstrap servers that pods of kubectl's current context can reach")
        return 2
    return subprocess.run([*PYTEST, *arguments], check=False).returncode


def in_a_lab(arguments: list[str]) -> int:
    began = time.monotonic()
    images.build()
    say(f"images built in {time.monotonic() - began:.0f} s")
    environment = {**os.environ, "KUBELAB_IMAGES": " ".join(images.NAMES)}
    return subprocess.run([str(KIT / "lab"), *PYTEST, *arguments], env=environment, check=False).returncode


def say(what: str) -> None:
    sys.stderr.write(f"e2e: {what}\n")
    sys.stderr.flush()


def main() -> None:
    arguments = sys.argv[1:]
    if all(os.environ.get(name) for name in NEEDED):
        sys.exit(on_the_current_context(arguments))
    if subprocess.run([str(KIT / "lab"), "--check"], check=False).returncode == 0:
        try:
            sys.exit(in_a_lab(arguments))
        except (images.NotBuilt, subprocess.CalledProcessError) as failed:
            say(str(failed))
            sys.exit(1)
    say("no cluster of our own can run here (the reason is above), so kubectl's current context is used")
    sys.exit(on_the_current_context(arguments))


if __name__ == "__main__":
    main()
