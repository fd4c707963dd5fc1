"""The tables of `events.md`, from the declared kinds of events."""

import logging
from collections.abc import Iterable, Mapping

from lockstep_state.event_kinds import EVENTS_BY_SERVICE, EventKind
from tools.docs.pages import DOCS, code, grouped, table

PAGE = DOCS / "reference" / "events.md"


def blocks() -> Mapping[str, str]:
    """Return the table of each service."""
    return {f"events of {service}": _table(kinds) for service, kinds in EVENTS_BY_SERVICE.items()}


def _table(kinds: Iterable[EventKind]) -> str:
    """Return the rows. Kinds that differ in their name alone share one."""
    rows = grouped(((kind.subject, kind.meaning, code(kind.detail.split())), _named(kind)) for kind in kinds)
    return table("kind | subject | meaning | detail", (("; ".join(names), *cells) for cells, names in rows.items()))


def _named(kind: EventKind) -> str:
    return f"`{kind.name}`" + ("" if kind.level == logging.INFO else f", {logging.getLevelName(kind.level).lower()}")
