"""`docs/reference/plan-hazards.md` from the catalogue of hazards: `python -m tools.docs.plan_hazards` writes its
sections anew.

They are between the lines that name them; the text around them is written by hand."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from lockstep_ops.plan.rules.hazards import HAZARDS, HazardKind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "plan-hazards.md"
BLOCK = re.compile(r"(<!-- hazards: ([a-z]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
LINE = 160
LINK = re.compile(r"(docs/\S+?\.md)")
CODE = re.compile(
    r"(?<= )[._](?=[ .,])"  # a dot and an underscore that are words by themselves
    r"|(?<![/\w])[a-z]+(?:\.[a-z]+)+(?:=\w+)?"  # a key
    r"|\bgroups(?= or groups\.exclude)"
    r"|lockstep (?:takeover|offsets alter)(?: FILE)?"
    r"|--[a-z]+(?: (?:strimzi|connect))?"
)


def filled(page: str) -> str:
    """The page as the catalogue is now. Raises KeyError for a block of another name."""
    return BLOCK.sub(lambda block: f"{block[1]}\n" + "\n".join(BLOCKS[block[2]]()) + "\n\n", page)


def _sections() -> Iterator[str]:
    for one in HAZARDS:
        yield from _section(one)


def _section(one: HazardKind) -> Iterator[str]:
    yield f"## {one.heading}\n"
    text = f"*{one.severity.capitalize()}.* {marked(one.meaning)} **Fix:** {marked(one.fix)}."
    yield "\n".join(textwrap.wrap(text, LINE)) + "\n"


def marked(text: str) -> str:
    """The text for a page: keys, options and commands are code, and pages are links, whose paths get no marks."""
    return "".join(_link(part) if LINK.fullmatch(part) else CODE.sub(r"`\g<0>`", part) for part in LINK.split(text))


def _link(path: str) -> str:
    page = path.removeprefix("docs/").removesuffix(".md")
    return f"[{page}](../{page}.md)"


BLOCKS = {"sections": _sections}

if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
