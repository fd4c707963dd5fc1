"""Properties of clients and of connections, each on its own: is it known, is its value one it takes? Pure."""

from lockstep_config.clients.tls import remark_on
from lockstep_config.keys.client_keys import (
    CLIENT,
    CONNECTION,
    CONNECTION_WITHOUT_EFFECT,
    NO_RESET,
    ClientKey,
    ClientKind,
)
from lockstep_config.keys.key_types import KeyLevel, Status
from lockstep_config.resolve.bootstrap_servers import check_servers
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.key_suggestions import KINDS
from lockstep_config.resolve.unknown_keys import unknown
from lockstep_config.resolve.value_typos import in_connection
from lockstep_config.text.properties import Entry
from lockstep_config.text.secrets import masked
from lockstep_config.text.values import BadValue, boolean, choice, integer, list_remark

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ON_NO_RESET = (
    "is none: MirrorMaker then never copies a partition that it has no progress of, and only logs warnings. Here "
    "such a partition begins at its earliest record; write earliest or latest to say where. A gap halts the "
    "partition whatever is written here (lockstep.on.gap=halt)"
)


def does_nothing(kind: str, name: str) -> str:
    """Return why a property of a client, or of a `cluster`, has no effect anywhere; empty where it has one."""
    if name in CONNECTION:
        return CONNECTION_WITHOUT_EFFECT.get(name, "")
    key = CLIENT[kind].get(name) if kind in KINDS else None
    return key.why if key is not None and key.status is Status.WITHOUT_EFFECT else ""


def only_connection(side: str, kind: ClientKind, name: str, before: str = "") -> str:
    """Say what to write for a client's property behind `source.cluster.` or `target.cluster.`.

    Args:
        before: what stands before a key in the file: the flow and a dot, or nothing in a connector's own config.
    """
    every = f"{before}{side}.cluster.{name} for every client, or " if name in CONNECTION else ""
    return f"MirrorMaker reads only the connection there: write {every}{before}{side}.{kind}.{name}"


def check_connection(entry: Entry, name: str, findings: Diagnostics) -> None:
    if name not in CONNECTION:
        unknown(entry, name, KeyLevel.CLUSTER, findings, tuple(sorted(CONNECTION)))
        return
    if name in CONNECTION_WITHOUT_EFFECT:
        findings.without_effect(entry, CONNECTION_WITHOUT_EFFECT[name])
        return
    try:
        if name == "security.protocol":
            choice(entry.value, PROTOCOLS)
        elif name == "bootstrap.servers":
            check_servers(entry.value)
            if twice := list_remark(entry.value):
                findings.note(entry, twice)
        elif (remark := remark_on(name, entry.value)) is not None:
            findings.note(entry, remark)
    except BadValue as exc:
        findings.problem(entry, str(exc))
        return
    for remark in () if entry.referenced else in_connection(name, entry.value):
        findings.note(entry, remark)


def check_client(entry: Entry, kind: ClientKind, name: str, findings: Diagnostics) -> None:
    if name in CONNECTION:
        check_connection(entry, name, findings)
        return
    key = CLIENT[kind].get(name)
    if key is None:
        unknown(entry, name, KeyLevel.CLUSTER, findings, (*CLIENT[kind], *sorted(CONNECTION)))
        return
    if key.status is Status.WITHOUT_EFFECT:
        findings.without_effect(entry, key.why)
    elif key.status is Status.REFUSED:
        if (value := entry.value.strip()) and value not in key.choices:
            instead = f"; it may be {', '.join(key.choices)}" if key.choices else ""
            findings.problem(entry, f"is {masked(name, value)!r}, which is refused: {key.why}{instead}")
    else:
        _check_client_value(entry, key, findings)


def _check_client_value(entry: Entry, key: ClientKey, findings: Diagnostics) -> None:
    try:
        if key.choices:
            if choice(entry.value, key.choices) == NO_RESET and key.name == "auto.offset.reset":
                findings.note(entry, _ON_NO_RESET)
        elif key.name == "check.crcs":
            boolean(entry.value)
        elif not key.librdkafka and key.minimum is not None:
            integer(entry.value, key.minimum, key.maximum)
        elif key.minimum is not None and key.maximum is not None:
            number = integer(entry.value, *key.java_limits)
            nearest = min(max(number, key.minimum), key.maximum)
            # -1 is Java's word for the system's own buffer size, or for no limit; librdkafka's is 0.
            if number != nearest and (number, nearest) != (-1, 0):
                findings.note(entry, f"is {number}, beyond what librdkafka takes: {nearest} is used")
    except BadValue as exc:
        findings.problem(entry, str(exc))
