"""One log out of many: a line of a service's JSON log as a value, and that value as a line for people or for
programs. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from lockstep_cli.services import SERVICES

__all__ = ["LogLine", "as_json", "as_text", "parse"]

_COLOURS = {"debug": "2", "warning": "33", "error": "31", "critical": "31;1"}
_WIDTH = max(map(len, SERVICES))


@dataclass(frozen=True, slots=True)
class LogLine:
    """One event: when (ISO 8601 with its offset), who, about which flow (empty: none), what, and the facts beside
    it."""

    time: str
    level: str
    service: str
    flow: str
    message: str
    facts: dict[str, Any] = field(default_factory=dict)


def parse(service: str, text: str, now: str) -> LogLine:
    """The event behind a line that `service` wrote. A line that is no JSON log line (a traceback, a warning of the
    JVM) is its own message, at the time it was read."""
    text = text.rstrip()
    if text.startswith("{"):
        try:
            body = json.loads(text)
        except ValueError:
            body = {}
        if isinstance(body.get("message"), str):
            message, level = body.pop("message"), str(body.pop("level", "info")).lower()
            time, flow = str(body.pop("time", now)), str(body.pop("flow", ""))
            body.pop("service", None)
            return LogLine(time, level, service, flow, message, body)
    return LogLine(now, "info", service, "", text)


def as_json(line: LogLine) -> str:
    """One JSON object, the service among its keys whoever wrote it."""
    head = {"time": line.time, "level": line.level, "service": line.service}
    if line.flow:
        head["flow"] = line.flow
    return json.dumps({**head, "message": line.message, **line.facts}, ensure_ascii=False)


def as_text(line: LogLine, *, flow_width: int, colours: bool, zone: tzinfo | None = None) -> str:
    """One compact line: time of day (in `zone`, the local one by default), service, flow, message, facts as
    key=value."""

    def painted(code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colours and text and code else text

    try:
        clock = datetime.fromisoformat(line.time).astimezone(zone).strftime("%H:%M:%S")
    except ValueError:
        clock = line.time
    colour = _COLOURS.get(line.level, "")
    level = f"{line.level}: " if line.level in ("warning", "error", "critical") else ""
    head = (painted("2", clock), painted("36", line.service.ljust(_WIDTH)), painted("35", line.flow.ljust(flow_width)))
    # A trace goes below its line, as it was; everything else stays on the line.
    below = "".join(f"\n{line.facts[key]}" for key in ("trace", "exception") if line.facts.get(key))
    facts = " ".join(f"{key}={_short(value)}" for key, value in line.facts.items() if key not in ("trace", "exception"))
    return "  ".join((*head, painted(colour, level + line.message), painted("2", facts))).rstrip() + below


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if " " in text else text
