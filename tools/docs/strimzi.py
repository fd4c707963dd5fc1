"""`docs/guides/strimzi.md` from the declared fields: `python -m tools.docs.strimzi` writes its tables anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Iterator
from pathlib import Path

from lockstep_config.strimzi.api_versions import VERSIONS
from lockstep_config.strimzi.fields import Field, Fields, Use
from lockstep_config.strimzi.schema import KINDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "strimzi.md"

BLOCK = re.compile(r"(<!-- fields of (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the declarations are now. Raises KeyError for a table of no kind."""
    return BLOCK.sub(lambda block: f"{block[1]}{table(block[2])}", page)


def table(kind: str) -> str:
    rows = "\n".join(_rows(KINDS[kind], "", VERSIONS[kind], {}))
    return f"\n| field | in | becomes |\n|---|---|---|\n{rows}\n\n"


def _rows(fields: Fields, path: str, versions: tuple[str, ...], seen: dict[int, str]) -> Iterator[str]:
    """`seen`: where the same fields have been listed already."""
    for name, field in fields.items():
        if path == "" and name in ("apiVersion", "kind"):
            continue
        here = f"{path}.{name}" if path else name
        here += "[]" if field.form.name == "LIST" and field.fields else ""
        if field.versions and not field.versions & set(versions):
            continue
        # What the chart takes is said in its own documentation, field by field.
        inner = field.fields if field.use is Use.USED else {}
        before = seen.setdefault(id(inner), here) if inner else here
        more = "" if before == here else f"; fields as in `{before}`"
        yield f"| `{here}` | {_versions(field, versions)} | {_becomes(field)}{more} |"
        if before == here:
            yield from _rows(inner, here, versions, seen)


def _versions(field: Field, versions: tuple[str, ...]) -> str:
    having = [version for version in versions if not field.versions or version in field.versions]
    return "" if len(having) == len(versions) else ", ".join(having)


def _becomes(field: Field) -> str:
    if field.use is Use.CHART:
        return "the Helm chart's" + (f": {field.why}" if field.why else "")
    return f"without effect: {field.why}" if field.use is Use.WITHOUT_EFFECT else field.becomes


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
