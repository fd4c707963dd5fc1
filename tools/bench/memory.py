"""`python -m tools.bench.memory [--processes]`: what `lockstep run` of two flows holds at rest, by process.

Two brokers of its own, a topic of six partitions each way that was copied, then rest. Memory is proportional (PSS): a
page that several processes share counts in parts, so that the sum is what the machine lacks. Resident memory (RSS)
counts it for each. In MiB.
"""

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.support.broker import prepare, two_brokers
from tests.support.clusters import Record, create_topic, end_offsets, produce
from tests.support.mm2 import properties
from tests.support.systems import SYSTEMS, SystemRun, with_processes
from tools.bench.results import OURS

WITHIN_S = 120.0
PARTITIONS, RECORDS = 6, 6_000
MIB = 2**20
KINDS = {
    "lockstep_data_plane.spark.pyspark_daemon": "Python daemon of the slots",
    "lockstep_runtime.service.shared_process": "control services",
    "lockstep_cli": "lockstep run",
}


def name_process(command: Sequence[str], *, is_child_of_same: bool) -> str:
    """Return what a process of a run is, by its command line. `is_child_of_same`: as its parent has (a slot)."""
    if command[0].endswith("java"):
        return "Spark's JVM"
    kind = next((kind for module, kind in KINDS.items() if module in command), "")
    if is_child_of_same and "daemon" in kind:
        return "slot"
    own = (word.removeprefix("lockstep_").replace("_", "-") for word in command if word.startswith("lockstep_"))
    return kind or next(own, command[0])


def memory_table(run: psutil.Process) -> str:
    """Return a row for each kind of process of the run, the largest first, and their sum."""
    counts: Counter[str] = Counter()
    bytes_of: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for process in (run, *run.children(recursive=True)):
        command = process.cmdline()
        if not command:
            continue  # it has ended, and its parent has not waited for it
        parent, memory = process.parent(), process.memory_full_info()
        kind = name_process(command, is_child_of_same=parent is not None and parent.cmdline() == command)
        for name in (kind, "all"):
            counts[name] += 1
            bytes_of[name] = bytes_of[name][0] + memory.pss, bytes_of[name][1] + memory.rss
    rows = sorted(bytes_of.items(), key=lambda item: (item[0] == "all", -item[1][0]))
    cells = (f"| {name} | {counts[name]} | {pss / MIB:.0f} | {rss / MIB:.0f} |" for name, (pss, rss) in rows)
    return "\n".join(["| process | how many | PSS | RSS |", "|---|---:|---:|---:|", *cells])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.memory", description=__doc__)
    parser.add_argument("--processes", action="store_true", help="each service in a process of its own")
    parser.add_argument("--rest", type=float, default=60.0, metavar="SECONDS", help="at rest before it is read")
    chosen = parser.parse_args()
    prepare(lambda line: None)
    lockstep = with_processes(SYSTEMS[OURS]) if chosen.processes else SYSTEMS[OURS]
    with tempfile.TemporaryDirectory(prefix="lockstep-memory-") as folder, two_brokers() as (a, b):
        file, log = Path(folder, "mm2.properties"), Path(folder, "lockstep.log")
        settings = {**lockstep.settings("none"), "B->A.enabled": "true"}
        file.write_text(properties(a.bootstrap, b.bootstrap, ".*", settings))
        copies = {}
        for source, target, alias in ((a, b, "A"), (b, a, "B")):
            topic = create_topic(source.bootstrap, f"{alias.lower()}-orders", partitions=PARTITIONS)
            produce(source.bootstrap, topic, [Record(value=b"x" * 500, partition=n % 6) for n in range(RECORDS)])
            copies[target.bootstrap] = f"{alias}.{topic}"
        with SystemRun(lockstep, file, log) as run:
            run.wait(
                lambda: all(sum(end_offsets(*copy).values()) >= RECORDS for copy in copies.items()),
                within=WITHIN_S,
                every=0.5,
                otherwise="the topics are not copied",
            )
            run.sleep(chosen.rest)
            sys.stdout.write(memory_table(psutil.Process(run.pid)) + "\n")


if __name__ == "__main__":
    main()
