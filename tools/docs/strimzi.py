"""`docs/guides/strimzi.md` from the declared fields: `python -m tools.docs.strimzi` writes its tables anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Iterator
from pathlib import Path

from lockstep_config.strimzi.api_versions import VERSIONS
from lockstep_config.strimzi.fields import Field, Fields, Use
from lockstep_config.strimzi.schema import KINDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "strimzi.md"

EVERYWHERE = frozenset.intersection(*map(frozenset, VERSIONS.values()))
"""The API versions that every kind has."""

Listed = tuple[int, frozenset[str]]
"""The identity of declared fields, and the API versions of theirs that not every kind has."""

BLOCK = re.compile(r"(<!-- fields of (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with its tables as the declarations are now.

    Fields that an earlier table lists are not listed again. Raises KeyError for a table of no kind.
    """
    seen: dict[Listed, str] = {}
    return BLOCK.sub(lambda block: f"{block[1]}{table(block[2], seen)}", page)


def table(kind: str, seen: dict[Listed, str]) -> str:
    rows = "\n".join(_rows(KINDS[kind], "", VERSIONS[kind], seen))
    chart = ", ".join(_of_chart(kind))
    return f"\n| field | becomes |\n|---|---|\n{rows}\n\nOnly the Helm chart uses {chart}.\n\n"


def _rows(fields: Fields, path: str, versions: tuple[str, ...], seen: dict[Listed, str]) -> Iterator[str]:
    """Yield the row of each field, and below it those of its own fields.

    Args:
        seen: where the same fields have been listed already.
    """
    for name, field in fields.items():
        if path == "" and name in ("apiVersion", "kind"):
            continue
        here = f"{path}.{name}" if path else name
        here += "[]" if field.form.name == "LIST" and field.fields else ""
        if field.versions and not field.versions & set(versions):
            continue
        if _is_of_chart(field):
            continue
        # What the chart takes is said in its own documentation, field by field.
        inner = field.fields if field.use is Use.USED else {}
        before = seen.setdefault(_listed(inner, versions), here) if inner else here
        more = "" if before == here else f"; fields as in `{before}`"
        yield f"| `{here}`{_versions(field, versions)} | {_becomes(field)}{more} |"
        if before == here:
            yield from _rows(inner, here, versions, seen)


def _of_chart(kind: str) -> Iterator[str]:
    """Yield each field of `spec` of which nothing is to be said but that the chart uses it."""
    for name, field in KINDS[kind]["spec"].fields.items():
        if _is_of_chart(field) and (not field.versions or field.versions & set(VERSIONS[kind])):
            yield f"`spec.{name}`{_versions(field, VERSIONS[kind])}"


def _is_of_chart(field: Field) -> bool:
    return field.use is Use.CHART and not field.why


def _versions(field: Field, versions: tuple[str, ...]) -> str:
    having = [version for version in versions if not field.versions or version in field.versions]
    return "" if len(having) == len(versions) else f" ({', '.join(having)})"


def _listed(fields: Fields, versions: tuple[str, ...]) -> Listed:
    """Return what two tables have in common if each may refer to the other's rows of these fields."""
    named = {one for field in fields.values() for one in field.versions}
    return id(fields), frozenset(named & set(versions) - EVERYWHERE)


def _becomes(field: Field) -> str:
    if field.use is Use.CHART:
        return f"the Helm chart's: {field.why}"
    return f"without effect: {field.why}" if field.use is Use.WITHOUT_EFFECT else field.becomes


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
