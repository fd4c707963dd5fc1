"""A mirror's three connectors as the lines of one flow.

In Strimzi each connector has a `config` of its own; in mm2.properties a flow has one. So a key counts if the
connector reads it. If several read it and differ, the source connector's value counts, with a note. If they may
differ, it is the connector's own (`lockstep.connector.NAME.KEY`). This module is pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from lockstep_config.keys.client_keys import CONNECTION
from lockstep_config.keys.connector_keys import (
    CONNECTORS,
    OWN_KEYS,
    ConnectorName,
    connector_prefix,
    connectors_reading,
)
from lockstep_config.keys.key_types import ALIAS_KEYS
from lockstep_config.keys.lockstep_keys import STATE
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.strimzi.connector_names import NAMING_KEYS, connector_names, default_value, explain_difference
from lockstep_config.strimzi.lines import ConfigSetting, Lines, Part, Place
from lockstep_rules.versions import DEFAULT_VERSION
from lockstep_state.names import Flow

CONNECTOR_FIELDS: Mapping[ConnectorName, str] = MappingProxyType({name: f"{name}Connector" for name in CONNECTORS})

_SET_BY_STRIMZI = ("name", "connector.class", "tasks.max")
_KINDS = ("consumer", "producer", "admin")
VERSION = "lockstep.mm2.version"


class AliasesOf(Enum):
    """The alias that Strimzi takes if a connector's `source.cluster.alias` is another than its cluster's."""

    CLUSTER = "before v1beta2"
    EITHER = "v1beta2, which versions of both kinds read"
    CONNECTOR = "v1"


def add_connectors(mirror: Part, flow: Flow, lines: Lines, aliases: AliasesOf = AliasesOf.CONNECTOR) -> None:
    """Add the lines of a flow of a KafkaMirrorMaker2. A connector that is absent does not run."""
    # `sourceConnector:` without a value is present too, as an empty mapping.
    present = {name: part for name in CONNECTORS if (part := mirror.part(CONNECTOR_FIELDS[name])) is not None}
    if not present:
        lines.note(mirror, f"has no connector, so nothing runs for {flow}")
    absent = {name: mirror.at(called) for name, called in CONNECTOR_FIELDS.items()}
    add_flow(Connectors(present, CONNECTOR_FIELDS, absent, mirror.line, aliases), flow, lines, mirror)


@dataclass(frozen=True, slots=True)
class Connectors:
    """The connectors of one flow.

    `present` has the mapping with the `config` of each, `called` its name, and `absent` its path if it is absent.
    `line` is the line of them all, and `aliases` says whose aliases count.
    """

    present: Mapping[ConnectorName, Part]
    called: Mapping[ConnectorName, str]
    absent: Mapping[ConnectorName, str]
    line: int
    aliases: AliasesOf = AliasesOf.CONNECTOR


def add_flow(connectors: Connectors, flow: Flow, lines: Lines, patterns: Part | None = None) -> None:
    """Add the lines of a flow. A connector that is absent does not run.

    Args:
        connectors: The connectors of the flow.
        flow: The flow.
        lines: Takes the lines and findings.
        patterns: The mirror, with its topics and groups; None if there is none.
    """
    present = connectors.present
    runs = "source" in present or "checkpoint" in present
    lines.add_line(f"{flow}.enabled", str(runs).lower(), Place(patterns.path if patterns else "", connectors.line))
    for name in CONNECTORS:
        place = Place(connectors.absent[name], connectors.line)
        if name not in present and name == "heartbeat":
            lines.add_line(f"{flow}.emit.heartbeats.enabled", "false", place)
        elif name not in present and runs:
            lines.add_line(f"{flow}.{connector_prefix(name)}enabled", "false", place)
    for name, part in present.items():
        _add_own(name, part, flow, lines)
    if patterns is not None:
        _add_patterns(patterns, flow, lines)
    said: dict[str, dict[ConnectorName, ConfigSetting]] = {}
    for name, part in present.items():
        for setting in _settings(name, part, connectors, flow, lines):
            said.setdefault(setting.key, {})[name] = setting
    for key, each in said.items():
        _add_shared(key, each, present, flow, lines)
    _compare_with_source(said, present, flow, lines)
    # A line at the top switches heartbeats off for the pairs of clusters without a flow.
    if (heartbeat := present.get("heartbeat")) is not None:
        lines.add_line(f"{flow}.emit.heartbeats.enabled", "true", heartbeat)


def _add_own(name: ConnectorName, part: Part, flow: Flow, lines: Lines) -> None:
    own = f"{flow}.{connector_prefix(name)}"
    tasks = part.number("tasksMax")
    if tasks is not None:
        if name != "heartbeat":
            lines.add_line(f"{own}tasks.max", str(tasks), part.place("tasksMax"))
        elif tasks > 1:
            lines.without_effect(part.place("tasksMax"), "heartbeats need one task")
    restart = part.part("autoRestart")
    if restart is not None:
        most = restart.number("maxRestarts")
        enabled = restart.flag("enabled") is not False and most != 0
        lines.add_line(f"{own}lockstep.auto.restart.enabled", str(enabled).lower(), restart)
        if most and enabled:
            lines.add_line(f"{own}lockstep.auto.restart.max", str(most), restart.place("maxRestarts"))
    state = part.text("state") if part.text("state") in KEYS[STATE].choices else ""  # another value is reported
    if part.flag("pause") is not None and state:
        lines.without_effect(part.place("pause"), "state counts, as in Strimzi")
    if state:
        lines.add_line(f"{own}{STATE}", state, part.place("state"))
    elif part.flag("pause"):
        lines.add_line(f"{own}{STATE}", "paused", part.place("pause"))


def _add_patterns(mirror: Part, flow: Flow, lines: Lines) -> None:
    for field, old, key in (
        ("topicsPattern", "", "topics"),
        ("topicsExcludePattern", "topicsBlacklistPattern", "topics.exclude"),
        ("groupsPattern", "", "groups"),
        ("groupsExcludePattern", "groupsBlacklistPattern", "groups.exclude"),
    ):
        named = [name for name in (field, old) if name and mirror.leaf(name) is not None]
        if len(named) == 2:
            lines.without_effect(mirror.place(old), f"{field} counts, as in Strimzi")
        if named:
            lines.add_line(f"{flow}.{key}", mirror.text(named[0]), mirror.place(named[0]))


def _settings(
    name: ConnectorName, part: Part, connectors: Connectors, flow: Flow, lines: Lines
) -> Iterator[ConfigSetting]:
    """Yield the keys of a connector's `config` that it reads and that others may read too.

    The other keys are added or reported.
    """
    called = connectors.called
    for setting in part.settings():
        key = setting.key
        if key in _SET_BY_STRIMZI:
            instead = ": write tasksMax" if key == "tasks.max" else ""
            lines.note(setting, f"is ignored, as Strimzi does: it sets it itself{instead}")
        elif "->" in key:
            _report_arrow(key.partition("->")[2].partition(".")[2], name, setting, part, lines)
        elif _is_client(key):
            _add_client(name, setting, flow, lines)
        elif name not in connectors_reading(key):
            others = " and ".join(f"{called[reader]}.config" for reader in connectors_reading(key))
            lines.without_effect(setting, f"{called[name]} does not read it: write it into {others}")
        elif key == "enabled" and name == "heartbeat":
            lines.without_effect(setting, "heartbeats do not depend on it: write emit.heartbeats.enabled")
        elif key == "enabled":
            lines.add_line(f"{flow}.{connector_prefix(name)}enabled", setting.value, setting)
        elif key in ALIAS_KEYS and not _counts(setting, flow, connectors.aliases, lines):
            continue
        elif (counts := lines.entries.get(f"{flow}.{key}")) is not None:
            lines.without_effect(setting, f"{counts.shown} counts, as in Strimzi")
        else:
            yield setting


def _report_arrow(key: str, name: ConnectorName, said: ConfigSetting, part: Part, lines: Lines) -> None:
    """Report a line of an mm2.properties among a connector's own. Connect leaves it out, so it has no effect."""
    fault = "a line of an mm2.properties, which no connector reads"
    reads = key in KEYS and key != "enabled" and name in connectors_reading(key)
    states = any(key == setting.key for setting in part.settings())
    if reads and not states and said.value.strip() != KEYS[key].default:
        lines.problem(said, f"is {fault}: write {key}, or remove it")
    else:
        lines.without_effect(said, f"it is {fault}")


def _counts(said: ConfigSetting, flow: Flow, aliases: AliasesOf, lines: Lines) -> bool:
    """Return whether a connector's alias of a cluster is read at all. What is not certain is a problem."""
    clusters = flow.source if said.key == ALIAS_KEYS[0] else flow.target
    if aliases is AliasesOf.CONNECTOR or said.value == clusters:
        return aliases is AliasesOf.CONNECTOR
    if aliases is AliasesOf.CLUSTER:
        lines.without_effect(said, f"the cluster's alias {clusters!r} counts, as in Strimzi")
        return False
    message = (
        f"is {said.value!r}, but the cluster's alias is {clusters!r}. With this form older versions of Strimzi use the "
        "cluster's and newer ones this line. If the copies on the target are named after the cluster, remove this "
        "line. Otherwise write the form of apiVersion v1, with spec.target, in which this line counts"
    )
    lines.problem(said, message)
    return False


def _is_client(key: str) -> bool:
    prefixes = [f"{side}{kind}." for side in ("", "source.", "target.") for kind in _KINDS]
    return key.startswith(tuple(prefixes)) and key not in KEYS


def _add_client(name: ConnectorName, said: ConfigSetting, flow: Flow, lines: Lines) -> None:
    """Add a property of the connector's clients. The source connector's are where mm2.properties has them."""
    own = f"{flow}." if name == "source" else f"{flow}.{connector_prefix(name)}"
    kind, _, inner = said.key.partition(".")
    if kind in _KINDS and inner in CONNECTION:
        # A flow's connection properties go above the cluster's own only if the key names the side.
        for side in ("source", "target"):
            lines.add_line(f"{own}{side}.{said.key}", said.value, said)
    else:
        lines.add_line(f"{own}{said.key}", said.value, said)


def _add_shared(
    key: str,
    said: Mapping[ConnectorName, ConfigSetting],
    present: Mapping[ConnectorName, Part],
    flow: Flow,
    lines: Lines,
) -> None:
    values = {setting.value.strip() for setting in said.values()}
    if key in OWN_KEYS and (len(values) > 1 or len(said) < len(present)):
        for name, setting in said.items():
            lines.add_line(f"{flow}.{connector_prefix(name)}{key}", setting.value, setting)
        return
    # A Python class may read a key that no table has, whichever connector has the key.
    is_of_all = key not in NAMING_KEYS and connectors_reading(key) == CONNECTORS
    leading = next(name for name in present if name in (said if is_of_all else connectors_reading(key)))
    if (counts := said.get(leading)) is not None:
        lines.add_line(f"{flow}.{key}", counts.value, counts)


def _compare_with_source(
    said: Mapping[str, Mapping[ConnectorName, ConfigSetting]],
    present: Mapping[ConnectorName, Part],
    flow: Flow,
    lines: Lines,
) -> None:
    """Note each setting in which a connector differs from the one that counts, with what MirrorMaker does then.

    The source connector counts if there is one.
    """
    if not present:
        return
    leading, *others = present
    for key, each in said.items():
        for name in others:
            if key in OWN_KEYS or name not in connectors_reading(key):
                continue
            if leading in connectors_reading(key):
                _compare(key, each, (leading, name), present, flow, lines)


def _compare(
    key: str,
    said: Mapping[ConnectorName, ConfigSetting],
    pair: tuple[ConnectorName, ConnectorName],
    present: Mapping[ConnectorName, Part],
    flow: Flow,
    lines: Lines,
) -> None:
    leading, name = pair
    default = default_value(key, flow)
    leading_value, value = (said[each].value.strip() if each in said else default for each in pair)
    # Heartbeats do not depend on these keys, and a topic that is not mirrored has no checkpoints.
    is_independent = name == "heartbeat" and key not in ALIAS_KEYS
    if leading_value == value or is_independent or (name not in said and key not in NAMING_KEYS):
        return
    if leading not in said and key not in KEYS:
        return
    stated = said.get(leading)
    counts = f"{stated.path} in line {stated.line}" if stated else f"{present[leading].in_config(key)}, which is unset,"
    position = said.get(name) or Place(present[name].in_config(key), present[name].line)
    stated_value = f"is {value!r}" if name in said else f"is not set, so it would be {value!r}"
    consequence = _in_mirror_maker(key, name, value, flow, lines)
    message = (
        f"{stated_value}, but {counts} is {leading_value!r}, and counts for both here. {consequence} To have one value "
        f"in both, write {key}: {leading_value!r} here"
    )
    if name == "checkpoint":
        message += ". To have no checkpoints, leave the checkpoint connector out"
    lines.note(position, message)


def _in_mirror_maker(key: str, connector: ConnectorName, value: str, flow: Flow, lines: Lines) -> str:
    """Return the sentence about what MirrorMaker does with two connectors that differ in `key` alone."""
    if connector == "heartbeat":
        return f"In MirrorMaker heartbeats then say {value!r}."
    if key == "topic.filter.class" or key.startswith("topics"):
        return (
            "In MirrorMaker checkpoints are then of those mirrored topics alone that the checkpoint connector selects."
        )
    if key not in NAMING_KEYS:
        return "In MirrorMaker each connector has its own."
    version = lines.entries[VERSION].value if VERSION in lines.entries else DEFAULT_VERSION
    own = {name: entry.value for name in NAMING_KEYS if (entry := lines.entries.get(f"{flow}.{name}")) is not None}
    source, checkpoint = (connector_names(settings, flow, version) for settings in (own, {**own, key: value}))
    return explain_difference(source, checkpoint, flow.target, version)
