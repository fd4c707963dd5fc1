"""The parser of a file's lines: the place where each belongs, and its value as its key declares it.

Every line is parsed here, once. This module is pure, but for the import of a Python class that a line names.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lockstep_config.keys.client_keys import CLIENT, CONNECTION, ClientKey
from lockstep_config.keys.connector_keys import client_kind, own_key
from lockstep_config.keys.key_types import Key, KeyStatus
from lockstep_config.keys.key_values import parse_value
from lockstep_config.keys.mm2_keys import find_key
from lockstep_config.resolve.value_typos import find_placeholder
from lockstep_config.text.properties import Entry
from lockstep_config.text.values import BadValue, boolean, choice, integer, split_list
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_state.names import Flow

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ALIAS = re.compile(r"[A-Za-z0-9_-]+")
"""The form of a cluster's alias."""
HOST = re.compile(r"\[?[0-9A-Za-z._%:-]+\]?")
"""The form of a host, as in Kafka's `Utils.HOST_PORT_PATTERN`."""
_FOLLOWED_ADDRESS = re.compile(r":\d+[\s;|]+\S")
"""The end of an address, and behind it a separator that people write in place of a comma."""


@dataclass(frozen=True, slots=True)
class KeyScope:
    """The place where a line belongs: a flow, a cluster (by alias), or, with neither, the top of the file.

    `key` is without prefix.
    """

    key: str
    flow: Flow | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A line of a file with its scope and its typed value.

    `refusal` says why the key does not take the value, which is None then. A line that is in no table, or names a
    Java class, has its text as value. It may be a secret.
    """

    entry: Entry
    scope: KeyScope
    value: Any = field(default=None, repr=False)
    refusal: str = field(default="", repr=False)


def read_cells(entries: Iterable[Entry], aliases: Iterable[str]) -> tuple[Cell, ...]:
    """Parse the lines of a file that has these clusters."""
    clusters = frozenset(aliases)
    return tuple(_read_cell(entry, parse_key(entry.key, clusters)) for entry in entries)


def _read_cell(entry: Entry, scope: KeyScope) -> Cell:
    own = own_key(scope.key) if scope.flow is not None else None
    name = scope.key if own is None else own[1]
    try:
        return Cell(entry, scope, _parse(name, entry.value))
    except (BadValue, UntranslatablePattern) as exc:
        return Cell(entry, scope, refusal=str(exc))


def _parse(name: str, text: str) -> Any:
    if (key := find_key(name)) is not None:
        return parse_used(key, text)
    kind, inner = client_kind(name) or (None, name.removeprefix("source.cluster.").removeprefix("target.cluster."))
    if inner in CONNECTION:
        return _parse_connection(inner, text)
    client_key = CLIENT[kind].get(inner) if kind is not None else None
    return text if client_key is None else _parse_client(client_key, text)


def _parse_connection(name: str, text: str) -> Any:
    if name == "security.protocol":
        return choice(text, PROTOCOLS)
    return _parse_servers(text) if name == "bootstrap.servers" else text


def _parse_servers(text: str) -> tuple[str, ...]:
    """Return the addresses.

    Raises:
        BadValue: There is no address, or one is no HOST:PORT.
    """
    servers = split_list(text)
    if not servers:
        raise BadValue("is empty: write HOST:PORT, several between commas")
    for server in servers:
        host, colon, port = server.rpartition(":")
        host = host.partition("://")[2] or host
        if not (host and colon and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
            raise BadValue(f"has {server!r}, which is no HOST:PORT")
        if not HOST.fullmatch(host) or find_placeholder(host):
            several = "; addresses are separated by commas" if _FOLLOWED_ADDRESS.search(server) else ""
            raise BadValue(f"has {server!r}, and {host!r} is no host{several}")
    return servers


def _parse_client(key: ClientKey, text: str) -> Any:
    if key.status is not KeyStatus.USED:
        return text.strip()
    if key.choices:
        return choice(text, key.choices)
    if key.name == "check.crcs":
        return boolean(text)
    if key.minimum is None or (key.librdkafka and key.maximum is None):
        return text.strip()
    return integer(text, *(key.java_limits if key.librdkafka else (key.minimum, key.maximum)))


def parse_used(key: Key, text: str) -> Any:
    """Parse the value of a key, or trim that of a key that is refused or without effect."""
    return parse_value(key, text) if key.status is KeyStatus.USED else text.strip()


def parse_key(key: str, aliases: Iterable[str]) -> KeyScope:
    """Take the prefix off a key.

    A name of the tables is never taken apart, though an alias may look like its beginning. A flow is recognised by
    its arrow, whether its aliases are known or not. An alias has no dot, so the flow ends at the first dot behind the
    arrow.
    """
    if find_key(key) is not None:
        return KeyScope(key)
    before, arrow, behind = key.partition("->")
    if arrow:
        target, dot, rest = behind.partition(".")
        if dot and before.strip() and target.strip():
            return KeyScope(rest, flow=Flow(before.strip(), target.strip()))
        return KeyScope(key)
    alias, dot, rest = key.partition(".")
    if dot and alias in aliases:
        return KeyScope(rest, alias=alias)
    return KeyScope(key)
