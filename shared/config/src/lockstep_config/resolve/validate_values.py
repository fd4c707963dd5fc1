"""Whether a value is one that its key takes. Pure; each raises BadValue or UntranslatablePattern, which say what would
be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from lockstep_config.keys.key_types import Key, Kind
from lockstep_config.keys.lockstep_keys import FENCE, LEGACY_GROUP, MM2_VERSION, START_TIMESTAMP
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.keys.per_topic import per_topic
from lockstep_config.keys.python_classes import class_of
from lockstep_config.keys.spark_settings import MASTER, check_master
from lockstep_config.resolve.slips import placeholder
from lockstep_config.text.values import BadValue, boolean, choice, integer, list_of, moment, version
from lockstep_protocol.filters import NameFilter

__all__ = ["check_servers", "check_value"]


HOST = re.compile(r"\[?[0-9A-Za-z._%:-]+\]?")
"""As in Kafka's `Utils.HOST_PORT_PATTERN`."""


def _check_group(text: str) -> None:
    if not text.strip():
        raise BadValue("is missing: name the consumer group whose positions on the source count, MirrorMaker 1's")


def _check_fence(text: str) -> None:
    if text.strip().lower() == "marker":
        raise BadValue(
            f"is {text.strip()!r}, which was removed: transactions cost 4 to 9 % and close the window that the marker "
            "only narrows; set exactly.once.source.support=enabled instead (docs/guides/transactions.md), or remove "
            "this line"
        )
    choice(text, KEYS[FENCE].choices)


_OF_THEIR_OWN: Mapping[str, Callable[[str], object]] = {
    MASTER: check_master,
    MM2_VERSION: version,
    START_TIMESTAMP: moment,
    LEGACY_GROUP: _check_group,
    FENCE: _check_fence,
}
_OF_KINDS: Mapping[Kind, Callable[[str], object]] = {
    Kind.BOOLEAN: boolean,
    Kind.LIST: list_of,
    Kind.PATTERNS: lambda text: NameFilter(list_of(text)),
    Kind.PYTHON_CLASS: class_of,
}


def check_value(text: str, key: Key) -> None:
    """By the table of keys."""
    if key.per_topic:
        per_topic(text, lambda own: check_value(own, replace(key, per_topic=False)), None)
    elif key.name in _OF_THEIR_OWN:
        _OF_THEIR_OWN[key.name](text)
    elif key.choices:
        choice(text, key.choices)
    elif key.kind is Kind.INTEGER:
        number = integer(text, key.minimum, key.maximum)
        if key.minimum == -1 and number == 0:
            raise BadValue("is 0, out of range: it takes a number from 1, or -1 for the broker's default")
    elif key.kind in _OF_KINDS:
        _OF_KINDS[key.kind](text)


def check_servers(text: str) -> None:
    """`bootstrap.servers`."""
    servers = list_of(text)
    if not servers:
        raise BadValue("is empty: write HOST:PORT, several between commas")
    for server in servers:
        host, colon, port = server.rpartition(":")
        host = host.rpartition("://")[2]
        if not (host and colon and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
            raise BadValue(f"has {server!r}, which is no HOST:PORT")
        if not HOST.fullmatch(host) or placeholder(host):
            raise BadValue(f"has {server!r}, and {host!r} is no host")
