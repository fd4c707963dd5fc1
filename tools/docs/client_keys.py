"""`client-keys.md` from the declared keys of Kafka's clients: `python -m tools.docs.client_keys` writes it anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_args

from lockstep_config.keys.client_keys import (
    CLIENT,
    CONNECTION_REFUSED,
    CONNECTION_USED,
    CONNECTION_WITHOUT_EFFECT,
    ClientKey,
    ClientKind,
)
from lockstep_config.keys.key_types import Status

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "client-keys.md"
BLOCK = re.compile(r"(<!-- client keys: ([a-z]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the keys are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n", page)


LETTERS: Mapping[ClientKind, str] = {"consumer": "C", "producer": "P", "admin": "A"}


def _connection() -> str:
    rows: dict[str, list[str]] = {}
    for name, meaning in sorted(CONNECTION_USED.items()):
        rows.setdefault(meaning, []).append(f"`{name}`")
    return _table(("key", "what it does"), [(", ".join(names), meaning) for meaning, names in rows.items()])


def _clients() -> str:
    """A row for each used key. Clients share it if the key is the same for them; admin clients carry no records."""
    rows: dict[tuple[str, str], dict[str, list[ClientKind]]] = {}
    for kind in get_args(ClientKind):
        for key in CLIENT[kind].values():
            if key.status is Status.USED:
                records, elsewhere = how(key, kind)
                same = rows.setdefault((key.name, elsewhere), {})
                same.setdefault(next(iter(same)) if kind == "admin" and same else records, []).append(kind)
    names: dict[tuple[str, str, str], list[str]] = {}
    for (name, elsewhere), same in sorted(rows.items()):
        for records, kinds in same.items():
            names.setdefault((_letters(kinds), records or "-", elsewhere or "-"), []).append(f"`{name}`")
    return _table(
        ("key", "clients", "mirrored records", "librdkafka"), [(", ".join(keys), *row) for row, keys in names.items()]
    )


def _by_reason(status: Status, connection: Mapping[str, str]) -> str:
    """Keys of one reason and of the same clients share a row."""
    of_clients: dict[tuple[str, str], list[ClientKind]] = {}
    for kind in get_args(ClientKind):
        for key in CLIENT[kind].values():
            if key.status is status:
                of_clients.setdefault((key.name, key.why), []).append(kind)
    rows: dict[tuple[str, str], list[str]] = {}
    for name, why in sorted(connection.items()):
        rows.setdefault(("all", why), []).append(f"`{name}`")
    for (name, why), kinds in sorted(of_clients.items()):
        rows.setdefault((_letters(kinds), why), []).append(f"`{name}`")
    return _table(("keys", "clients", "why"), [(", ".join(names), kinds, why) for (kinds, why), names in rows.items()])


def _letters(kinds: Sequence[ClientKind]) -> str:
    return "".join(LETTERS[kind] for kind in kinds)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ("---",) * len(head), *rows))


def how(key: ClientKey, kind: ClientKind) -> tuple[str, str]:
    """What a used key does to mirrored records, and how librdkafka has it; else why it does nothing, and nothing."""
    if key.status is not Status.USED:
        return key.why, ""
    values = f": {', '.join(key.choices)}" if key.choices else ""
    renamed = key.librdkafka not in ("", key.name)
    limits = f"{key.minimum} to {key.maximum}" if key.librdkafka and key.minimum is not None else ""
    named = f"`{key.librdkafka}`" if renamed else "yes" if key.librdkafka else ""
    elsewhere = ", ".join(part for part in (named, limits) if part)
    if key.not_records and kind != "admin":
        return f"without effect: {key.not_records}", elsewhere
    return key.records + values if key.records else "", elsewhere


TABLES: Mapping[str, Callable[[], str]] = {
    "connection": _connection,
    "clients": _clients,
    "refused": lambda: _by_reason(Status.REFUSED, CONNECTION_REFUSED),
    "unused": lambda: _by_reason(Status.WITHOUT_EFFECT, CONNECTION_WITHOUT_EFFECT),
}

if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
