"""The steps of a start, by Lockstep's log of JSON lines: when each service, Spark and the slots were there. Pure.

The steps between the information lines (`group joined`, `JVM launched`, `first records`) are in a log of level debug.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lockstep_cli.processes.log_lines import parse

STEPS = frozenset(
    {
        "started",
        "control topic created",
        "ready",
        "group joined",
        "leading",
        "topic created",
        "JVM launched",
        "JVM started",
        "spark ready",
        "slot started",
        "first records",
    }
)
"""Messages of lines that are a step. Only the first such line of a service in a flow counts."""


@dataclass(frozen=True, slots=True)
class StartStep:
    """Something that happened for the first time, `seconds` after the first line of the log."""

    seconds: float
    service: str
    flow: str
    message: str
    text: str = ""


def read_steps(lines: Iterable[str]) -> list[StartStep]:
    """Return the steps in the order of their times. Lines that are no JSON objects of a log are passed over."""
    began: datetime | None = None
    steps: dict[tuple[str, str, str], StartStep] = {}
    for line in (parse("", text, "") for text in lines):
        if not line.time:
            continue  # such as a traceback, or a warning of the JVM
        moment = datetime.fromisoformat(line.time)
        began = began or moment
        kind = line.service, line.flow, line.message
        if line.message in STEPS and kind not in steps:
            steps[kind] = StartStep((moment - began).total_seconds(), *kind, line.text)
    return sorted(steps.values(), key=lambda step: step.seconds)


def as_text(steps: Iterable[StartStep]) -> str:
    """Return a line for each step."""
    return "\n".join(
        f"{step.seconds:7.2f} s  {step.service:<10}  {step.flow:<6}  {step.message}  {step.text}".rstrip()
        for step in steps
    )
