"""`configuration.md` from the table of keys: `python -m tools.docs.configuration` writes its tables anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from lockstep_config.keys.ignored_keys import FAMILIES
from lockstep_config.keys.key_types import Family, Key, KeyLevel, Kind, Status
from lockstep_config.keys.mm2_keys import KEYS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"

OURS = "lockstep."
WHERE = {KeyLevel.TOP: "top", KeyLevel.FLOW: "flow", KeyLevel.CLUSTER: "cluster"}
BLOCK = re.compile(r"(<!-- keys: ([a-z -]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

TABLES: Mapping[str, Callable[[], str]] = {
    "used": lambda: used(key for key in KEYS.values() if _is_used(key) and not key.name.startswith(OURS)),
    "ours": lambda: used(key for key in KEYS.values() if _is_used(key) and key.name.startswith(OURS)),
    "refused": lambda: refused(key for key in KEYS.values() if key.status is Status.REFUSED),
    "renamed": lambda: renamed(key for key in KEYS.values() if key.renamed_to),
    "without effect": lambda: without_effect(key for key in KEYS.values() if key.status is Status.WITHOUT_EFFECT),
    "families": lambda: families(FAMILIES),
}
"""Every key is in one of them; those of clients are on a page of their own."""


def filled(page: str) -> str:
    """The page with its tables as the keys are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n", page)


def used(keys: Iterable[Key]) -> str:
    return _table(
        ("key", "takes", "default", "where", "meaning"),
        ((_code(k.name), _accepted(k), _default(k), _where(k.scopes), k.meaning) for k in keys),
    )


def refused(keys: Iterable[Key]) -> str:
    return _table(
        ("key", "where", "is", "may be", "else"),
        (
            (_code(k.name), _where(k.scopes), k.meaning, ", ".join(map(_code, k.choices)) or "empty", k.why)
            for k in keys
        ),
    )


def renamed(keys: Iterable[Key]) -> str:
    return _table(
        ("key", "where", "is read as"), ((_code(k.name), _where(k.scopes), _code(k.renamed_to)) for k in keys)
    )


def without_effect(keys: Iterable[Key]) -> str:
    rows = ((_code(k.name), _where(k.scopes), k.why) for k in sorted(keys, key=lambda key: key.name))
    return _table(("key", "where", "why"), rows)


def families(found: Iterable[Family]) -> str:
    rows = ((_code(f"{f.prefix}*"), _where(f.scopes), Status.WITHOUT_EFFECT.value, f.why) for f in found)
    return _table(("keys", "where", "are", "why"), rows)


def _is_used(key: Key) -> bool:
    return key.status is Status.USED and not key.renamed_to


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    # A | ends a cell, also between backticks.
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _code(text: str) -> str:
    return f"`{text}`"


def _default(key: Key) -> str:
    return _code(key.default) if key.default else "-"


def _accepted(key: Key) -> str:
    if key.choices:
        accepted = ", ".join(map(_code, key.choices))
    elif key.kind is Kind.INTEGER:
        accepted = _range(key)
    else:
        accepted = key.kind.value
    return accepted + ("; per topic" if key.per_topic else "")


def _range(key: Key) -> str:
    if key.minimum is None or key.minimum == -1:
        return f"{key.kind.value}" + (" from 1, or -1" if key.minimum == -1 else "")
    if key.maximum in (None, 2_147_483_647):
        return f"{key.kind.value} from {key.minimum}"
    return f"{key.kind.value}, {key.minimum} to {key.maximum}"


def _where(scopes: Iterable[KeyLevel]) -> str:
    return ", ".join(WHERE[scope] for scope in KeyLevel if scope in set(scopes))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
