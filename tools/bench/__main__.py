"""``make bench``: Lockstep beside MirrorMaker 2 and beside the limit of the brokers (``docs/internals/bench.md``)."""

import argparse
import json
import os
import platform
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from rich.console import Console

from tests.support import kafka_jars
from tests.support.broker import BrokerDied
from tests.support.eventually import NeverHappened
from tests.support.java import find_java, java_version
from tests.support.systems import SYSTEMS
from tools.bench import recorded
from tools.bench.clusters import two_clusters
from tools.bench.distance import Distance
from tools.bench.outages import KILLS
from tools.bench.parts import BY_DEFAULT, PARTS
from tools.bench.results import Result, Scalar, flat, markdown, show
from tools.bench.slow_cores import NotTaken, slow_cores
from tools.bench.stage import PARTITIONS, Stage

WIDTH = 110  # where there is no terminal to ask
OPTIONS: Mapping[str, tuple[float, str]] = {
    "RECORDS": (6_000_000, "records of a throughput part"),
    "BYTES": (5_000_000_000, "keys and values of the backlog of catch_up"),
    "BATCH_BYTES": (256 << 10, "largest batch in the source's log, before compression"),
    "LATENCY_SECONDS": (30, "how long latency is measured"),
    "WARM_UP_SECONDS": (15, "how long it is not, before that"),
    "SLOW_CORES": (0.0, "the share of each core that a process of real-time priority takes, as on a busy host"),
    "SEED": (secrets.randbelow(1_000_000), "the moments of kills; drawn if none is given"),
}


def arguments(environ: Mapping[str, str]) -> argparse.Namespace:
    """Read the command line. An option that is not given there comes from the environment, as make hands it on."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default=environ.get("ONLY") or "all", help=f"with commas: {', '.join(PARTS)}")
    parser.add_argument("--systems", default=environ.get("SYSTEMS") or ",".join(SYSTEMS), help="with commas")
    for name, (default, meaning) in OPTIONS.items():
        kind = type(default)
        option = "--" + name.lower().replace("_", "-")
        parser.add_argument(
            option, type=kind, default=kind(environ.get(name) or default), help=f"{meaning} (%(default)s)"
        )
    parser.add_argument("--output", type=Path, default=Path("build/bench"))
    parser.add_argument(
        "--record",
        action="store_true",
        default=bool(environ.get("RECORD")),
        help="keep the figures of these parts for docs/internals/bench-figures.md",
    )
    chosen = parser.parse_args()
    chosen.parts = BY_DEFAULT if chosen.only == "all" else tuple(chosen.only.split(","))
    chosen.systems = tuple(chosen.systems.split(","))
    for given, choices in ((chosen.parts, PARTS), (chosen.systems, SYSTEMS)):
        if unknown := [name for name in given if name not in choices]:
            parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(choices)}")
    if not 0 <= chosen.slow_cores < 1:
        parser.error("--slow-cores is a share of a core: 0.33 takes a third")
    if chosen.records < PARTITIONS:
        parser.error(f"at least {PARTITIONS} records, one a partition")
    return chosen


def command(chosen: argparse.Namespace, part: str) -> str:
    """Return the command that measures a part in the same way."""
    usual: dict[str, object] = {name: value for name, (value, _) in OPTIONS.items() if name != "SEED"}
    given = {name: getattr(chosen, name.lower()) for name in usual}
    usual["SYSTEMS"], given["SYSTEMS"] = ",".join(SYSTEMS), ",".join(chosen.systems)
    if part == KILLS:
        given["SEED"] = chosen.seed
    settings = (f"{name}={value}" for name, value in given.items() if value != usual.get(name))
    return " ".join([f"make bench ONLY={part}", *settings])


def environment() -> Mapping[str, Scalar]:
    """Return what the figures depend on besides the code; the load says whether the machine was quiet."""
    return {
        "cores": os.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / (1 << 30), 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "java": java_version(find_java()),
        "kafka": kafka_jars.VERSION,
        "load_before": round(os.getloadavg()[0], 2),
        "additions_s": round(_additions_s(), 2),
    }


def _additions_s() -> float:
    """Return the CPU seconds of five million additions, the median of three: how fast a core is now."""
    durations = []
    for _ in range(3):
        began, total = time.process_time(), 0
        for number in range(5_000_000):
            total += number
        durations.append(time.process_time() - began)
    return sorted(durations)[1]


def main() -> int:
    """Run the bench. Return 0 if every system did what was asked, 1 if one failed or the bench could not go on."""
    chosen = arguments(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that brokers and systems are ended
    console = Console(width=None if sys.stdout.isatty() else WIDTH)

    def say(line: str) -> None:
        console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)

    machine, results = {**environment(), "slow_cores": chosen.slow_cores}, list[Result]()
    commit = recorded.commit_of_checkout() if chosen.record else ""
    source_afar, target_afar = Distance(), Distance()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="lockstep-bench-") as work,
            slow_cores(chosen.slow_cores),
            two_clusters(source_afar, target_afar) as pair,
        ):
            stage = Stage(
                clusters=pair,
                source_afar=source_afar,
                target_afar=target_afar,
                systems=[SYSTEMS[name] for name in chosen.systems],
                records=chosen.records,
                backlog_bytes=chosen.bytes,
                batch_bytes=chosen.batch_bytes,
                measured_s=chosen.latency_seconds,
                warm_up_s=chosen.warm_up_seconds,
                seed=chosen.seed,
                output=chosen.output,
                work=Path(work),
                say=say,
            )
            for name in chosen.parts:
                results.append(PARTS[name].run(stage))
                write(chosen.output, results, machine)
    except (BrokerDied, KafkaException, NotTaken, NeverHappened, TimeoutError) as broken:
        console.print(f"The bench itself could not go on: {broken}", style="red", markup=False)
        return 1
    show(results, console)
    say(f"Written: {chosen.output}/latest.md, {chosen.output}/latest.json; logs in {chosen.output}/logs")
    if chosen.record:
        runs = recorded.runs_of(
            flat(results, machine),
            chosen.parts,
            date=datetime.now(UTC).date().isoformat(),
            commit=commit,
            commands={part: command(chosen, part) for part in chosen.parts},
        )
        recorded.write(recorded.replaced(recorded.read(), runs, tuple(PARTS)))
        say(f"Recorded: {', '.join(run.part for run in runs) or 'nothing, as each part failed'}. `make docs` shows it")
    return 1 if any(result.failures() for result in results) else 0


def write(output: Path, results: Sequence[Result], machine: Mapping[str, Scalar]) -> None:
    """Write the results so far, so that a bench that is cut short leaves them."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "latest.md").write_text(markdown(results, machine))
    (output / "latest.json").write_text(json.dumps(flat(results, machine), indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
