"""The tables of keys in `configuration.md`. Keys of clients are on a page of their own."""

from collections.abc import Iterable, Mapping

from lockstep_config.keys.ignored_keys import FAMILIES
from lockstep_config.keys.key_types import CONNECTOR, Key, KeyFamily, KeyLevel, KeyStatus, ValueKind
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.transform_keys import TRANSFORM_KEYS
from tools.docs.pages import DOCS, code, grouped, table

PAGE = DOCS / "reference" / "configuration.md"

OURS = "lockstep."
WHERE = {KeyLevel.TOP: "top", KeyLevel.FLOW: "flow", KeyLevel.CLUSTER: "cluster"}
SAME = "the same of "
"""With this begins the meaning of a key that is for a part of what the key before it is for."""

SHORT = {ValueKind.BOOLEAN: "boolean", ValueKind.PATTERNS: "patterns", ValueKind.LIST: "list"}


def blocks() -> Mapping[str, str]:
    """Return the tables. Every key is in one of them."""
    keys = (*KEYS.values(), *TRANSFORM_KEYS.values())
    taken = [key for key in keys if key.status is KeyStatus.USED and not key.renamed_to]
    return {
        "keys: used": used(key for key in taken if not key.name.startswith(OURS)),
        "keys: ours": used(key for key in taken if key.name.startswith(OURS)),
        "keys: refused": refused(key for key in keys if key.status is KeyStatus.REFUSED),
        "keys: renamed": renamed(key for key in keys if key.renamed_to),
        "keys: without effect": without_effect((k for k in keys if k.status is KeyStatus.WITHOUT_EFFECT), FAMILIES),
    }


def used(keys: Iterable[Key]) -> str:
    """Return a row for each key. A key that is the same for a part as the one before it is in its row."""
    rows: list[list[str]] = []
    for key in keys:
        where = "" if key.levels == CONNECTOR else f" ({_where(key.levels)})"
        if key.meaning.startswith(SAME):
            rows[-1][0] += f", `{key.name}`"
            part, meaning = key.name.rpartition(".")[2], key.meaning.removeprefix(SAME)
            rows[-1][-1] += "" if part == meaning else f"; `{part}`: {meaning}"
        else:
            default = f"`{key.default}`" if key.default else ""
            rows.append([f"`{key.name}`{where}", _accepted(key), default, key.meaning])
    return _table("key | takes | default | meaning", rows)


def refused(keys: Iterable[Key]) -> str:
    rows = grouped(((key.reason, key.choices), key.name) for key in keys)
    lines: list[tuple[str, ...]] = []
    before = ""
    for (reason, choices), names in sorted(rows.items(), key=lambda row: row[0][0]):
        lines.append((code(names), code(choices) or "empty", "as above" if reason == before else reason))
        before = reason
    return _table("key | may be | why nothing else", lines)


def renamed(keys: Iterable[Key]) -> str:
    return _table("key | is read as", ((code([key.name]), code([key.renamed_to])) for key in keys))


def without_effect(keys: Iterable[Key], families: Iterable[KeyFamily]) -> str:
    """Return the rows of keys, and of families of keys, which share a row if they have one reason."""
    reasons = sorted([*((k.name, k.reason) for k in keys), *((f"{f.prefix}*", f.reason) for f in families)])
    rows = grouped((reason, name) for name, reason in reasons)
    return _table("keys | why", ((code(names), reason) for reason, names in rows.items()))


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    # A | ends a cell, also between backticks.
    return table(head, ([cell.replace("|", "\\|") for cell in row] for row in rows))


def _accepted(key: Key) -> str:
    if key.choices:
        accepted = code(key.choices)
    elif key.kind is ValueKind.INTEGER:
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
