"""The records in `schemas.md`, from the schemas of rows, events and commands: `python -m tools.docs.schema_page` writes
them anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.docs.schemas import OTHER_FIELDS, generated

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas.md"
FOLDER = "../../shared/state/src/lockstep_state/schemas"
BLOCK = re.compile(r"(<!-- schemas -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with the schemas of this release."""
    rows = "".join(_row(name, schema) for name, schema in generated().items())
    return BLOCK.sub(lambda block: f"{block[1]}\n| schema | key | what it is |\n|---|---|---|\n{rows}\n", page)


def _row(name: str, schema: Mapping[str, Any]) -> str:
    key = schema["title"].partition(" in mm2-")[0].rpartition(", key ")[2]
    meaning = _escaped(schema["description"].removesuffix(OTHER_FIELDS))
    return f"| [{name}]({FOLDER}/{name}.json) | `{key}` | {meaning} |\n"


def _escaped(text: str) -> str:
    """As Markdown has it outside of code: no tag, no cell."""
    return "".join(
        part if index % 2 else part.replace("<", "&lt;").replace("|", r"\|").replace("*", r"\*")
        for index, part in enumerate(re.split(r"(`[^`]*`)", text))
    )


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
