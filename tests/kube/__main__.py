"""`make e2e`: the tests of the chart on a real Kubernetes.

With `KUBECONFIG`, or with the addresses below, it uses kubectl's current context and what the environment names:

LOCKSTEP_E2E_SOURCE, LOCKSTEP_E2E_TARGET  bootstrap servers of two clusters, reachable from here and from pods
LOCKSTEP_E2E_REPOSITORY, LOCKSTEP_E2E_TAG  where `make images` and a push have put the images

Otherwise a kubelab (`KUBELAB`, else ../shared/kubelab) makes the images and starts a cluster and brokers for it.
What stands on the command line goes to pytest.
"""

import os
import subprocess
import sys
import time

from tests.kube import images
from tests.support.kubelab import KIT, is_here

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
    if os.environ.get("KUBECONFIG") or all(os.environ.get(name) for name in NEEDED):
        sys.exit(on_the_current_context(arguments))
    if not is_here():
        say(f"set KUBECONFIG to a cluster of yours, or KUBELAB to the folder of a kubelab, which is not at {KIT}")
        sys.exit(2)
    if subprocess.run([str(KIT / "lab"), "--check"], check=False).returncode:
        say("a kubelab cannot run on this machine (the reason is above): set KUBECONFIG to a cluster of yours")
        sys.exit(2)
    try:
        sys.exit(in_a_lab(arguments))
    except (images.NotBuilt, subprocess.CalledProcessError) as failed:
        say(str(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
