"""What a system holds in memory while it catches up with much: each slot, and everything together."""

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tools.bench.clusters import Clusters
from tools.bench.figures import MEBIBYTE
from tools.bench.load import Loaded
from tools.bench.readings import Readings
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.wire import Connection, end_offsets

SAMPLE_S = 0.2
FIRST_RECORD_WITHIN_S = 240.0
STANDSTILL_S = 60.0
SPARE = 2 << 30  # what must be left on the disk beside both copies


class NoRoom(Exception):
    """The disk has no room for the backlog and its copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What lies on the source when the system starts."""

    clusters: Clusters
    topic: str
    partitions: int
    loaded: Loaded


def room_for(size: int) -> None:
    """Raises NoRoom when the temporary folder has none for twice ``size`` bytes."""
    folder = tempfile.gettempdir()
    free, wanted = shutil.disk_usage(folder).free, 2 * size + SPARE
    if free < wanted:
        raise NoRoom(f"{wanted / 1e9:.0f} GB are needed in {folder} (TMPDIR moves it), {free / 1e9:.0f} GB are free")


def catch_up(backlog: Backlog, system: System, file: Path, log: Path) -> Readings:
    """Run a system until all is copied, looking at its processes all the time. Raises SystemEnded."""
    wanted = backlog.loaded.records
    slot_peak = seen = 0
    moved = 0.0
    with SystemRun(system, file, log) as run, Connection(backlog.clusters.target) as target:
        while seen < wanted:
            time.sleep(SAMPLE_S)
            run.check()
            run.use()
            slot_peak = max([slot_peak, *run.slots()])
            there = sum(end_offsets(target, f"A.{backlog.topic}", backlog.partitions))
            if there > seen:
                seen, moved = there, run.elapsed()
            elif run.elapsed() - moved > (STANDSTILL_S if seen else FIRST_RECORD_WITHIN_S):
                raise SystemEnded(f"{seen} of {wanted} records copied, then nothing more")
        total_s, peak = run.elapsed(), run.account.peak_rss
    rate = wanted / total_s
    return Readings(
        values={
            "slot_peak_rss_mib": slot_peak / MEBIBYTE,
            "peak_rss_mib": peak / MEBIBYTE,
            "records_per_s": rate,
            "mb_per_s": rate * backlog.loaded.record_bytes / 1e6,
            "total_s": total_s,
        },
        log=log.name,
    )
