"""The built tools of `tools/kubelab` (kubectl, helm, kubeconform, promtool ...), for tests that do without them."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

KIT = Path(__file__).resolve().parent
"""The folder of the kit: `ensure`, `lab`, `schemas` and the rest."""

WHY = (
    "the Kubernetes tools are not built: `make kube-tools` does it once, in about 5 minutes (Debian 12, root, Go 1.26)"
)
"""What a test that is skipped for want of them says."""


@cache
def tools() -> Path | None:
    """Folder of the built tools; None where they are not built or something they need is missing; builds nothing."""
    bash = shutil.which("bash")
    if bash is None:
        return None
    found = subprocess.run([bash, str(KIT / "ensure"), "--print"], capture_output=True, text=True, check=False)
    return Path(found.stdout.strip()) if found.returncode == 0 else None
