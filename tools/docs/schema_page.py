"""The records in `schemas.md`, from the schemas of rows, events and commands: `python -m tools.docs.schema_page` writes
them anew.

They are between the lines that name them; the text around them is written by hand."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.docs.schemas import OF_ALL, generated

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas.md"
FOLDER = "../../shared/state/src/lockstep_state/schemas"
BLOCK = re.compile(r"(<!-- schemas -->\n).*?(?=<!-- end -->)", re.DOTALL)
LINE = 160
OF_EVERY_SCHEMA = " Fields that are not listed here are to be ignored."


def filled(page: str) -> str:
    """The page with the schemas of this release."""
    text = "\n".join(line for name, schema in generated().items() for line in _section(name, schema))
    return BLOCK.sub(lambda block: f"{block[1]}\n{text}\n", page)


def _section(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    kind, _, version = name.rpartition(".v")
    yield f"### {kind}\n\n{_escaped(schema['title'])}. Version {version}:\n[{name}.json]({FOLDER}/{name}.json)\n"
    yield "\n".join(textwrap.wrap(_escaped(schema["description"].removesuffix(OF_EVERY_SCHEMA)), LINE)) + "\n"
    yield "| field | type | default | meaning |\n|---|---|---|---|"
    for field, about in schema["properties"].items():
        if field != "version" and field not in OF_ALL:
            default = f"`{json.dumps(about['default'])}`" if "default" in about else "required"
            yield f"| `{field}` | {_type(about)} | {default} | {_escaped(about.get('description', ''))} |"
    yield ""


def _type(about: Mapping[str, Any]) -> str:
    if about["type"] != "array":
        return str(about["type"])
    if "prefixItems" in about:
        return f"[{', '.join(map(_type, about['prefixItems']))}]"
    return f"list of {_type(about['items'])}"


def _escaped(text: str) -> str:
    """As Markdown has it outside of code: no tag, no cell."""
    return "".join(
        part if index % 2 else part.replace("<", "&lt;").replace("|", r"\|").replace("*", r"\*")
        for index, part in enumerate(re.split(r"(`[^`]*`)", text))
    )


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
