"""The check of each line of a file on its own: its key is known and allowed there, and takes the value.

What several lines must agree on is checked in `cross_checks`. This module is pure.
"""

import re
from collections.abc import Sequence

from lockstep_config.keys.client_keys import CLIENT, CONNECTION, ClientKind
from lockstep_config.keys.connector_keys import CONNECTORS, OWN_KEYS, client_kind, own_key
from lockstep_config.keys.ignored_keys import FAMILIES
from lockstep_config.keys.key_types import Key, KeyLevel, KeyStatus, ValueKind
from lockstep_config.keys.mm2_keys import KEYS, find_key
from lockstep_config.keys.refused_classes import refused_class
from lockstep_config.keys.renamed_keys import find_renamed
from lockstep_config.keys.spark_settings import CONF_PREFIX, check_conf
from lockstep_config.keys.transform_keys import explain_transform_key, split_transform_key
from lockstep_config.resolve.cells import ALIAS, Cell
from lockstep_config.resolve.client_lines import check_client, check_connection, does_nothing, only_connection
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.key_suggestions import KINDS, NOTHING_LIKE_IT, suggest_key
from lockstep_config.resolve.own_classes import NO_CLASSES, OwnClasses
from lockstep_config.resolve.unknown_keys import IS_UNKNOWN, another_arrow, unknown, unknown_alias
from lockstep_config.resolve.value_typos import find_placeholder, find_typo, remark_patterns
from lockstep_config.text.properties import Entry
from lockstep_config.text.secrets import is_secret
from lockstep_config.text.values import BadValue, list_remark

OF_EVERY_CLIENT = frozenset(
    {
        *("client.id", "receive.buffer.bytes", "send.buffer.bytes"),
        *("request.timeout.ms", "socket.connection.setup.timeout.ms", "connections.max.idle.ms"),
    }
)
"""Properties that people may well mean for any client of a cluster."""
OF_RECORDS = frozenset(name for name, key in CLIENT["producer"].items() if key.records and name not in OF_EVERY_CLIENT)
"""Properties of the producer that people set for the mirrored records, never for a few offset syncs."""
PARSED_LOOSELY = frozenset({"enabled", "emit.heartbeats.enabled"})
SAID_FOR_FALSE = frozenset({"", "false", "no", "off", "0", "f", "n"})
QUOTES = "\"'\u2018\u2019\u201c\u201d\u201e"
AS_IF_OF_RECORDS = frozenset({"max.request.size", "delivery.timeout.ms"})
"""Properties that people also set for the mirrored records, but that do nothing to them."""
OVERRIDES_NOT_READ = ("consumer.override.", "admin.override.")
ROLES = ("lockstep", "source", "target")
CLIENT_PREFIXES = (*KINDS, *(f"{side}.{kind}" for side in ("source", "target") for kind in (*KINDS, "cluster")))
LISTS = (ValueKind.LIST, ValueKind.PATTERNS)


def check_line(cell: Cell, aliases: Sequence[str], findings: Diagnostics, classes: OwnClasses = NO_CLASSES) -> None:
    """Judge one line of a file that has these clusters."""
    if cell.scope.flow is not None:
        if _known_flow(cell, aliases, findings):
            _check_flow_line(cell, findings, classes)
    elif cell.scope.alias is not None:
        _check_cluster_line(cell, aliases, findings)
    else:
        _check_top_line(cell, aliases, findings, classes)


def _known_flow(cell: Cell, aliases: Sequence[str], findings: Diagnostics) -> bool:
    entry, flow = cell.entry, cell.scope.flow
    assert flow is not None
    source = flow.source.removesuffix("<")  # of A<->B
    if source != flow.source and source in aliases and flow.target in aliases:
        key = cell.scope.key
        instead = f"write {source}->{flow.target}.{key} and {flow.target}->{source}.{key}"
        findings.unknown_key(entry, f"is no key of a flow, which has one direction: {instead}", near=True)
        return False
    unknown = [alias for alias in (flow.source, flow.target) if alias not in aliases]
    if unknown:
        names = " and ".join(repr(alias) for alias in dict.fromkeys(unknown))
        verb = "is" if len(set(unknown)) == 1 else "are"
        message = f"the flow {flow} names {names}, which {verb} not in clusters ({', '.join(aliases)})"
        unknown_alias(entry, message, unknown, aliases, findings)
        return False
    if flow.source == flow.target:
        message = f"the flow {flow} leads from {flow.source} to itself: a flow needs two clusters"
        findings.unknown_key(entry, message, near=False)
        return False
    return True


def _check_flow_line(cell: Cell, findings: Diagnostics, classes: OwnClasses) -> None:
    entry, key = cell.entry, cell.scope.key
    if (own := own_key(key)) is not None:
        _check_own_line(cell, *own, findings)
        return
    if classes.accepts_key(cell.scope.flow, key) or _check_known(
        cell, key, KeyLevel.FLOW, findings, classes.replaces_java_class(cell.scope.flow, key)
    ):
        return
    for side in ("source", "target"):
        inner = key.removeprefix(f"{side}.")
        if inner != key and (inner.startswith("cluster.") or inner in CONNECTION):
            _check_side_line(cell, side, findings)
            return
    for kind in KINDS:
        for prefix in (f"{kind}.override.", f"{kind}.", f"source.{kind}.", f"target.{kind}."):
            if not key.startswith(prefix):
                continue
            if prefix in OVERRIDES_NOT_READ:
                instead = f"MirrorMaker does not read it: write {cell.scope.flow}.source.{kind}.... or ALIAS.{kind}...."
                findings.without_effect(entry, does_nothing(kind, key.removeprefix(prefix)) or instead)
            elif prefix in ("producer.", "source.producer.", "target.producer."):
                _check_offset_syncs_producer(cell, key.removeprefix(prefix), findings)
            else:
                check_client(cell, kind, key.removeprefix(prefix), findings)
            return
    if key in CONNECTION:
        flow = cell.scope.flow
        instead = f"MirrorMaker connects to clusters, not to flows: write ALIAS.{key} or {flow}.source.cluster.{key}"
        findings.without_effect(entry, does_nothing("cluster", key) or instead)
        return
    if similar := classes.find_similar_keys(cell.scope.flow, key):
        message = f"{IS_UNKNOWN}; did you mean {cell.scope.flow}.{similar[0]}, which the Python class takes?"
        findings.unknown_key(entry, message, near=True)
        return
    unknown(entry, key, KeyLevel.FLOW, findings)


def _check_side_line(cell: Cell, side: str, findings: Diagnostics) -> None:
    """Check a line of one side.

    `source.cluster.x` is the connection's. MirrorMaker reads neither `source.x` nor a client's property behind it.
    """
    entry, inner = cell.entry, cell.scope.key.removeprefix(f"{side}.")
    name = inner.removeprefix("cluster.")
    if name == inner:
        instead = f"MirrorMaker does not read it: write {cell.scope.flow}.{side}.cluster.{name}, or ALIAS.{name}"
        findings.without_effect(entry, does_nothing("cluster", name) or instead)
    elif (client := client_kind(name)) is not None:
        findings.without_effect(entry, only_connection(side, *client, before=f"{cell.scope.flow}."))
    else:
        check_connection(cell, name, findings)


def _check_offset_syncs_producer(cell: Cell, name: str, findings: Diagnostics) -> None:
    """Judge what people mean for the mirrored records, whose producer is the Connect worker's."""
    entry = cell.entry
    if name in OF_RECORDS:
        alone = "MirrorMaker gives it to the producer of offset syncs alone"
        findings.without_effect(
            entry, f"{alone}; for the mirrored records it is {cell.scope.flow}.producer.override.{name}"
        )
        return
    check_client(cell, "producer", name, findings)
    if name in AS_IF_OF_RECORDS:
        reason = CLIENT["producer"][name].not_records
        note = "counts for offset syncs only; no such line does anything to the mirrored records"
        findings.note(entry, f"{note}: {reason}")


def _check_own_line(cell: Cell, connector: str, key: str, findings: Diagnostics) -> None:
    """Judge a line for one connector of a flow alone."""
    entry = cell.entry
    if connector not in CONNECTORS:
        findings.problem(entry, f"names the connector {connector!r}: there are {', '.join(CONNECTORS)}")
    elif key in OWN_KEYS:
        if connector in OWN_KEYS[key]:
            _check_known(cell, key, KeyLevel.FLOW, findings)
        else:
            findings.without_effect(entry, f"the {connector} connector has no {key}")
    elif (client := client_kind(key)) is not None:
        check_client(cell, *client, findings)
    elif key.startswith(OVERRIDES_NOT_READ):
        kind, _, name = key.replace(".override", "", 1).partition(".")
        instead = f"MirrorMaker does not read it: write source.{kind}.{name} of the same connector"
        findings.without_effect(entry, does_nothing(kind, name) or instead)
    elif key in KEYS:
        findings.problem(
            entry, f"is no key of one connector alone: write {cell.scope.flow}.{key}, which all of them read"
        )
    else:
        unknown(entry, key, KeyLevel.FLOW, findings, (*OWN_KEYS, *KINDS))


def _check_cluster_line(cell: Cell, aliases: Sequence[str], findings: Diagnostics) -> None:
    entry, key = cell.entry, cell.scope.key
    if key in CONNECTION:
        check_connection(cell, key, findings)
        return
    for kind in KINDS:
        if key.startswith(f"{kind}.override."):
            _check_cluster_override(cell, kind, findings)
            return
        if key.startswith(f"{kind}."):
            check_client(cell, kind, key.removeprefix(f"{kind}."), findings)
            return
    if not _check_known(cell, key, KeyLevel.CLUSTER, findings) and not another_arrow(entry, aliases, findings):
        unknown(entry, key, KeyLevel.CLUSTER, findings)


def _check_cluster_override(cell: Cell, kind: ClientKind, findings: Diagnostics) -> None:
    """Reject an override in a cluster's lines: overrides are a connector's."""
    entry, name = cell.entry, cell.scope.key.removeprefix(f"{kind}.override.")
    if name not in CLIENT[kind] and name not in CONNECTION:
        unknown(entry, name, KeyLevel.CLUSTER, findings, (*CLIENT[kind], *sorted(CONNECTION)))
        return
    instead = f"MirrorMaker has overrides of flows, not of clusters: write {cell.scope.alias}.{kind}.{name}"
    if kind == "producer":
        instead += f", or SOURCE->{cell.scope.alias}.producer.override.{name} for the records of one flow"
    findings.without_effect(entry, does_nothing(kind, name) or instead)


def _check_top_line(cell: Cell, aliases: Sequence[str], findings: Diagnostics, classes: OwnClasses) -> None:
    entry, key = cell.entry, cell.scope.key
    if key.startswith("config.providers."):
        return  # `config_providers.read_providers` checks these lines
    if classes.accepts_key(None, key) or _check_known(
        cell, key, KeyLevel.TOP, findings, classes.replaces_java_class(None, key)
    ):
        return
    if key in CONNECTION:
        check_connection(cell, key, findings)
        return
    for prefix in () if find_renamed(key) is not None else CLIENT_PREFIXES:
        if key.startswith(f"{prefix}."):
            kind, inner = prefix.rpartition(".")[2], key.removeprefix(f"{prefix}.")
            client = client_kind(f"{kind}.{inner}")
            if client is not None and client[1] not in CLIENT[client[0]] and client[1] not in CONNECTION:
                _check_unknown_dropped(entry, *client, findings)
                return
            place = f"ALIAS.{inner}" if kind == "cluster" else f"ALIAS.{kind}.{inner} or SOURCE->TARGET.{kind}.{inner}"
            instead = f"MirrorMaker drops it at the top of the file: write {place}"
            findings.without_effect(entry, does_nothing(kind, inner) or instead)
            return
    if own_key(key) is not None:
        findings.problem(entry, f"is about a connector of a flow: write SOURCE->TARGET.{key}")
        return
    if key in aliases or key.endswith("->"):
        findings.problem(
            entry,
            "is half a key: a key ends at the first blank, = or :, so write a flow as A->B.enabled, without blanks",
        )
        return
    if another_arrow(entry, aliases, findings):
        return
    alias, dot, rest = key.partition(".")
    if dot and _is_known_of_cluster(rest):
        message = f"{alias!r} is not in clusters ({', '.join(aliases)})"
        unknown_alias(entry, message, [alias], aliases, findings)
    elif dot and rest in KEYS and alias not in ROLES and suggest_key(key, KeyLevel.TOP).advice == NOTHING_LIKE_IT:
        message = f"{alias!r} is neither in clusters ({', '.join(aliases)}) nor a flow, SOURCE->TARGET.{rest}"
        unknown_alias(entry, message, [alias], aliases, findings, matters=not ALIAS.fullmatch(alias))
    else:
        unknown(entry, key, KeyLevel.TOP, findings)


def _check_unknown_dropped(entry: Entry, kind: ClientKind, name: str, findings: Diagnostics) -> None:
    """Report an unknown client property at the top of the file, where a known one would have no effect either."""
    guess = suggest_key(name, KeyLevel.CLUSTER, (*CLIENT[kind], *sorted(CONNECTION)))
    instead = f"did you mean ALIAS.{kind}.{guess.keys[0]}?" if guess.keys else guess.advice
    findings.unknown_key(entry, f"{IS_UNKNOWN}; {instead}", near=False)


def _is_known_of_cluster(rest: str) -> bool:
    return rest in CONNECTION or any(
        rest.startswith(f"{kind}.") and (rest.removeprefix(f"{kind}.") in CLIENT[kind] or rest.endswith(".servers"))
        for kind in KINDS
    )


def _check_known(cell: Cell, name: str, level: KeyLevel, findings: Diagnostics, is_replaced: bool = False) -> bool:
    """Judge a line by the tables of MM2's and Lockstep's properties; return False if they do not know the name."""
    entry = cell.entry
    if name.startswith(CONF_PREFIX):
        _check_spark(entry, name, level, findings)
        return True
    key, transform = find_key(name), split_transform_key(name)
    if key is not None:
        if level in key.levels:
            _check_key(cell, key, findings, is_replaced)
            return True
        places = " or ".join(place.value.replace("KEY", name) for place in KeyLevel if place in key.levels)
        if transform is not None:
            findings.plain_problem(entry, f"is not read here, and records would be copied as they are: write {places}")
        else:
            findings.without_effect(entry, f"MirrorMaker does not read it here: write {places}")
        return True
    if transform is not None:
        findings.unknown_key(entry, explain_transform_key(transform), near=True)
        return True
    for family in FAMILIES:
        if name.startswith(family.prefix):
            findings.without_effect(entry, family.reason)
            return True
    return False


def _check_spark(entry: Entry, name: str, level: KeyLevel, findings: Diagnostics) -> None:
    if level is not KeyLevel.TOP:
        findings.without_effect(entry, f"one Spark serves all flows of a process: write {name}")
        return
    try:
        check_conf(name.removeprefix(CONF_PREFIX), entry.value)
    except BadValue as exc:
        findings.problem(entry, str(exc))


def _check_key(cell: Cell, key: Key, findings: Diagnostics, is_replaced: bool) -> None:
    entry = cell.entry
    if key.status is KeyStatus.WITHOUT_EFFECT:
        findings.without_effect(entry, key.reason)
        return
    value = entry.value.strip()
    if key.status is KeyStatus.REFUSED:
        if (refusal := refused_class(value, key)) and not is_replaced:
            # If the value has a slip of writing, the slip is reported and not the refusal of the class.
            findings.problem(entry, f"is {value!r}, which is no class" if find_typo(value) else refusal)
        return
    if key.renamed_to:
        findings.note(
            entry,
            f"was renamed to {key.renamed_to}, which counts where both are set. MirrorMaker ignores this line since "
            f"4.0, and here it counts: write {key.renamed_to}, or remove the line to have what MirrorMaker does",
        )
    if key.name in PARSED_LOOSELY and cell.refusal:
        _check_loosely(entry, findings)
        return
    if cell.refusal:
        report = findings.plain_problem if key.kind is ValueKind.STATEMENT else findings.problem
        report(entry, cell.refusal)
        return
    for remark in remark_patterns(entry.value, key):
        findings.note(entry, remark)
    is_text = key.kind is ValueKind.STRING and not key.per_topic and not is_secret(entry.key)
    if is_text and (remark := find_typo(entry.value)):
        findings.note(entry, f"is {value!r}: {remark}")
    if (key.kind in LISTS or key.per_topic) and (remark := list_remark(entry.value)):
        findings.note(entry, remark)


def _check_loosely(entry: Entry, findings: Diagnostics) -> None:
    """Judge a value that is no boolean: MM2 takes everything but `true` as not enabled, and reads on."""
    bare = re.split(r"(?:^|\s)#", entry.value.strip())[0].strip().strip(QUOTES)
    word = (re.match(r"\w+", bare) or [bare])[0]
    typo = find_typo(entry.value)
    message = f"is {entry.value!r}, which is no boolean"
    if word.lower() in SAID_FOR_FALSE and not find_placeholder(entry.value):
        message += f" ({typo})" if typo else ""
        findings.note(entry, f"{message}: as in MirrorMaker it counts as false, and what it is about does not run")
    else:
        findings.problem(entry, f"{message}, so that MirrorMaker takes it as false: write true or false")
