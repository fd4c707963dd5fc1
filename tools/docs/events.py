"""The tables of `events.md`, from the declared kinds of events: `python -m tools.docs.events` writes them anew.

They are between the lines that name them; the text around them is written by hand."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path

from lockstep_state.event_kinds import EVENTS_BY_SERVICE, EventKind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "events.md"
BLOCK = re.compile(r"(<!-- events of ([a-z -]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the declarations are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}{table(EVENTS_BY_SERVICE[block[2]])}", page)


def table(kinds: Iterable[EventKind]) -> str:
    """Lines in the order in which kinds are declared. Kinds that differ in their name alone share one."""
    lines = ["", "| kind | subject | meaning | detail |", "|---|---|---|---|"]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for kind in kinds:
        level = "" if kind.level == logging.INFO else f", {logging.getLevelName(kind.level).lower()}"
        detail = ", ".join(f"`{field}`" for field in kind.detail.split())
        rows.setdefault((kind.subject, kind.meaning, detail), []).append(f"`{kind.name}`{level}")
    lines += [f"| {'; '.join(names)} | {' | '.join(cells)} |" for cells, names in rows.items()]
    return "\n".join([*lines, "", ""])


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
