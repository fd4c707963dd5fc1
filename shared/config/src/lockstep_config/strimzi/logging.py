"""`spec.logging` as lines: levels in the resource, or the file that a ConfigMap is mounted as. Pure."""

from __future__ import annotations

from lockstep_config.keys.log_levels import LEVEL_KEY, LEVELS, LOGGING_FILE_KEY, level_key, log4j_levels
from lockstep_config.strimzi.lines import Lines, Part

OLD_KEY = "log4j.properties"
"""The key of a ConfigMap that is named without one, as before v1beta2."""


def add_logging(spec: Part, lines: Lines) -> None:
    """The lines of a `logging` whose fields have been judged, if there is one."""
    logging = spec.part("logging")
    if logging is None:
        return
    if logging.text("type") == "external":
        _add_external(logging, lines)
        return
    stated = {one.key: one for one in logging.settings("loggers")}
    levels, unknown, wrong = log4j_levels({key: one.value for key, one in stated.items()})
    for key in wrong:
        lines.problem(stated[key], f"is {stated[key].value!r}: it takes {', '.join(LEVELS)}")
    place = logging.place("loggers")
    if levels.root:
        lines.add_line(LEVEL_KEY, levels.root, place)
    for service, level in levels.by_service.items():
        lines.add_line(level_key(service), level, place)
    if unknown:
        lines.without_effect(place, f"no logger here is called {' or '.join(unknown)}")


def _add_external(logging: Part, lines: Lines) -> None:
    reference = logging.part("valueFrom")
    reference = reference.part("configMapKeyRef") if reference else None
    name, key = (reference.text("name"), reference.text("key")) if reference else (logging.text("name"), OLD_KEY)
    if name and key:
        lines.add_line(LOGGING_FILE_KEY, f"{name}/{key}", logging)
    else:
        message = "names no ConfigMap: write valueFrom.configMapKeyRef with name and key"
        lines.problem(logging, message)
