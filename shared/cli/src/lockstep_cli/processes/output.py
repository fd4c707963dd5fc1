"""The one log of a run: every service's lines and the run's own, on standard output."""

import os
import sys
import time
from collections.abc import Callable, Mapping

from lockstep_cli.processes.log_lines import LogLine, as_json, as_text, parse
from lockstep_cli.processes.supervisor import ServicePages
from lockstep_cli.rendering.result import discard_output
from lockstep_runtime.telemetry.log import utc_text

RUN = "run"
"""The text in the service column for events of the run itself."""

ONCE = "once"
"""The key of a line that each process may write. Of the lines with the same value only the first is shown."""

LEVELS = ("debug", "info", "warning", "error", "critical")


class RunOutput:
    """The log of a run, with one line per event as it comes.

    Args:
        level: The least level that is written.
        json_lines: Whether a line is JSON.
        flow_width: The width of the column of flows, in the text form.
        levels: The least levels of services that have their own.
    """

    def __init__(
        self, *, level: str, json_lines: bool, flow_width: int, levels: Mapping[str, str] | None = None
    ) -> None:
        self._least = LEVELS.index(level)
        self._levels = {service: LEVELS.index(least) for service, least in (levels or {}).items()}
        self._json_lines = json_lines
        self._flow_width = flow_width
        self._colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._on_closed: Callable[[], None] = lambda: None
        self._closed = False
        self._written: set[str] = set()

    def when_closed(self, end: Callable[[], None]) -> None:
        """Call `end` when the log has no reader any more, at once if it has none already.

        An example is `lockstep run FILE | head`.
        """
        self._on_closed = end
        if self._closed:
            end()

    def log(self, level: str, message: str, flow: str = "") -> None:
        """Write an event of the run itself."""
        self._write(LogLine(_now(), level, RUN, flow, message))

    def add_line(self, process: str, text: str) -> ServicePages | None:
        """Write a line of a process, and return the address of a service's pages if the line has it.

        The address is `http://host:port`, or `https`.
        """
        if not text.strip():
            return None
        line = parse(process, text, _now())
        address = line.keys.get("address")
        self._write(line)
        return ServicePages(line.service, address) if isinstance(address, str) else None

    def _write(self, line: LogLine) -> None:
        least = self._levels.get(line.service, self._least)
        if line.level in LEVELS and LEVELS.index(line.level) < least:
            return
        if (once := str(line.keys.pop(ONCE, ""))) in self._written:
            return
        self._written |= {once} - {""}
        if LEVELS[least] != "debug":  # another service of its process may be at that level, and the process with it
            line.keys.pop("traceback", None)
        text = as_json(line) if self._json_lines else as_text(line, flow_width=self._flow_width, colours=self._colours)
        try:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            discard_output()
            self._closed = True
            self._on_closed()


def _now() -> str:
    return utc_text(time.time())
