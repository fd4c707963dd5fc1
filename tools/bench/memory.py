"""`python -m tools.bench.memory [--processes]`: what `lockstep run` of two flows holds at rest, by process.

Two brokers of its own, a topic of six partitions each way that was copied, then rest. Memory is proportional (PSS): a
page that several processes share counts in parts, so that the sum is what the machine lacks. Resident memory (RSS)
counts it for each. In MiB.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.broker import prepare, two_brokers
from tests.support.clusters import Record, create_topic, end_offsets, produce
from tests.support.eventually import wait_until
from tests.support.mm2 import properties
from tests.support.systems import SYSTEMS, SystemRun, with_processes
from tools.bench.results import OURS

WITHIN_S = 120.0
PARTITIONS, RECORDS = 6, 6_000
MIB = 2**20


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """One process, in bytes."""

    name: str
    pss: int
    rss: int


def name_process(command: Sequence[str], *, is_child_of_same: bool) -> str:
    """What a process of a run is, by its command line. `is_child_of_same`: its parent has the same one (a slot)."""
    if command[0].endswith("java"):
        return "Spark's JVM"
    if "lockstep_data_plane.spark.pyspark_daemon" in command:
        return "slot" if is_child_of_same else "Python daemon of the slots"
    if "lockstep_runtime.service.shared_process" in command:
        return "control services"
    if "lockstep_cli" in command:
        return "lockstep run"
    found = [word.removeprefix("lockstep_").replace("_", "-") for word in command if word.startswith("lockstep_")]
    return found[0] if found else command[0]


def read_memory(run: psutil.Process) -> list[ProcessMemory]:
    """Of the run and all that it started."""
    found = []
    for process in (run, *run.children(recursive=True)):
        command = process.cmdline()
        if not command:
            continue  # it has ended, and its parent has not waited for it
        parent = process.parent()
        memory = process.memory_full_info()
        same = parent is not None and parent.cmdline() == command
        found.append(ProcessMemory(name_process(command, is_child_of_same=same), memory.pss, memory.rss))
    return found


def as_table(processes: Iterable[ProcessMemory]) -> str:
    """A row for each kind of process, the largest first, and their sum."""
    by_name: dict[str, list[ProcessMemory]] = {}
    for one in processes:
        by_name.setdefault(one.name, []).append(one)
    lines = ["| process | how many | PSS | RSS |", "|---|---:|---:|---:|"]
    for name, those in sorted(by_name.items(), key=lambda item: -sum(one.pss for one in item[1])):
        lines.append(_row(name, those))
    return "\n".join([*lines, _row("all", [one for those in by_name.values() for one in those])])


def _row(name: str, those: Sequence[ProcessMemory]) -> str:
    pss, rss = sum(one.pss for one in those), sum(one.rss for one in those)
    return f"| {name} | {len(those)} | {pss / MIB:.0f} | {rss / MIB:.0f} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.memory", description=__doc__)
    parser.add_argument("--processes", action="store_true", help="each service in a process of its own")
    parser.add_argument("--rest", type=float, default=60.0, metavar="SECONDS", help="at rest before it is read")
    chosen = parser.parse_args()
    prepare(lambda line: None)
    lockstep = SYSTEMS[OURS]
    with tempfile.TemporaryDirectory(prefix="lockstep-memory-") as folder, two_brokers() as (a, b):
        file, log = Path(folder, "mm2.properties"), Path(folder, "lockstep.log")
        settings = {**lockstep.settings("none"), "B->A.enabled": "true"}
        file.write_text(properties(a.bootstrap, b.bootstrap, ".*", settings))
        copies = {}
        for source, target, alias in ((a, b, "A"), (b, a, "B")):
            topic = create_topic(source.bootstrap, f"{alias.lower()}-orders", partitions=PARTITIONS)
            produce(source.bootstrap, topic, [Record(value=b"x" * 500, partition=n % 6) for n in range(RECORDS)])
            copies[target.bootstrap] = f"{alias}.{topic}"
        with SystemRun(with_processes(lockstep) if chosen.processes else lockstep, file, log) as run:

            def are_copied() -> bool:
                run.check()
                return all(sum(end_offsets(*copy).values()) >= RECORDS for copy in copies.items())

            wait_until(are_copied, within=WITHIN_S, every=0.5, what="both topics are copied")
            time.sleep(chosen.rest)
            sys.stdout.write(as_table(read_memory(psutil.Process(run.pid))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
