"""`lockstep` as somebody types it."""

import subprocess
import sys
from pathlib import Path


def lockstep(*arguments: str | Path, code: int = 0, stdin: str = "", within: float = 120.0) -> str:
    """Return what a command prints (both streams); it ends with `code` and without a traceback. Its standard input is
    no terminal."""
    ran = subprocess.run(
        [sys.executable, "-m", "lockstep_cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
        input=stdin,
    )
    said = ran.stdout + ran.stderr
    assert "Traceback" not in said, said
    assert ran.returncode == code, said
    return said
