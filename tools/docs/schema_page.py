"""The table of records in `schemas.md`, from the schemas of rows, events and commands."""

import re
from collections.abc import Mapping
from typing import Any

from tools.docs.pages import DOCS, table
from tools.docs.schemas import OTHER_FIELDS, generated

PAGE = DOCS / "reference" / "schemas.md"
FOLDER = "../../shared/state/src/lockstep_state/schemas"


def blocks() -> Mapping[str, str]:
    """Return a row for each schema of this release."""
    return {"schemas": table("schema | key | what it is", (_row(*named) for named in generated().items()))}


def _row(name: str, schema: Mapping[str, Any]) -> tuple[str, str, str]:
    key = schema["title"].partition(" in mm2-")[0].rpartition(", key ")[2]
    return f"[{name}]({FOLDER}/{name}.json)", f"`{key}`", _escaped(_in_short(schema["description"]))


def _in_short(description: str) -> str:
    """Return the first sentence, and who owns the row. The schema has the rest."""
    first, *others = re.split(r"(?<=[.]) (?=[A-Z]|phase:)", description.removesuffix(OTHER_FIELDS).strip())
    return " ".join([first, *(each for each in others if each.startswith("Owner:"))])


def _escaped(text: str) -> str:
    """Return a text without a tag or the end of a cell outside of code."""
    return "".join(
        part if index % 2 else part.replace("<", "&lt;").replace("|", r"\|").replace("*", r"\*")
        for index, part in enumerate(re.split(r"(`[^`]*`)", text))
    )
