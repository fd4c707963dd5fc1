"""One fault after the other on a deployment, each ended by counting; and what came out, as values and as tables."""

import json
import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.counting import Count, count
from tests.faults.deployment import PARTITIONS, Deployment
from tests.faults.numbered import Writer, read_numbers
from tests.faults.scene import Scene
from tests.faults.striking import Fault
from tests.support.systems import SystemEnded

COLUMNS = ("fault", "times", "records", "lost", "doubled", "out of order", "went on after, s")
"""Of each table that shows outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``longest_s``: the longest time until every partition had grown again. ``failed`` says what did not come back."""

    fault: str
    times: int
    count: Count
    longest_s: float
    failed: str = ""

    @property
    def good(self) -> bool:
        return self.count.equal and not self.failed


def strike(there: Deployment, fault: Fault, seed: int, say: Callable[[str], None]) -> Outcome:
    """Write numbered records, strike, stop writing, let the copy catch up, and count.

    A deployment that does not recover is an outcome, not an exception; its clusters are made whole for the next fault.
    """
    topic = "fault-" + "".join(each if each.isalnum() else "-" for each in fault.name)
    dice = random.Random(seed ^ zlib.crc32(fault.name.encode()))  # its own, whichever others are run
    there.create(topic)
    there.longest_s, times, failed = 0.0, 0, ""
    try:
        log = there.folder / f"{topic}.writer.log"
        with Writer(there.source.bootstrap, topic, partitions=PARTITIONS, rate=fault.rate, log=log):
            there.goes_on(topic)
            there.longest_s = 0.0
            times = fault.strike(Scene(there, topic, dice, say))
            there.goes_on(topic)
        there.caught_up(topic)
    except (AssertionError, SystemEnded) as wrong:
        failed = f"{type(wrong).__name__}: {wrong}"
        say(f"{fault.name}: {failed}")
        there.heal()
        with suppress(AssertionError, SystemEnded):  # what is only late is not lost
            there.caught_up(topic)
    counted = count(read_numbers(there.source.bootstrap, topic), read_numbers(there.target_bootstrap, f"A.{topic}"))
    if not counted.equal:
        say(f"{fault.name}: {counted.first}")
    return Outcome(fault=fault.name, times=times, count=counted, longest_s=there.longest_s, failed=failed)


def as_json(outcomes: Iterable[Outcome], seed: int) -> str:
    """``{"seed": ..., "faults": [{"fault", "times", "lost", "doubled", ...}]}``."""
    faults: list[dict[str, Any]] = [
        {
            "fault": each.fault,
            "times": each.times,
            "lost": each.count.lost,
            "doubled": each.count.doubled,
            "displaced": each.count.displaced,
            "records": each.count.records,
            "longest_s": round(each.longest_s, 1),
            **({"failed": each.failed} if each.failed else {}),
        }
        for each in outcomes
    ]
    return json.dumps({"seed": seed, "faults": faults}, indent=2) + "\n"


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """The table of `docs/reference/reliability.md`."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for outcome in outcomes:
        count = outcome.count
        cells = (
            outcome.fault + (" (did not recover)" if outcome.failed else ""),
            str(outcome.times),
            f"{count.records:,}",
            f"{count.lost:,}",
            f"{count.doubled:,}",
            f"{count.displaced:,}",
            f"{outcome.longest_s:.1f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write(output: Path, outcomes: Sequence[Outcome], seed: int) -> None:
    """``latest.json`` and ``latest.md``, after each fault, so that what is cut short leaves what it has."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "latest.json").write_text(as_json(outcomes, seed))
    (output / "latest.md").write_text(as_markdown(outcomes))
