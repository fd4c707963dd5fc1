"""The sections of `docs/reference/plan-hazards.md`, from the catalogue of hazards."""

import re
import textwrap
from collections.abc import Mapping

from lockstep_ops.plan.rules.hazards import HAZARDS, HazardKind
from tools.docs.pages import DOCS

PAGE = DOCS / "reference" / "plan-hazards.md"
LINE = 160
LINK = re.compile(r"(docs/\S+?\.md)")
CODE = re.compile(
    r"(?<= )[._](?=[ .,])"  # a dot and an underscore that are words by themselves
    r"|(?<![/\w])[a-z]+(?:\.[a-z]+)+(?:=\w+)?"  # a key
    r"|\bgroups(?= or groups\.exclude)"
    r"|lockstep (?:takeover|offsets alter)(?: FILE)?"
    r"|--[a-z]+(?: (?:strimzi|connect))?"
)


def blocks() -> Mapping[str, str]:
    """Return a section for each hazard."""
    return {"hazards: sections": "\n\n".join(map(_section, HAZARDS))}


def _section(kind: HazardKind) -> str:
    text = f"*{kind.severity.capitalize()}.* {marked(kind.meaning)} **Fix:** {marked(kind.fix)}."
    return f"## {kind.heading}\n\n" + "\n".join(textwrap.wrap(text, LINE))


def marked(text: str) -> str:
    """Return the text for a page: keys, options and commands are code; pages are links, whose paths get no marks."""
    return "".join(_link(part) if LINK.fullmatch(part) else CODE.sub(r"`\g<0>`", part) for part in LINK.split(text))


def _link(path: str) -> str:
    page = path.removeprefix("docs/").removesuffix(".md")
    return f"[{page}](../{page}.md)"
