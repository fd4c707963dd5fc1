"""`configuration.md` from the table of keys: `python -m tools.docs.configuration` writes its tables anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lockstep_config.keys.ignored_keys import FAMILIES
from lockstep_config.keys.key_types import CONNECTOR, Family, Key, KeyLevel, Kind, Status
from lockstep_config.keys.mm2_keys import KEYS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"

OURS = "lockstep."
WHERE = {KeyLevel.TOP: "top", KeyLevel.FLOW: "flow", KeyLevel.CLUSTER: "cluster"}
SAME = "the same of "
"""With this begins the meaning of a key that is for a part of what the key before it is for."""

SHORT = {Kind.BOOLEAN: "boolean", Kind.PATTERNS: "patterns", Kind.LIST: "list"}

BLOCK = re.compile(r"(<!-- keys: ([a-z -]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

TABLES: Mapping[str, Callable[[], str]] = {
    "used": lambda: used(key for key in KEYS.values() if _is_used(key) and not key.name.startswith(OURS)),
    "ours": lambda: used(key for key in KEYS.values() if _is_used(key) and key.name.startswith(OURS)),
    "refused": lambda: refused(key for key in KEYS.values() if key.status is Status.REFUSED),
    "renamed": lambda: renamed(key for key in KEYS.values() if key.renamed_to),
    "without effect": lambda: without_effect(
        [key for key in KEYS.values() if key.status is Status.WITHOUT_EFFECT], FAMILIES
    ),
}
"""Every key is in one of them; those of clients are on a page of their own."""


def filled(page: str) -> str:
    """The page with its tables as the keys are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n", page)


def used(keys: Iterable[Key]) -> str:
    """A row for each key. A key that is the same for a part as the one before it is in the row of that one."""
    rows: list[list[str]] = []
    for key in keys:
        where = "" if key.scopes == CONNECTOR else f" ({_where(key.scopes)})"
        if key.meaning.startswith(SAME):
            rows[-1][0] += f", {_code(key.name)}"
            part, meaning = key.name.rpartition(".")[2], key.meaning.removeprefix(SAME)
            rows[-1][-1] += "" if part == meaning else f"; {_code(part)}: {meaning}"
        else:
            rows.append(
                [_code(key.name) + where, _accepted(key), _code(key.default) if key.default else "", key.meaning]
            )
    return _table(("key", "takes", "default", "meaning"), map(tuple, rows))


def refused(keys: Iterable[Key]) -> str:
    rows: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for key in keys:
        rows.setdefault((key.choices, key.why), []).append(_code(key.name))
    lines: list[tuple[str, ...]] = []
    before = ""
    for (choices, why), names in sorted(rows.items(), key=lambda row: row[0][1]):
        may_be = ", ".join(map(_code, choices)) or "empty"
        lines.append((", ".join(names), may_be, "as above" if why == before else why))
        before = why
    return _table(("key", "may be", "why nothing else"), lines)


def renamed(keys: Iterable[Key]) -> str:
    return _table(("key", "is read as"), ((_code(k.name), _code(k.renamed_to)) for k in keys))


def without_effect(keys: Iterable[Key], families: Iterable[Family]) -> str:
    """Keys, and families of keys, share a row if they have one reason."""
    rows: dict[str, list[str]] = {}
    for name, why in sorted([*((k.name, k.why) for k in keys), *((f"{f.prefix}*", f.why) for f in families)]):
        rows.setdefault(why, []).append(_code(name))
    return _table(("keys", "why"), ((", ".join(names), why) for why, names in rows.items()))


def _is_used(key: Key) -> bool:
    return key.status is Status.USED and not key.renamed_to


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    # A | ends a cell, also between backticks.
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"


def _accepted(key: Key) -> str:
    if key.choices:
        accepted = ", ".join(map(_code, key.choices))
    elif key.kind is Kind.INTEGER:
        accepted = _range(key)
    else:
        accepted = SHORT.get(key.kind, key.kind.value)
    return accepted + ("; per topic" if key.per_topic else "")


def _range(key: Key) -> str:
    if key.minimum is None:
        return key.kind.value
    if key.minimum == -1:
        return "≥ 1, or -1"
    if key.maximum in (None, 2_147_483_647):
        return f"≥ {key.minimum}"
    return f"{key.minimum} to {key.maximum}"


def _where(scopes: Iterable[KeyLevel]) -> str:
    return ", ".join(WHERE[scope] for scope in KeyLevel if scope in set(scopes))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
