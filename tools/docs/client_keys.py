"""`client-keys.md` from the declared keys of Kafka's clients: `python -m tools.docs.client_keys` writes it anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import get_args

from lockstep_config.keys.client_keys import (
    CLIENT,
    CONNECTION,
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


def _fate(key: ClientKey) -> str:
    """The word for it in the table."""
    if key.status is not Status.USED:
        return "refused" if key.status is Status.REFUSED else "without effect"
    return "used" if key.librdkafka in ("", key.name) else "translated"


def _connection() -> str:
    lines = ["| key | what becomes of it | how, or why not |", "|---|---|---|"]
    for name in sorted(CONNECTION):
        if name in CONNECTION_USED:
            become = CONNECTION_USED[name]
            lines.append(f"| `{name}` | {'translated' if _is_renamed(name) else 'used'} | {become} |")
        elif name in CONNECTION_REFUSED:
            lines.append(f"| `{name}` | refused | {CONNECTION_REFUSED[name]} |")
        else:
            lines.append(f"| `{name}` | without effect | {CONNECTION_WITHOUT_EFFECT[name]} |")
    return "\n".join(lines) + "\n"


def _is_renamed(name: str) -> bool:
    named = re.findall(r"`([^`]+)`", CONNECTION_USED[name])
    return bool(named) and named != [name]


def _of_client(kind: ClientKind) -> str:
    order = ["used", "translated", "refused", "without effect"]
    third = "how, or why not" if kind == "admin" else "records, or why not"
    lines = [f"| key | what becomes of it | {third} | elsewhere |", "|---|---|---|---|"]
    for key in sorted(CLIENT[kind].values(), key=lambda key: (order.index(_fate(key)), key.name)):
        records, elsewhere = how(key, kind)
        lines.append(f"| `{key.name}` | {_fate(key)} | {records} | {elsewhere} |")
    return "\n".join(lines) + "\n"


def how(key: ClientKey, kind: ClientKind) -> tuple[str, str]:
    """The last two columns."""
    if key.status is not Status.USED:
        return key.why, ""
    values = f": {', '.join(key.choices)}" if key.choices else ""
    elsewhere = f"`{key.librdkafka}`" if key.librdkafka else ""
    if key.librdkafka and key.minimum is not None:
        elsewhere += f", {key.minimum} to {key.maximum}"
    if key.not_records and kind != "admin":
        return f"without effect: {key.not_records}", elsewhere
    return key.records + values if key.records else "", elsewhere


TABLES: Mapping[str, Callable[[], str]] = {
    "connection": _connection,
    **{kind: partial(_of_client, kind) for kind in get_args(ClientKind)},
}

if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
