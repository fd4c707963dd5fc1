"""The figures of the last recorded run of each part, in `recorded.json`. `make bench RECORD=1` replaces those of its
parts, and `docs/internals/bench-figures.md` shows them."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.bench.results import Scalar

FILE = Path(__file__).with_suffix(".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one part.

    Attributes:
        date: The day of the run, `2026-11-28`.
        commit: The commit whose code ran. It ends in `-dirty` if files were changed.
        machine: Cores, memory, and the CPU seconds of five million additions in Python.
        command: The command that measures the part again in the same way.
        figures: The flat keys of `latest.json` without the name of the part.
    """

    part: str
    date: str
    commit: str
    machine: str
    command: str
    figures: Mapping[str, Scalar]


def read(file: Path = FILE) -> list[Run]:
    """Return the recorded runs, in the order of the file."""
    return [Run(**entry) for entry in json.loads(file.read_text())]


def replaced(recorded: Iterable[Run], runs: Sequence[Run], order: Sequence[str]) -> list[Run]:
    """Return `recorded` with `runs` in the place of those of the same parts, in the order of `order`."""
    by_part = {run.part: run for run in (*recorded, *runs)}
    return [by_part[part] for part in order if part in by_part]


def write(runs: Iterable[Run], file: Path = FILE) -> None:
    """Write the whole file anew."""
    file.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n")


def runs_of(
    keys: Mapping[str, Scalar], parts: Sequence[str], *, date: str, commit: str, commands: Mapping[str, str]
) -> list[Run]:
    """Return the runs of one bench from its flat keys. A part in which a system failed is left out."""
    machine = "{cores} cores, {memory_gib} GiB, additions {additions_s} s".format(
        **{name: keys[f"environment.{name}"] for name in ("cores", "memory_gib", "additions_s")}
    )
    runs = []
    for part in parts:
        prefix = f"{part}."
        figures = {key.removeprefix(prefix): value for key, value in keys.items() if key.startswith(prefix)}
        if not any(key.startswith("failed.") for key in figures):
            runs.append(
                Run(part=part, date=date, commit=commit, machine=machine, command=commands[part], figures=figures)
            )
    return runs


def commit_of_checkout() -> str:
    """Return the commit of this checkout, with `-dirty` if tracked files were changed."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    done = subprocess.run(command, cwd=FILE.parent, capture_output=True, text=True, check=True)
    return done.stdout.strip()
