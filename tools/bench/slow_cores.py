"""Cores as those of a busy host: a process of real-time priority takes a part of each, some 11,000 times a second.

`python -m tools.bench.slow_cores CORE SHARE` is one such process. It needs root, or CAP_SYS_NICE.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support import processes

PERIOD_S = 90e-6
PRIORITY = 50
STARTS_WITHIN_S = 1.0


class NotTaken(Exception):
    """No part of a core could be taken."""


@contextmanager
def slow_cores(share: float) -> Iterator[None]:
    """Take this share (0 to below 1) of each core that this process may use, until the end. Raises NotTaken."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        log = Path(folder, "slow_cores.log")
        command = (sys.executable, "-m", "tools.bench.slow_cores")
        cores = sorted(os.sched_getaffinity(0)) if share > 0 else []
        started = [processes.spawn([*command, str(core), str(share)], output=log) for core in cores]
        for process in started:
            stack.callback(processes.end, process)
        if started:
            time.sleep(STARTS_WITHIN_S)
        if any(process.poll() is not None for process in started):
            raise NotTaken(f"no part of the cores is taken: {processes.tail(log, 1)}")
        yield


def occupy(core: int, share: float) -> None:
    """Take a part of the core for ever. Raises PermissionError."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    busy_s, rest_s, clock = share * PERIOD_S, (1 - share) * PERIOD_S, time.perf_counter
    while True:
        until = clock() + busy_s
        while clock() < until:
            pass
        time.sleep(rest_s)


if __name__ == "__main__":
    occupy(int(sys.argv[1]), float(sys.argv[2]))
