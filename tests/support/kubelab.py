"""Where a kubelab is: a kit, kept beside this repository, that builds a one-node Kubernetes and the tools for it."""

import os
import shutil
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
KIT = Path(os.environ.get("KUBELAB") or REPOSITORY.parent / "shared" / "kubelab").resolve()
"""The folder of the kit: `ensure`, `lab`, `image`, `rootfs`, `schemas` and `crds`."""

BUILT = Path(os.environ.get("KUBELAB_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "kubelab"))
HELM = REPOSITORY / ".cache" / "helm"
"""Where `make helm` puts helm."""

WHY_TOOLS = f"kubeconform and the others are not built: `make kube-tools` builds them once with the kubelab at {KIT}"
WHY_HELM = "helm is not here: `make helm` builds it from Go modules (Go 1.26)"
"""What a test that is skipped for want of them says."""


@cache
def tools() -> Path | None:
    """Return the folder of the newest tools that the kit has built; None if it has built none, or is not here. Builds
    nothing."""
    programs = BUILT.expanduser().glob("*/bin/kubeconform") if is_here() else ()
    return max((tool.parent for tool in programs), key=lambda folder: folder.stat().st_mtime, default=None)


@cache
def helm() -> Path | None:
    """Return the folder of a helm of the version that the chart's tests were written for; None: there is none."""
    return tools() or (HELM if (HELM / "helm").exists() else None)


def is_here() -> bool:
    """Return whether the kit is at `KIT`."""
    return shutil.which("bash") is not None and (KIT / "ensure").exists()
