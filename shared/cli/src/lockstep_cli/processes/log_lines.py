"""The lines of a run's log, for people or for programs, made of services' JSON log lines. Pure."""

import json
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from lockstep_ops.services import SERVICES
from lockstep_runtime.telemetry.log import json_line

_COLOURS = {"debug": "2", "warning": "33", "error": "31", "critical": "31;1"}
_WIDTH = max(map(len, SERVICES))


_NOISE = ("WARNING: Using incubator modules",)
"""The warnings of Spark's JVM at each start about which no operator can do anything."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One event: when (ISO 8601 with its offset), which service, which flow (empty: none), and what happened.

    `message` is constant for a kind of event. `text` tells the rest to people, `keys` to programs.
    """

    time: str
    level: str
    service: str
    flow: str
    message: str
    text: str = ""
    keys: dict[str, Any] = field(default_factory=dict)


def parse(process: str, text: str, now: str) -> LogLine:
    """Return the event of a line that a process wrote, of the service that the line names.

    A line that is no JSON log line (a traceback, a warning of the JVM) is its own message, at the time it was read.
    """
    text = text.rstrip()
    if text.startswith("{"):
        try:
            body = json.loads(text)
        except ValueError:
            body = {}
        if isinstance(body.get("message"), str):
            time, level = str(body.pop("at", now)), str(body.pop("level", "info"))
            flow, message, detail = str(body.pop("flow", "")), body.pop("message"), str(body.pop("text", ""))
            return LogLine(time, level, str(body.pop("service", process)), flow, message, detail, body)
    return LogLine(now, "debug" if text.startswith(_NOISE) else "info", process, "", text)


def as_json(line: LogLine) -> str:
    """Return one JSON object, as services write it."""
    return json_line(line.time, line.level, line.service, line.message, line.flow, line.text, line.keys)


def as_text(line: LogLine, *, flow_width: int, colours: bool, zone: tzinfo | None = None) -> str:
    """Return an event as a line: time of day, service, flow, what happened, and below it a traceback, if any.

    The time is in `zone`, else in the local one.
    """

    def painted(code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colours and code and text.strip() else text

    try:
        clock = datetime.fromisoformat(line.time).astimezone(zone).strftime("%H:%M:%S")
    except ValueError:
        clock = line.time
    level = f"{line.level}: " if line.level in ("warning", "error", "critical") else ""
    columns = (
        painted("2", clock),
        painted("36", line.service.ljust(_WIDTH)),
        painted("35", line.flow.ljust(flow_width)),
        painted(_COLOURS.get(line.level, ""), level + line.message),
        line.text,
        str(line.keys.get("error", "")),
    )
    trace = line.keys.get("traceback")
    return "  ".join(column for column in columns if column).rstrip() + (f"\n{trace}" if trace else "")
