"""Each line of a file on its own: is the key known, may it stand there, is its value one it takes?

Pure. What several lines must agree on is checked in `flows`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from lockstep_config.client_keys import CLIENT, CONNECTION, CONNECTION_WITHOUT_EFFECT, ClientKey, ClientKind
from lockstep_config.key_types import Key, Kind, Scope, Status
from lockstep_config.keys import KEYS
from lockstep_config.layering import Place
from lockstep_config.our_keys import LEGACY_GROUP, MM2_VERSION, START_TIMESTAMP
from lockstep_config.per_topic import per_topic
from lockstep_config.problems import Problem
from lockstep_config.properties import Entry
from lockstep_config.secrets import masked
from lockstep_config.spark import CONF_PREFIX, MASTER, check_conf, check_master
from lockstep_config.unused_keys import FAMILIES
from lockstep_config.values import BadValue, boolean, choice, integer, list_of, moment, version
from lockstep_protocol.filters import NameFilter
from lockstep_protocol.java_regex import UntranslatablePattern

__all__ = ["Findings", "check_line"]

KINDS: tuple[ClientKind, ...] = get_args(ClientKind)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LIKENESS = 0.6
"""difflib's ratio from which on a known key is worth naming beside an unknown one."""


_WORDS = re.compile(r"[\s,;=\"']+")


@dataclass(slots=True)
class Findings:
    """What came to light: `problems` stop the start, `unused` and `notes` are shown once."""

    file: Path
    problems: list[Problem] = field(default_factory=list)
    unused: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def problem(self, entry: Entry, message: str) -> None:
        self.problems.append(self._about(entry, _sentence(entry, message)))

    def without_effect(self, entry: Entry, why: str) -> None:
        self.unused.append(self._about(entry, f"has no effect: {why}"))

    def note(self, entry: Entry, message: str) -> None:
        self.notes.append(self._about(entry, _sentence(entry, message)))

    def _about(self, entry: Entry, message: str) -> Problem:
        return Problem(entry.file or self.file, entry.line, entry.shown, message)


def _sentence(entry: Entry, message: str) -> str:
    """The message, unless it tells something that a config provider brought: that may be a secret, whatever the key."""
    told = message.casefold()
    parts = _WORDS.split(entry.value.casefold())
    if entry.referenced and any(part and part in told for part in parts):
        return (
            "has a value that does not fit; it comes from a config provider and is not shown: check it where it stands"
        )
    return message


def check_line(entry: Entry, place: Place, aliases: Sequence[str], findings: Findings) -> None:
    """Judge one line. `aliases` are the file's clusters; `place` is where the line belongs (`layering.place_of`)."""
    if place.flow is not None:
        if _known_flow(entry, place, aliases, findings):
            _check_flow_line(entry, place, findings)
    elif place.alias is not None:
        _check_cluster_line(entry, place, aliases, findings)
    else:
        _check_top_line(entry, place, aliases, findings)


def _known_flow(entry: Entry, place: Place, aliases: Sequence[str], findings: Findings) -> bool:
    flow = place.flow
    assert flow is not None
    unknown = [alias for alias in (flow.source, flow.target) if alias not in aliases]
    if unknown:
        names = " and ".join(repr(alias) for alias in dict.fromkeys(unknown))
        verb = "is" if len(set(unknown)) == 1 else "are"
        message = f"the flow {flow} names {names}, which {verb} not in clusters ({', '.join(aliases)})"
        findings.problem(entry, message + _or_nearest(unknown[0], aliases))
        return False
    if flow.source == flow.target:
        findings.problem(entry, f"the flow {flow} leads from {flow.source} to itself: a flow needs two clusters")
        return False
    return True


def _check_flow_line(entry: Entry, place: Place, findings: Findings) -> None:
    key = place.key
    if _check_known(entry, key, Scope.FLOW, findings):
        return
    for side in ("source", "target"):
        inner = key.removeprefix(f"{side}.cluster.")
        if inner != key:
            _check_connection(entry, inner, findings)
            return
    for kind in KINDS:
        for prefix in (f"{kind}.override.", f"{kind}.", f"source.{kind}.", f"target.{kind}."):
            if not key.startswith(prefix):
                continue
            if prefix in ("consumer.override.", "admin.override."):
                findings.without_effect(
                    entry, f"MirrorMaker does not read it: write {place.flow}.source.{kind}.... or ALIAS.{kind}...."
                )
            else:
                _check_client(entry, kind, key.removeprefix(prefix), findings)
            return
    if key in CONNECTION:
        flow = place.flow
        findings.without_effect(
            entry, f"MirrorMaker connects to clusters, not to flows: write ALIAS.{key} or {flow}.source.cluster.{key}"
        )
        return
    prefixes = [f"{side}.{kind}" for side in ("source", "target") for kind in (*KINDS, "cluster")]
    _unknown(entry, key, [*_names_in(Scope.FLOW), *prefixes], findings)


def _check_cluster_line(entry: Entry, place: Place, aliases: Sequence[str], findings: Findings) -> None:
    key = place.key
    if key in CONNECTION:
        _check_connection(entry, key, findings)
        return
    for kind in KINDS:
        if key.startswith(f"{kind}."):
            _check_client(entry, kind, key.removeprefix(f"{kind}."), findings)
            return
    if _check_known(entry, key, Scope.CLUSTER, findings):
        return
    _unknown(entry, key, [*CONNECTION, *_names_in(Scope.CLUSTER), *KINDS], findings)


def _check_top_line(entry: Entry, place: Place, aliases: Sequence[str], findings: Findings) -> None:
    key = place.key
    if key.startswith("config.providers."):
        return  # the providers' own check (`providers.providers_of`)
    if _check_known(entry, key, Scope.TOP, findings):
        return
    if key in CONNECTION:
        _check_connection(entry, key, findings)
        return
    for prefix in (*KINDS, *(f"{side}.{kind}" for side in ("source", "target") for kind in (*KINDS, "cluster"))):
        if key.startswith(f"{prefix}."):
            kind = prefix.rpartition(".")[2]
            inner = key.removeprefix(f"{prefix}.")
            where = f"ALIAS.{inner}" if kind == "cluster" else f"ALIAS.{kind}.{inner} or SOURCE->TARGET.{kind}.{inner}"
            findings.without_effect(entry, f"MirrorMaker drops it at the top of the file: write {where}")
            return
    if key in aliases or key.endswith("->"):
        findings.problem(
            entry,
            "is half a key: a key ends at the first blank, = or :, so write a flow as A->B.enabled, without blanks",
        )
        return
    alias, dot, rest = key.partition(".")
    if dot and _is_known_of_cluster(rest):
        message = f"{alias!r} is not in clusters ({', '.join(aliases)})"
        findings.problem(entry, message + (_or_nearest(alias, aliases) or ": add it there, or remove this line"))
        return
    if dot and rest in KEYS and alias not in ("lockstep", "source", "target"):
        findings.problem(
            entry,
            f"{alias!r} is neither in clusters ({', '.join(aliases)}) nor a flow, SOURCE->TARGET.{rest}",
        )
        return
    of_clusters = [f"{alias}.{name}" for alias in aliases for name in ("bootstrap.servers", "security.protocol")]
    _unknown(entry, key, [*_names_in(Scope.TOP), *CONNECTION, *of_clusters], findings)


def _is_known_of_cluster(rest: str) -> bool:
    return rest in CONNECTION or any(
        rest.startswith(f"{kind}.") and (rest.removeprefix(f"{kind}.") in CLIENT[kind] or rest.endswith(".servers"))
        for kind in KINDS
    )


def _check_known(entry: Entry, name: str, scope: Scope, findings: Findings) -> bool:
    """Judge the line by the tables of MM2's properties and of ours; False when they do not know the name."""
    if name.startswith(CONF_PREFIX):
        _check_spark(entry, name, scope, findings)
        return True
    key = KEYS.get(name)
    if key is not None:
        if scope in key.scopes:
            _check_key(entry, key, findings)
        else:
            where = " or ".join(place.value.replace("KEY", name) for place in Scope if place in key.scopes)
            findings.without_effect(entry, f"MirrorMaker does not read it here: write {where}")
        return True
    for family in FAMILIES:
        if name.startswith(family.prefix):
            findings.without_effect(entry, family.why)
            return True
    return False


def _check_spark(entry: Entry, name: str, scope: Scope, findings: Findings) -> None:
    if scope is not Scope.TOP:
        findings.without_effect(entry, f"one Spark serves all flows of a process: write {name}")
        return
    try:
        check_conf(name.removeprefix(CONF_PREFIX), entry.value)
    except BadValue as exc:
        findings.problem(entry, str(exc))


def _check_key(entry: Entry, key: Key, findings: Findings) -> None:
    if key.status is Status.WITHOUT_EFFECT:
        findings.without_effect(entry, key.why)
        return
    value = entry.value.strip()
    if key.status is Status.REFUSED:
        if value and value not in key.choices:
            instead = f"; it may be {', '.join(key.choices)}" if key.choices else ": remove it"
            findings.problem(entry, f"is {value!r}, which is refused: {key.why}{instead}")
        return
    if key.renamed_to:
        findings.note(entry, f"was renamed to {key.renamed_to}, which counts where both are set")
    try:
        _check_value(entry.value, key)
    except (BadValue, UntranslatablePattern) as exc:
        findings.problem(entry, str(exc))


def _check_group(text: str) -> None:
    if not text.strip():
        raise BadValue("is missing: name the consumer group whose positions on the source count, MirrorMaker 1's")


OWN_CHECKS: Mapping[str, Callable[[str], object]] = {
    MASTER: check_master,
    MM2_VERSION: version,
    START_TIMESTAMP: moment,
    LEGACY_GROUP: _check_group,
}
"""Keys whose values are judged by more than their kind."""


def _check_value(text: str, key: Key) -> None:
    if key.per_topic:
        per_topic(text, lambda own: _check_value(own, replace(key, per_topic=False)), None)
        return
    if (own_check := OWN_CHECKS.get(key.name)) is not None:
        own_check(text)
        return
    if key.choices:
        choice(text, key.choices)
        return
    match key.kind:
        case Kind.BOOLEAN:
            boolean(text)
        case Kind.INTEGER:
            number = integer(text, key.minimum, key.maximum)
            if key.minimum == -1 and number == 0:
                raise BadValue("is 0, out of range: it takes a number from 1, or -1 for the broker's default")
        case Kind.LIST:
            list_of(text)
        case Kind.PATTERNS:
            NameFilter(list_of(text))
        case Kind.STRING | Kind.CLASS:
            pass


def _check_connection(entry: Entry, name: str, findings: Findings) -> None:
    if name not in CONNECTION:
        _unknown(entry, name, CONNECTION, findings)
        return
    if name in CONNECTION_WITHOUT_EFFECT:
        findings.without_effect(entry, CONNECTION_WITHOUT_EFFECT[name])
        return
    try:
        if name == "security.protocol":
            choice(entry.value, PROTOCOLS)
        elif name == "bootstrap.servers":
            _check_servers(entry.value)
    except BadValue as exc:
        findings.problem(entry, str(exc))


def _check_servers(text: str) -> None:
    servers = list_of(text)
    if not servers:
        raise BadValue("is empty: write HOST:PORT, several between commas")
    for server in servers:
        host, colon, port = server.rpartition(":")
        host = host.rpartition("://")[2]
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
            raise BadValue(f"has {server!r}, which is no HOST:PORT")


def _check_client(entry: Entry, kind: ClientKind, name: str, findings: Findings) -> None:
    if name in CONNECTION:
        _check_connection(entry, name, findings)
        return
    key = CLIENT[kind].get(name)
    if key is None:
        _unknown(entry, name, [*CLIENT[kind], *CONNECTION], findings)
        return
    if key.status is Status.WITHOUT_EFFECT:
        findings.without_effect(entry, key.why)
    elif key.status is Status.REFUSED:
        if entry.value.strip():
            findings.problem(entry, f"is {masked(name, entry.value.strip())!r}, which is refused: {key.why}")
    else:
        _check_client_value(entry, key, findings)


def _check_client_value(entry: Entry, key: ClientKey, findings: Findings) -> None:
    try:
        if key.choices:
            choice(entry.value, key.choices)
        elif key.name == "check.crcs":
            boolean(entry.value)
        elif not key.librdkafka and key.minimum is not None:
            integer(entry.value, key.minimum, key.maximum)
        elif key.minimum is not None and key.maximum is not None:
            number = integer(entry.value, -1)
            nearest = min(max(number, key.minimum), key.maximum)
            # -1 is Java's word for the system's own buffer size; librdkafka's is 0.
            if number not in (-1, nearest):
                findings.note(entry, f"is {number}, beyond what librdkafka takes: {nearest} is used")
    except BadValue as exc:
        findings.problem(entry, str(exc))


def _names_in(scope: Scope) -> list[str]:
    return [name for name, key in KEYS.items() if scope in key.scopes]


def _unknown(entry: Entry, name: str, candidates: Iterable[str], findings: Findings) -> None:
    prefix = entry.shown.removesuffix(name)
    nearest = difflib.get_close_matches(name, list(candidates), 1, LIKENESS)
    instead = f"did you mean {prefix}{nearest[0]}?" if nearest else "nothing like it is known: remove it"
    findings.problem(entry, f"is no key that MirrorMaker or Lockstep knows; {instead}")


def _or_nearest(alias: str, aliases: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(alias, aliases, 1, LIKENESS)
    return f": did you mean {nearest[0]!r}?" if nearest else ""
