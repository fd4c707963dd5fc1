"""The tables of `client-keys.md`, from the declared keys of Kafka's clients."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from lockstep_config.keys.client_keys import (
    CLIENT,
    CONNECTION_REFUSED,
    CONNECTION_USED,
    CONNECTION_WITHOUT_EFFECT,
    ClientKey,
    ClientKind,
)
from lockstep_config.keys.key_types import KeyStatus
from tools.docs.pages import DOCS, code, grouped, table

PAGE = DOCS / "reference" / "client-keys.md"
LETTERS: Mapping[ClientKind, str] = {"consumer": "C", "producer": "P", "admin": "A"}


def blocks() -> Mapping[str, str]:
    """Return the tables. Every key is in one of them."""
    return {
        "client keys: connection": _connection(),
        "client keys: clients": _clients(),
        "client keys: refused": _by_reason(KeyStatus.REFUSED, CONNECTION_REFUSED),
        "client keys: unused": _by_reason(KeyStatus.WITHOUT_EFFECT, CONNECTION_WITHOUT_EFFECT),
    }


def _connection() -> str:
    rows = grouped((meaning, name) for name, meaning in sorted(CONNECTION_USED.items()))
    return table("key | what it does", ((code(names), meaning) for meaning, names in rows.items()))


def _keys(status: KeyStatus) -> Iterator[tuple[ClientKey, ClientKind]]:
    """Yield each key with this status of each kind of client."""
    return ((key, kind) for kind in get_args(ClientKind) for key in CLIENT[kind].values() if key.status is status)


def _clients() -> str:
    """Return a row for each used key. Clients share it if it is the same for them; admin clients carry no records."""
    rows: dict[tuple[str, str], dict[str, list[ClientKind]]] = {}
    for key, kind in _keys(KeyStatus.USED):
        records, elsewhere = how(key, kind)
        same = rows.setdefault((key.name, elsewhere), {})
        same.setdefault(next(iter(same)) if kind == "admin" and same else records, []).append(kind)
    names = grouped(
        ((_letters(kinds), records or "-", elsewhere or "-"), name)
        for (name, elsewhere), same in sorted(rows.items())
        for records, kinds in same.items()
    )
    cells = ((code(keys), *row) for row, keys in names.items())
    return table("key | clients | mirrored records | librdkafka", cells)


def _by_reason(status: KeyStatus, connection: Mapping[str, str]) -> str:
    """Return the rows of keys with this status. Keys of one reason and of the same clients share a row."""
    of_clients = grouped(((key.name, key.reason), kind) for key, kind in _keys(status))
    named = [(("all", reason), name) for name, reason in sorted(connection.items())]
    named += [((_letters(kinds), reason), name) for (name, reason), kinds in sorted(of_clients.items())]
    rows = grouped(named).items()
    return table("keys | clients | why", ((code(names), kinds, reason) for (kinds, reason), names in rows))


def _letters(kinds: Sequence[ClientKind]) -> str:
    return "".join(LETTERS[kind] for kind in kinds)


def how(key: ClientKey, kind: ClientKind) -> tuple[str, str]:
    """Return what a used key does to mirrored records, and how librdkafka has it; else why it does nothing, and ""."""
    if key.status is not KeyStatus.USED:
        return key.reason, ""
    values = f": {', '.join(key.choices)}" if key.choices else ""
    renamed = key.librdkafka not in ("", key.name)
    limits = f"{key.minimum} to {key.maximum}" if key.librdkafka and key.minimum is not None else ""
    named = f"`{key.librdkafka}`" if renamed else "yes" if key.librdkafka else ""
    elsewhere = ", ".join(part for part in (named, limits) if part)
    if key.not_records and kind != "admin":
        return f"without effect: {key.not_records}", elsewhere
    return key.records + values if key.records else "", elsewhere
