"""The log: one line for each event that matters, for people or (`--log-format json`) one JSON object a line.

    12:00:01 topic-sync A->B  topic created  orders -> A.orders (8 partitions)

A message is constant text; what varies is the `text` beside it and keys of its own. Tracebacks appear at level debug
only.
"""

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, TextIO

from lockstep_state.names import Flow

SERVICE = "service"
FLOW = "flow"
TEXT = "text"
KEYS = "keys"

LIBRARIES = ("faust", "mode", "aiokafka", "aiohttp", "kafka", "py4j", "opentelemetry", "urllib3", "botocore")
"""The loggers of libraries, which are silent unless the level is debug. Lockstep logs what matters of them itself."""

STARTS_AND_STOPS = frozenset({"faust", "mode"})
"""The libraries that log each start and stop of their parts at level info (`[^-Consumer]: Starting...`). These lines
are shown at level debug only.
"""

LogFormat = Literal["text", "json"]

_NO_KEYS = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", SERVICE, FLOW, TEXT, KEYS))
"""The attributes of a log record that are not keys given as `extra`."""


def configure(
    service: str,
    level: str = "info",
    log_format: LogFormat = "text",
    stream: TextIO | None = None,
    *,
    libraries: str | None = None,
) -> None:
    """Send everything of `level` and graver to `stream`, which is standard error by default.

    It replaces the former configuration.

    Args:
        service: The service's name in each line.
        level: The lowest level that is logged.
        log_format: Lines for people, or JSON.
        stream: The destination.
        libraries: The level of the libraries' loggers; by default WARNING at level debug, else none.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(service) if log_format == "json" else CompactLines(service))
    root = logging.getLogger()
    for old_handler in list(root.handlers):
        root.removeHandler(old_handler)
    root.addHandler(handler)
    debug = level.lower() == "debug"
    if not debug:
        handler.addFilter(_has_a_logger)
    root.setLevel(level.upper())
    usual = logging.WARNING if debug else logging.CRITICAL + 1
    library_level = logging.getLevelNamesMapping()[libraries.upper()] if libraries else usual
    for name in LIBRARIES:
        # asyncio's own logger stays: an exception that was not awaited must be seen.
        quiet = name in STARTS_AND_STOPS and library_level == logging.INFO
        logging.getLogger(name).setLevel(logging.WARNING if quiet else library_level)


def _has_a_logger(record: logging.LogRecord) -> bool:
    """Return whether the line is not one that py4j gives to the root logger, as about a JVM that ended."""
    return record.name != "root" or record.levelno >= logging.WARNING


class CompactLines(logging.Formatter):
    """A formatter of lines: time of day, service, flow, message and text. A level is shown from warning on."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        time_of_day = time.strftime("%H:%M:%S", time.localtime(record.created))
        flow = getattr(record, FLOW, "")
        text = getattr(record, TEXT, "")
        source = f"{getattr(record, SERVICE, self._service)} {flow}".rstrip()
        loud = f"{record.levelname} " if record.levelno >= logging.WARNING else ""
        parts = f"{time_of_day} {source}", f"{loud}{record.getMessage()}", str(text)
        line = "  ".join(filter(None, parts))
        return line + self._traceback(record)

    def _traceback(self, record: logging.LogRecord) -> str:
        if record.exc_info and record.exc_info[1] is not None:
            if logging.getLogger().level <= logging.DEBUG:
                return "\n" + self.formatException(record.exc_info)
            return f"  {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        return ""


def utc_text(seconds: float) -> str:
    """Return Unix seconds in the form of JSON lines: ISO 8601 in UTC, to the millisecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"


def json_line(
    time_text: str, level: str, service: str, message: str, flow: str, text: str, keys: Mapping[str, Any]
) -> str:
    """Return a line of a JSON log of a service or of a run.

    `flow` and `text` are left out if they are empty. The keys of the event follow.
    """
    body: dict[str, Any] = {"at": time_text, "level": level, SERVICE: service, "message": message}
    body.update({key: value for key, value in ((FLOW, flow), (TEXT, text)) if value})
    return json.dumps({**body, **keys}, ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """A formatter of JSON lines (`json_line`). `error` and, at level debug, `traceback` follow the event's own keys."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        keys = dict(getattr(record, KEYS, {}))
        if record.name.startswith("lockstep"):
            keys.update({key: value for key, value in vars(record).items() if key not in _NO_KEYS})
        if record.exc_info and record.exc_info[1] is not None:
            keys["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            if logging.getLogger().level <= logging.DEBUG:
                keys["traceback"] = self.formatException(record.exc_info)
        return json_line(
            utc_text(record.created),
            record.levelname.lower(),
            getattr(record, SERVICE, self._service),
            record.getMessage(),
            str(getattr(record, FLOW, "")),
            str(getattr(record, TEXT, "")),
            keys,
        )


class FlowLog:
    """The log of one flow of one service."""

    def __init__(self, service: str, flow: Flow | str) -> None:
        self._log = logging.getLogger(f"lockstep.{service}")
        self._extra = {SERVICE: service, FLOW: str(flow)}

    def info(self, message: str, text: str = "", *, level: int = logging.INFO, **keys: Any) -> None:
        """Log one line.

        Args:
            message: The text that is constant for a kind of event.
            text: The variable text for people.
            level: The level of the line.
            keys: JSON values for machines.
        """
        self._log.log(level, message, extra=self._with(text, keys))

    def warn(self, message: str, text: str = "", **keys: Any) -> None:
        self._log.log(logging.WARNING, message, extra=self._with(text, keys))

    def debug(self, message: str, text: str = "", **keys: Any) -> None:
        self._log.log(logging.DEBUG, message, extra=self._with(text, keys))

    def failed(self, message: str, cause: BaseException) -> None:
        """Log an error with its cause in the same line. Its traceback appears at level debug only."""
        self._log.log(logging.ERROR, message, exc_info=cause, extra=self._with("", {}))

    def _with(self, text: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._extra, TEXT: text, KEYS: dict(keys)}
