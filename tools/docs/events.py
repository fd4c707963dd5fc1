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
    """A line for each kind, in the order in which they are declared."""
    lines = ["", "| kind | subject | level | meaning | detail |", "|---|---|---|---|---|"]
    for kind in kinds:
        level = logging.getLevelName(kind.level).lower()
        detail = ", ".join(f"`{field}`" for field in kind.detail.split()) or "-"
        lines.append(f"| `{kind.name}` | {kind.subject} | {level} | {kind.meaning} | {detail} |")
    return "\n".join([*lines, "", ""])


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
