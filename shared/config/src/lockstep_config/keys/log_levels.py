"""The log levels of each service, by Lockstep's own keys or by a log4j or log4j2 configuration of MirrorMaker.

MirrorMaker's loggers are its classes. A logger that has a counterpart here is a service's; the root logger is
everybody's. This module is pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lockstep_state.commands.command_vocabulary import SERVICES

LEVEL_KEY = "lockstep.log.level"
LOGGING_FILE_KEY = "lockstep.log.file"
LOGGING_VARIABLE = "LOCKSTEP_LOGGING_DIR"
"""The variable with the folder of `lockstep.log.file`. Without it the folder of the secrets is taken."""

LEVELS: Mapping[str, str] = MappingProxyType(
    {
        "off": "critical",
        "fatal": "critical",
        "error": "error",
        "warn": "warning",
        "warning": "warning",
        "info": "info",
        "debug": "debug",
        "trace": "debug",
    }
)
"""Log4j's levels, and Python's."""

CLIENTS = "clients"
"""The name under which the libraries that speak to brokers have a level."""

_MIRROR = "org.apache.kafka.connect.mirror"
_COUNTERPARTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "org.apache.kafka.clients": (CLIENTS,),
        "org.apache.kafka.connect": SERVICES,
        _MIRROR: SERVICES,
        f"{_MIRROR}.MirrorSourceTask": ("data-plane",),
        f"{_MIRROR}.MirrorSourceConnector": ("topic-sync", "acl-sync"),
        f"{_MIRROR}.MirrorCheckpointTask": ("checkpoint",),
        f"{_MIRROR}.MirrorCheckpointConnector": ("checkpoint",),
        f"{_MIRROR}.MirrorHeartbeatTask": ("heartbeat",),
        f"{_MIRROR}.MirrorHeartbeatConnector": ("heartbeat",),
        "kafka.tools.MirrorMaker": SERVICES,
    }
)
"""The services that a logger of MirrorMaker stands for. Wider loggers come first, and narrower ones count."""

_ROOT = re.compile(r"(?:log4j\.)?rootLogger(?:\.level)?|(?:connect|mirrormaker)\.root\.logger(?:\.level)?")
_OLD_LOGGER = re.compile(r"log4j\.logger\.(.+)")
_NEW_LOGGER = re.compile(r"logger\.([^.]+)\.(name|level)")
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class LogLevels:
    """The log levels of services.

    `root` is the level of every service that has none of its own; empty if none is stated. `by_service` has the
    levels by service, or `clients`.
    """

    root: str = ""
    by_service: Mapping[str, str] = field(default_factory=dict, hash=False)

    def level(self, service: str) -> str:
        """Return debug, info, warning, error or critical; info if none is stated."""
        return self.by_service.get(service) or self.root or "info"

    def layered_over(self, weaker: "LogLevels") -> "LogLevels":
        """Return the levels of both; this one's count before the other's."""
        return LogLevels(self.root or weaker.root, {**weaker.by_service, **self.by_service})


def log4j_levels(properties: Mapping[str, str]) -> tuple[LogLevels, tuple[str, ...], tuple[str, ...]]:
    """Return the levels of a log4j.properties, a log4j2.properties or a resource's inline loggers.

    Appenders and layouts have no effect on levels.

    Returns:
        The levels, the loggers that have no counterpart, and the keys whose level is not known.
    """
    root, wrong = "", []
    loggers: dict[str, str] = {}
    names = {
        match[1]: value.strip()
        for key, value in properties.items()
        if (match := _NEW_LOGGER.fullmatch(key)) and match[2] == "name"
    }
    for key in properties:
        if _ROOT.fullmatch(key):
            name = None
        elif match := _OLD_LOGGER.fullmatch(key):
            name = match[1].removesuffix(".level")
        elif (match := _NEW_LOGGER.fullmatch(key)) and match[2] == "level":
            name = names.get(match[1], match[1])
        else:
            continue
        level = LEVELS.get(_level_word(key, properties))
        if level is None:
            wrong.append(key)
        elif name is None:
            root = level
        else:
            loggers[name] = level
    levels: dict[str, str] = {}
    for name, services in _COUNTERPARTS.items():
        if name in loggers:
            levels |= dict.fromkeys(services, loggers[name])
    unknown = tuple(name for name in loggers if name not in _COUNTERPARTS)
    return LogLevels(root, levels), unknown, tuple(wrong)


def _level_word(key: str, properties: Mapping[str, str]) -> str:
    """Return the level in a line such as `INFO, CONSOLE` or `${connect.root.logger.level}, CONSOLE`."""
    text = properties[key].split(",")[0].strip()
    for _ in range(8):  # a limit, for a placeholder may name itself
        if (placeholder := _PLACEHOLDER.fullmatch(text)) is None:
            break
        text = properties.get(placeholder[1], "").split(",")[0].strip()
    return text.lower()
