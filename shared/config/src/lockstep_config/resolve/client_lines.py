"""The check of each property of a client or a connection: its name is known, and its value is one that it takes.

This module is pure.
"""

from lockstep_config.clients.tls import remark_on
from lockstep_config.keys.client_keys import CLIENT, CONNECTION, CONNECTION_WITHOUT_EFFECT, NO_RESET, ClientKind
from lockstep_config.keys.key_types import KeyLevel, KeyStatus
from lockstep_config.keys.renamed_keys import find_renamed
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.key_suggestions import KINDS
from lockstep_config.resolve.unknown_keys import unknown
from lockstep_config.resolve.value_typos import in_connection
from lockstep_config.text.secrets import mask_value
from lockstep_config.text.values import list_remark

_ON_NO_RESET = (
    "is none: MirrorMaker then never copies a partition that it has no progress of, and only logs warnings. Here "
    "such a partition begins at its earliest record; write earliest or latest to say where. A gap halts the "
    "partition whatever is written here (lockstep.on.gap=halt)"
)


def does_nothing(kind: str, name: str) -> str:
    """Return why a property of a client, or of a `cluster`, has no effect anywhere; empty if it has one."""
    if name in CONNECTION:
        return CONNECTION_WITHOUT_EFFECT.get(name, "")
    key = CLIENT[kind].get(name) if kind in KINDS else None
    return key.reason if key is not None and key.status is KeyStatus.WITHOUT_EFFECT else ""


def only_connection(side: str, kind: ClientKind, name: str, before: str = "") -> str:
    """Return what to write for a client's property behind `source.cluster.` or `target.cluster.`.

    Args:
        side: `source` or `target`.
        kind: The kind of client.
        name: The property.
        before: The text before a key in the file: the flow and a dot, or nothing in a connector's own config.
    """
    every = f"{before}{side}.cluster.{name} for every client, or " if name in CONNECTION else ""
    return f"MirrorMaker reads only the connection there: write {every}{before}{side}.{kind}.{name}"


def check_connection(cell: Cell, name: str, findings: Diagnostics) -> None:
    """Judge a line about a connection; `name` is the property."""
    entry = cell.entry
    if name not in CONNECTION:
        unknown(entry, name, KeyLevel.CLUSTER, findings, tuple(sorted(CONNECTION)))
    elif name in CONNECTION_WITHOUT_EFFECT:
        findings.without_effect(entry, CONNECTION_WITHOUT_EFFECT[name])
    elif cell.refusal:
        findings.problem(entry, cell.refusal)
    else:
        remark = list_remark(entry.value) if name == "bootstrap.servers" else remark_on(name, entry.value)
        for note in (remark, *(() if entry.referenced else in_connection(name, entry.value))):
            if note:
                findings.note(entry, note)


def check_client(cell: Cell, kind: ClientKind, name: str, findings: Diagnostics) -> None:
    """Judge a line about a client of that kind; `name` is the property."""
    if name in CONNECTION:
        check_connection(cell, name, findings)
        return
    entry, key = cell.entry, CLIENT[kind].get(name)
    if key is None and find_renamed(cell.scope.key) is not None:
        unknown(entry, cell.scope.key, KeyLevel.CLUSTER if cell.scope.flow is None else KeyLevel.FLOW, findings)
    elif key is None:
        unknown(entry, name, KeyLevel.CLUSTER, findings, (*CLIENT[kind], *sorted(CONNECTION)))
    elif key.status is KeyStatus.WITHOUT_EFFECT:
        findings.without_effect(entry, key.reason)
    elif key.status is KeyStatus.REFUSED:
        if cell.value and cell.value not in key.choices:
            instead = f"; it may be {', '.join(key.choices)}" if key.choices else ""
            findings.problem(entry, f"is {mask_value(name, cell.value)!r}, which is refused: {key.reason}{instead}")
    elif cell.refusal:
        findings.problem(entry, cell.refusal)
    elif cell.value == NO_RESET and name == "auto.offset.reset":
        findings.note(entry, _ON_NO_RESET)
    elif isinstance(cell.value, int):
        nearest = key.nearest(cell.value)
        # -1 is Java's word for the system's own buffer size, or for no limit; librdkafka's is 0.
        if cell.value != nearest and (cell.value, nearest) != (-1, 0):
            findings.note(entry, f"is {cell.value}, beyond what librdkafka takes: {nearest} is used")
