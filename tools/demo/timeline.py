"""The steps of a start, by Lockstep's log of JSON lines: when each service, Spark and the slots were there. Pure.

The steps between the information lines (`group joined`, `JVM launched`, `first records`) are in a log of level debug.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

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
    """The steps in the order of their times. Lines that are no JSON objects of a log are passed over."""
    began: datetime | None = None
    found: dict[tuple[str, str, str], StartStep] = {}
    for at, body in _bodies(lines):
        began = began or at
        service, flow, message = (str(body.get(key, "")) for key in ("service", "flow", "message"))
        if message in STEPS and (service, flow, message) not in found:
            text = str(body.get("text", ""))
            found[service, flow, message] = StartStep((at - began).total_seconds(), service, flow, message, text)
    return sorted(found.values(), key=lambda step: step.seconds)


def as_text(steps: Iterable[StartStep]) -> str:
    """A line for each step."""
    return "\n".join(
        f"{step.seconds:7.2f} s  {step.service:<10}  {step.flow:<6}  {step.message}  {step.text}".rstrip()
        for step in steps
    )


def _bodies(lines: Iterable[str]) -> Iterator[tuple[datetime, dict[str, object]]]:
    for line in lines:
        try:
            body = json.loads(line)
            yield datetime.fromisoformat(body["at"]), body
        except (ValueError, TypeError, KeyError):
            continue  # such as a traceback, or a warning of the JVM
