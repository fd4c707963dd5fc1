"""The tables of `docs/guides/strimzi.md`, from the declared fields."""

from collections.abc import Iterator, Mapping

from lockstep_config.strimzi.api_versions import VERSIONS
from lockstep_config.strimzi.fields import Field, Fields, Use
from lockstep_config.strimzi.schema import KINDS
from tools.docs.pages import DOCS, table

PAGE = DOCS / "guides" / "strimzi.md"

EVERYWHERE = frozenset.intersection(*map(frozenset, VERSIONS.values()))
"""The API versions that every kind has."""

Listed = tuple[int, frozenset[str]]
"""The identity of declared fields, and the API versions of theirs that not every kind has."""


def blocks() -> Mapping[str, str]:
    """Return the table of each kind. Fields that an earlier table lists are not listed again."""
    listed: dict[Listed, str] = {}
    shown: set[tuple[str, str]] = set()
    return {f"fields of {kind}": _table(kind, listed, shown) for kind in KINDS}


def _table(kind: str, listed: dict[Listed, str], shown: set[tuple[str, str]]) -> str:
    rows = list(_rows(KINDS[kind], "", VERSIONS[kind], listed))
    again = [place for place, becomes in rows if (place, becomes) in shown]
    parts = [table("field | becomes", (row for row in rows if row not in shown))]
    if again:
        parts.append(f"As in the table above: {', '.join(again)}.")
    shown.update(rows)
    return "\n\n".join([*parts, f"Only the Helm chart uses {', '.join(_of_chart(kind))}."])


def _rows(fields: Fields, path: str, versions: tuple[str, ...], seen: dict[Listed, str]) -> Iterator[tuple[str, str]]:
    """Yield the row of each field, and below it those of its own fields.

    Args:
        seen: where the same fields have been listed already.
    """
    for name, field in fields.items():
        if path == "" and name in ("apiVersion", "kind"):
            continue
        place = f"{path}.{name}" if path else name
        place += "[]" if field.form.name == "LIST" and field.fields else ""
        if field.versions and not field.versions & set(versions):
            continue
        if _is_of_chart(field):
            continue
        # What the chart takes is said in its own documentation, field by field.
        inner = field.fields if field.use is Use.USED else {}
        before = seen.setdefault(_listed(inner, versions), place) if inner else place
        more = "" if before == place else f"; fields as in `{before}`"
        yield f"`{place}`{_versions(field, versions)}", f"{_becomes(field)}{more}"
        if before == place:
            yield from _rows(inner, place, versions, seen)


def _of_chart(kind: str) -> Iterator[str]:
    """Yield each field of `spec` of which nothing is to be said but that the chart uses it."""
    for name, field in KINDS[kind]["spec"].fields.items():
        if _is_of_chart(field) and (not field.versions or field.versions & set(VERSIONS[kind])):
            yield f"`spec.{name}`{_versions(field, VERSIONS[kind])}"


def _is_of_chart(field: Field) -> bool:
    return field.use is Use.CHART and not field.reason


def _versions(field: Field, versions: tuple[str, ...]) -> str:
    having = [version for version in versions if not field.versions or version in field.versions]
    return "" if len(having) == len(versions) else f" ({', '.join(having)})"


def _listed(fields: Fields, versions: tuple[str, ...]) -> Listed:
    """Return what two tables have in common if each may refer to the other's rows of these fields."""
    named = {version for field in fields.values() for version in field.versions}
    return id(fields), frozenset(named & set(versions) - EVERYWHERE)


def _becomes(field: Field) -> str:
    if field.use is Use.CHART:
        return f"the Helm chart's: {field.reason}"
    return f"without effect: {field.reason}" if field.use is Use.WITHOUT_EFFECT else field.becomes
