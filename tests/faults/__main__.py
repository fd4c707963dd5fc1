"""``make faults``: break a running Lockstep in every way there is, and count. See ``docs/reference/reliability.md``."""

import argparse
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.faults.deployment import Deployment, in_transactions, one_broker_each, three_broker_target
from tests.faults.striking import FAULTS, IN_TRANSACTIONS, THREE_BROKERS, Fault
from tests.faults.suite import COLUMNS, Outcome, strike, write

WIDTH = 120  # where there is no terminal to ask
Deploy = Callable[[Path, Path], AbstractContextManager[Deployment]]


def arguments(environ: Mapping[str, str]) -> argparse.Namespace:
    """The command line; what is not given there is taken from the environment, as make hands it on."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument(
        "--only", default=environ.get("ONLY") or "", help="faults whose name contains one of these words"
    )
    seed = environ.get("SEED")
    parser.add_argument("--seed", type=int, default=int(seed) if seed else secrets.randbelow(1_000_000))
    parser.add_argument("--output", type=Path, default=Path("build/faults"))
    chosen = parser.parse_args()
    chosen.words = [each.strip() for each in chosen.only.split(",") if each.strip()]
    return chosen


def main() -> int:
    """Exit code 0 when no record was lost, doubled or out of order and everything recovered."""
    chosen = arguments(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that brokers and services are ended
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    began = time.monotonic()

    def say(line: str) -> None:
        words = f"{time.monotonic() - began:6.1f}  {line}"
        console.print(words, style="dim", markup=False, highlight=False, soft_wrap=True)

    say(f"SEED={chosen.seed}")
    outcomes: list[Outcome] = []
    groups: list[tuple[Deploy, list[Fault]]] = [
        (deploy, [each for each in faults if not chosen.words or any(word in each.name for word in chosen.words)])
        for deploy, faults in (
            (one_broker_each, FAULTS),
            (in_transactions, IN_TRANSACTIONS),
            (three_broker_target, THREE_BROKERS),
        )
    ]
    if not any(faults for _, faults in groups):
        print(f"no fault has {chosen.only!r} in its name", file=sys.stderr)  # noqa: T201 - a command line's mistake
        return 2
    chosen.output.mkdir(parents=True, exist_ok=True)
    for deploy, faults in groups:
        if not faults:
            continue
        log = chosen.output / f"{deploy.__name__}.log"
        with tempfile.TemporaryDirectory(prefix="lockstep-faults-") as folder, deploy(Path(folder), log) as there:
            for fault in faults:
                say(fault.name)
                outcomes.append(strike(there, fault, chosen.seed, say))
                write(chosen.output, outcomes, chosen.seed)
    console.print(_drawn(outcomes))
    say(f"Written: {chosen.output}/latest.json, {chosen.output}/latest.md; SEED={chosen.seed} strikes so again")
    return 0 if all(each.good for each in outcomes) else 1


def _drawn(outcomes: list[Outcome]) -> Table:
    drawn = Table(COLUMNS[0])
    for name in COLUMNS[1:]:
        drawn.add_column(name, justify="right")
    for outcome in outcomes:
        count = outcome.count
        cells = (count.records, count.lost, count.doubled, count.displaced)
        name = f"{outcome.fault}\n{outcome.failed}" if outcome.failed else outcome.fault
        drawn.add_row(
            name,
            str(outcome.times),
            *(f"{cell:,}" for cell in cells),
            f"{outcome.longest_s:.1f}",
            style=None if outcome.good else "red",
        )
    return drawn


if __name__ == "__main__":
    sys.exit(main())
