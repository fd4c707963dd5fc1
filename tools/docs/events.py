"""The tables of `events.md`, from the declared kinds of events."""

import logging
from collections.abc import Iterable, Mapping

from lockstep_state.event_kinds import EVENTS_BY_SERVICE, EventKind
from tools.docs.pages import DOCS, code, table

PAGE = DOCS / "reference" / "events.md"


def blocks() -> Mapping[str, str]:
    """Return the table of each service."""
    return {f"events of {service}": _table(kinds) for service, kinds in EVENTS_BY_SERVICE.items()}


def _table(kinds: Iterable[EventKind]) -> str:
    """Return the rows. Kinds that differ in their name alone share one."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for kind in kinds:
        level = "" if kind.level == logging.INFO else f", {logging.getLevelName(kind.level).lower()}"
        cells = kind.subject, kind.meaning, code(kind.detail.split())
        rows.setdefault(cells, []).append(f"`{kind.name}`{level}")
    return table("kind | subject | meaning | detail", (("; ".join(names), *cells) for cells, names in rows.items()))
