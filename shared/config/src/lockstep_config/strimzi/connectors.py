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
from lockstep_config.text.secrets import mask_value
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
    absent = {name: mirror.path_of(called) for name, called in CONNECTOR_FIELDS.items()}
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
    reader = _FlowReader(connectors, flow, lines)
    reader.add_presence("" if patterns is None else patterns.path)
    for name, part in connectors.present.items():
        reader.add_own(name, part)
    if patterns is not None:
        _add_patterns(patterns, flow, lines)
    by_key: dict[str, dict[ConnectorName, ConfigSetting]] = {}
    for name, part in connectors.present.items():
        for setting in reader.shared_settings(name, part):
            by_key.setdefault(setting.key, {})[name] = setting
    for key, settings in by_key.items():
        reader.add_shared(key, settings)
    for key, settings in by_key.items():
        reader.compare_with_leading(key, settings)
    # A line at the top switches heartbeats off for the pairs of clusters without a flow.
    if (heartbeat := connectors.present.get("heartbeat")) is not None:
        lines.add_line(f"{flow}.emit.heartbeats.enabled", "true", heartbeat)


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


def _is_client(key: str) -> bool:
    prefixes = [f"{side}{kind}." for side in ("", "source.", "target.") for kind in _KINDS]
    return key.startswith(tuple(prefixes)) and key not in KEYS


@dataclass(frozen=True, slots=True)
class _FlowReader:
    """A reader of one flow's connectors, which adds the lines that they mean."""

    connectors: Connectors
    flow: Flow
    lines: Lines

    def _own(self, name: ConnectorName, key: str) -> str:
        """Return a key for one connector alone."""
        return f"{self.flow}.{connector_prefix(name)}{key}"

    def add_presence(self, path: str) -> None:
        """Add the lines that say which connectors run; `path` is the mirror's."""
        present, line = self.connectors.present, self.connectors.line
        runs = "source" in present or "checkpoint" in present
        self.lines.add_line(f"{self.flow}.enabled", str(runs).lower(), Place(path, line))
        for name in CONNECTORS:
            place = Place(self.connectors.absent[name], line)
            if name not in present and name == "heartbeat":
                self.lines.add_line(f"{self.flow}.emit.heartbeats.enabled", "false", place)
            elif name not in present and runs:
                self.lines.add_line(self._own(name, "enabled"), "false", place)

    def add_own(self, name: ConnectorName, part: Part) -> None:
        """Add what a resource says beside a connector's `config`: its tasks, restarts and state."""
        tasks = part.number("tasksMax")
        if tasks is not None:
            if name != "heartbeat":
                self.lines.add_line(self._own(name, "tasks.max"), str(tasks), part.place("tasksMax"))
            elif tasks > 1:
                self.lines.without_effect(part.place("tasksMax"), "heartbeats need one task")
        restart = part.part("autoRestart")
        if restart is not None:
            most = restart.number("maxRestarts")
            enabled = restart.flag("enabled") is not False and most != 0
            self.lines.add_line(self._own(name, "lockstep.auto.restart.enabled"), str(enabled).lower(), restart)
            if most and enabled:
                place = restart.place("maxRestarts")
                self.lines.add_line(self._own(name, "lockstep.auto.restart.max"), str(most), place)
        state = part.text("state") if part.text("state") in KEYS[STATE].choices else ""  # another value is reported
        if part.flag("pause") is not None and state:
            self.lines.without_effect(part.place("pause"), "state counts, as in Strimzi")
        if state:
            self.lines.add_line(self._own(name, STATE), state, part.place("state"))
        elif part.flag("pause"):
            self.lines.add_line(self._own(name, STATE), "paused", part.place("pause"))

    def shared_settings(self, name: ConnectorName, part: Part) -> Iterator[ConfigSetting]:
        """Yield the settings of a connector's `config` that it reads and that others may read too.

        The others are added or reported.
        """
        called, lines = self.connectors.called, self.lines
        for setting in part.settings():
            key = setting.key
            if key in _SET_BY_STRIMZI:
                instead = ": write tasksMax" if key == "tasks.max" else ""
                lines.note(setting, f"is ignored, as Strimzi does: it sets it itself{instead}")
            elif "->" in key:
                self._report_arrow(name, setting, part)
            elif _is_client(key):
                self._add_client(name, setting)
            elif name not in connectors_reading(key):
                readers = " and ".join(f"{called[reader]}.config" for reader in connectors_reading(key))
                lines.without_effect(setting, f"{called[name]} does not read it: write it into {readers}")
            elif key == "enabled" and name == "heartbeat":
                lines.without_effect(setting, "heartbeats do not depend on it: write emit.heartbeats.enabled")
            elif key == "enabled":
                lines.add_line(self._own(name, key), setting.value, setting)
            elif key in ALIAS_KEYS and not self._is_alias_read(setting):
                continue
            elif (counts := lines.entries.get(f"{self.flow}.{key}")) is not None:
                lines.without_effect(setting, f"{counts.shown} counts, as in Strimzi")
            else:
                yield setting

    def _report_arrow(self, name: ConnectorName, setting: ConfigSetting, part: Part) -> None:
        """Report a line of an mm2.properties among a connector's own. Connect leaves it out, so it has no effect."""
        key = setting.key.partition("->")[2].partition(".")[2]
        fault = "a line of an mm2.properties, which no connector reads"
        reads = key in KEYS and key != "enabled" and name in connectors_reading(key)
        states = any(key == stated.key for stated in part.settings())
        if reads and not states and setting.value.strip() != KEYS[key].default:
            self.lines.problem(setting, f"is {fault}: write {key}, or remove it")
        else:
            self.lines.without_effect(setting, f"it is {fault}")

    def _is_alias_read(self, setting: ConfigSetting) -> bool:
        """Return whether a connector's alias of a cluster is read at all. What is not certain is a problem."""
        alias = self.flow.source if setting.key == ALIAS_KEYS[0] else self.flow.target
        aliases = self.connectors.aliases
        if aliases is AliasesOf.CONNECTOR or setting.value == alias:
            return aliases is AliasesOf.CONNECTOR
        if aliases is AliasesOf.CLUSTER:
            self.lines.without_effect(setting, f"the cluster's alias {alias!r} counts, as in Strimzi")
            return False
        message = (
            f"is {setting.value!r}, but the cluster's alias is {alias!r}. With this form older versions of Strimzi use "
            "the cluster's and newer ones this line. If the copies on the target are named after the cluster, remove "
            "this line. Otherwise write the form of apiVersion v1, with spec.target, in which this line counts"
        )
        self.lines.problem(setting, message)
        return False

    def _add_client(self, name: ConnectorName, setting: ConfigSetting) -> None:
        """Add a property of the connector's clients. The source connector's are where mm2.properties has them."""
        own = f"{self.flow}." if name == "source" else self._own(name, "")
        kind, _, inner = setting.key.partition(".")
        # A flow's connection properties go above the cluster's own only if the key names the side.
        sides = ("source.", "target.") if kind in _KINDS and inner in CONNECTION else ("",)
        for side in sides:
            self.lines.add_line(f"{own}{side}{setting.key}", setting.value, setting)

    def add_shared(self, key: str, settings: Mapping[ConnectorName, ConfigSetting]) -> None:
        """Add a key that several connectors may read: the flow's one line, or a line of each connector."""
        present = self.connectors.present
        values = {setting.value.strip() for setting in settings.values()}
        if key in OWN_KEYS and (len(values) > 1 or len(settings) < len(present)):
            for name, setting in settings.items():
                self.lines.add_line(self._own(name, key), setting.value, setting)
            return
        # A Python class may read a key that no table has, whichever connector has the key.
        # A transform of the checkpoint connector changes no topic that the source connector copies.
        is_transform = key.partition(".")[0] in ("transforms", "predicates")
        is_of_all = key not in NAMING_KEYS and not is_transform and connectors_reading(key) == CONNECTORS
        leading = next(name for name in present if name in (settings if is_of_all else connectors_reading(key)))
        if (counts := settings.get(leading)) is not None:
            self.lines.add_line(f"{self.flow}.{key}", counts.value, counts)

    def compare_with_leading(self, key: str, settings: Mapping[ConnectorName, ConfigSetting]) -> None:
        """Note each connector that differs from the one that counts, with what MirrorMaker does then.

        The source connector counts if there is one.
        """
        leading, *others = self.connectors.present
        if key not in OWN_KEYS and leading in connectors_reading(key):
            for name in others:
                if name in connectors_reading(key):
                    self._compare(key, settings, leading, name)

    def _compare(
        self, key: str, settings: Mapping[ConnectorName, ConfigSetting], leading: ConnectorName, name: ConnectorName
    ) -> None:
        default = default_value(key, self.flow)
        leading_value, value = (settings[key].value.strip() if key in settings else default for key in (leading, name))
        # Heartbeats do not depend on these keys, and a topic that is not mirrored has no checkpoints.
        is_independent = name == "heartbeat" and key not in ALIAS_KEYS
        if leading_value == value or is_independent or (name not in settings and key not in NAMING_KEYS):
            return
        if leading not in settings and key not in KEYS:
            return
        leading_value, value = mask_value(key, leading_value), mask_value(key, value)
        present, stated = self.connectors.present, settings.get(leading)
        unset = f"{present[leading].in_config(key)}, which is unset,"
        counts = f"{stated.path} in line {stated.line}" if stated else unset
        stated_value = f"is {value!r}" if name in settings else f"is not set, so it would be {value!r}"
        message = (
            f"{stated_value}, but {counts} is {leading_value!r}, and counts for both here. "
            f"{self._in_mirror_maker(key, name, value)} To have one value in both, write {key}: {leading_value!r} here"
        )
        if name == "checkpoint":
            message += ". To have no checkpoints, leave the checkpoint connector out"
        self.lines.note(settings.get(name) or Place(present[name].in_config(key), present[name].line), message)

    def _in_mirror_maker(self, key: str, name: ConnectorName, value: str) -> str:
        """Return the sentence about what MirrorMaker does with a connector that differs in `key` alone."""
        if name == "heartbeat":
            return f"In MirrorMaker heartbeats then say {value!r}."
        if key == "topic.filter.class" or key.startswith("topics"):
            return (
                "In MirrorMaker checkpoints are then of those mirrored topics alone that the checkpoint connector "
                "selects."
            )
        if key not in NAMING_KEYS:
            return "In MirrorMaker each connector has its own."
        entries, flow = self.lines.entries, self.flow
        version = entries[VERSION].value if VERSION in entries else DEFAULT_VERSION
        own = {name: entry.value for name in NAMING_KEYS if (entry := entries.get(f"{flow}.{name}")) is not None}
        source, checkpoint = (connector_names(settings, flow, version) for settings in (own, {**own, key: value}))
        return explain_difference(source, checkpoint, flow.target, version)
