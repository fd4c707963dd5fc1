"""Programs of ours in Go, for what Go alone has: kfake, a Kafka in one process, and clients that others use.

A folder of theirs is a module, with versions and checksums in `go.mod` and `go.sum`. They are built once for each state
of these, into `.cache/go`, where there is a Go.
"""

import hashlib
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.support.source_modules import REPOSITORY

FRANZ_GO, CONNECT_CLIENT = Path(__file__).with_name("franz_go"), Path(__file__).with_name("connect_client")
BUILT = REPOSITORY / ".cache" / "go"
USUAL_PLACE = "/usr/local/go/bin"
"""Where Go's own archive is unpacked to."""


def find_go() -> Path | None:
    """Return the `go` to build with, if there is one."""
    program = shutil.which("go") or shutil.which("go", path=USUAL_PLACE)
    return Path(program) if program else None


@cache
def build_program(name: str, module: Path = FRANZ_GO) -> Path:
    """Return the program of this name, built first if need be (half a minute).

    Args:
        name: Its folder.
        module: The folder of its module.

    Raises:
        RuntimeError: Go does not build it.
    """
    digest = hashlib.sha256()
    for file in (module / "go.mod", module / "go.sum", module / name / "main.go"):
        digest.update(file.read_bytes())
    program = BUILT / f"{name}-{digest.hexdigest()[:12]}"
    if not program.exists():
        command = [str(find_go()), "build", "-p", "1", "-mod=readonly", "-buildvcs=false"]
        unfinished = program.with_suffix(".new")
        ran = subprocess.run(
            [*command, "-o", str(unfinished), f"./{name}"], cwd=module, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise RuntimeError(f"{name} is not built: {ran.stderr}")
        unfinished.rename(program)
    return program
