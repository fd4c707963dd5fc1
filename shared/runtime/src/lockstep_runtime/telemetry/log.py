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
"""Silent unless level debug is asked for: what matters of theirs we say in our own line."""

STARTS_AND_STOPS = frozenset({"faust", "mode"})
"""At level info these name each of their own parts that starts or stops (`[^-Consumer]: Starting...`): shown at
debug."""

LogFormat = Literal["text", "json"]

_NO_KEYS = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", SERVICE, FLOW, TEXT, KEYS))
"""What a record has beside the keys that its line was given as `extra`."""


def configure(
    service: str,
    level: str = "info",
    log_format: LogFormat = "text",
    stream: TextIO | None = None,
    *,
    libraries: str | None = None,
) -> None:
    """Send everything of `level` and graver to `stream` (standard error) from now on, and what `libraries` say at their
    own level. Replaces what was configured before.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(service) if log_format == "json" else CompactLines(service))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    debug = level.lower() == "debug"
    if not debug:
        handler.addFilter(_has_a_logger)
    root.setLevel(level.upper())
    usual = logging.WARNING if debug else logging.CRITICAL + 1
    asked = logging.getLevelNamesMapping()[libraries.upper()] if libraries else usual
    for name in LIBRARIES:
        # asyncio's own logger stays: an exception that was not awaited must be seen.
        quiet = name in STARTS_AND_STOPS and asked == logging.INFO
        logging.getLogger(name).setLevel(logging.WARNING if quiet else asked)


def _has_a_logger(record: logging.LogRecord) -> bool:
    """Whether a line is not one of those that py4j gives to the root logger, about a JVM that ended for example."""
    return record.name != "root" or record.levelno >= logging.WARNING


class CompactLines(logging.Formatter):
    """Time of day, service, flow, message, text; a level only when it is a warning or worse."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        flow = getattr(record, FLOW, "")
        text = getattr(record, TEXT, "")
        source = f"{getattr(record, SERVICE, self._service)} {flow}".rstrip()
        loud = f"{record.levelname} " if record.levelno >= logging.WARNING else ""
        line = "  ".join(part for part in (f"{at} {source}", f"{loud}{record.getMessage()}", str(text)) if part)
        return line + self._traceback(record)

    def _traceback(self, record: logging.LogRecord) -> str:
        if record.exc_info and record.exc_info[1] is not None:
            if logging.getLogger().level <= logging.DEBUG:
                return "\n" + self.formatException(record.exc_info)
            return f"  {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        return ""


class JsonLines(logging.Formatter):
    """`at` (ISO 8601, UTC), `level`, `service`, `message`, then `flow`, `text` and the event's own keys where there
    are any.
    """

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        body: dict[str, Any] = {
            "at": at,
            "level": record.levelname.lower(),
            SERVICE: getattr(record, SERVICE, self._service),
            "message": record.getMessage(),
        }
        for key in (FLOW, TEXT):
            if getattr(record, key, ""):
                body[key] = str(getattr(record, key))
        body.update(getattr(record, KEYS, {}))
        if record.name.startswith("lockstep"):
            body.update({key: value for key, value in vars(record).items() if key not in _NO_KEYS})
        if record.exc_info and record.exc_info[1] is not None:
            body["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            if logging.getLogger().level <= logging.DEBUG:
                body["traceback"] = self.formatException(record.exc_info)
        return json.dumps(body, ensure_ascii=False, default=str)


class FlowLog:
    """Says what happens in one flow of one service."""

    def __init__(self, service: str, flow: Flow | str) -> None:
        self._log = logging.getLogger(f"lockstep.{service}")
        self._extra = {SERVICE: service, FLOW: str(flow)}

    def info(self, message: str, text: str = "", *, level: int = logging.INFO, **keys: Any) -> None:
        """One line. `message` is constant per kind of event, `text` for people, `keys` for machines (JSON values)."""
        self._log.log(level, message, extra=self._with(text, keys))

    def warn(self, message: str, text: str = "", **keys: Any) -> None:
        self._log.log(logging.WARNING, message, extra=self._with(text, keys))

    def debug(self, message: str, text: str = "", **keys: Any) -> None:
        self._log.log(logging.DEBUG, message, extra=self._with(text, keys))

    def failed(self, message: str, cause: BaseException) -> None:
        """An error with its cause in the same line; its traceback at level debug only."""
        self._log.log(logging.ERROR, message, exc_info=cause, extra=self._with("", {}))

    def _with(self, text: str, keys: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._extra, TEXT: text, KEYS: dict(keys)}
