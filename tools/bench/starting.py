"""How long a system takes from its start to the first copied record, and what it holds when it has nothing to do."""

import time
from pathlib import Path

from tests.support.eventually import NeverHappened, wait_until
from tools.bench.clusters import Clusters
from tools.bench.figures import Start
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.wire import Connection, end_offsets

FIRST_RECORD_WITHIN_S = 240.0
IDLE_S = 10.0
STARTS = 3


def start(
    clusters: Clusters, topic: str, partitions: int, records: int, system: System, file: Path, log: Path
) -> Start:
    """Start a system several times, each time on a clean target.

    Look at it idle after the last start. Raises SystemEnded.
    """
    seconds = []
    for turn in range(STARTS):
        clusters.begin_anew(keep=[topic])
        with SystemRun(system, file, log) as run, Connection(clusters.target) as target:

            def copied(run: SystemRun = run, target: Connection = target) -> int:
                run.check()
                return sum(end_offsets(target, f"A.{topic}", partitions))

            try:
                wait_until(copied, within=FIRST_RECORD_WITHIN_S, every=0.02)
                seconds.append(run.elapsed())
                wait_until(lambda: copied() >= records, within=FIRST_RECORD_WITHIN_S)
            except NeverHappened as never:
                raise SystemEnded(f"not all was copied within {FIRST_RECORD_WITHIN_S:.0f} s") from never
            if turn == STARTS - 1:
                time.sleep(IDLE_S)  # let it come to rest
                before, began = run.use(), time.perf_counter()
                time.sleep(IDLE_S)
                share = run.use().since(before).total / (time.perf_counter() - began)
                idle = tuple(run.resident())
    return Start(seconds=tuple(seconds), idle_rss=idle, idle_cpu_share=share, log=log.name)
