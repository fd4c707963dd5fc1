"""What tests share that carry out a guide of `docs/guides` as it is written."""

import shlex
import subprocess
import sys
from collections.abc import Mapping

ONE_BROKER = """tasks.max = 1
replication.factor = 1
offset.storage.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""
"""What the file needs beyond the guide's because each cluster of the test is one broker."""


def run_guide_line(
    line: str, replacements: Mapping[str, str], *, codes: tuple[int, ...] = (0,), within: float = 180.0
) -> str:
    """Return what a `lockstep` command of a guide prints, with other words in the place of some of its arguments."""
    name, *arguments = shlex.split(line)
    assert name == "lockstep", line
    command = [sys.executable, "-m", "lockstep_cli", *(replacements.get(word, word) for word in arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=within, check=False)
    assert ran.returncode in codes, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr
