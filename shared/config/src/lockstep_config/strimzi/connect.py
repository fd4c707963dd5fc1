"""MirrorMaker 2's connectors on an existing Kafka Connect, as the lines of an mm2.properties file.

Connect's REST API takes and prints them as JSON (`{"name", "config"}`, the map of `config` alone, and a map of both
by names). Strimzi has a `KafkaConnector` for each. Those with the same two aliases are one flow. The settings of
Connect's workers are elsewhere: only a `KafkaConnect` beside them has them. This module is pure.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lockstep_config.keys.client_keys import CLIENT, CONNECTION, ClientKind
from lockstep_config.keys.connector_keys import ConnectorName, client_kind, connector_name, connector_prefix
from lockstep_config.keys.key_types import ALIAS_KEYS, ALIAS_OF_CLUSTER
from lockstep_config.keys.lockstep_keys import STATE
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.resolve.cells import ALIAS
from lockstep_config.resolve.client_lines import only_connection
from lockstep_config.resolve.precedence import SIDES, Side
from lockstep_config.strimzi.api_versions import IBM_GROUPS
from lockstep_config.strimzi.connectors import Connectors, add_flow
from lockstep_config.strimzi.lines import ConfigSetting, Lines, Part, Place, Placed
from lockstep_config.text.values import split_list
from lockstep_config.text.yaml_nodes import MapNode, Node
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.names import TOPIC_CHARACTERS, Flow

MIRROR = "org.apache.kafka.connect.mirror."
CLASSES: Mapping[ConnectorName, str] = {connector_name(connector): connector.value for connector in Connector}
OFFSETS = "offset.storage.topic"
_OF_CONNECTOR = frozenset({"name", "connector.class", "clusters", "tasks.max", *ALIAS_KEYS})
_OF_WORKER = (
    *(OFFSETS, "offset.storage.partitions", "offset.storage.replication.factor", "offset.flush.interval.ms"),
    "exactly.once.source.support",
)
_WORKER_DEFAULT = "connect-cluster-offsets"
"""The topic for offsets of Strimzi's `KafkaConnect`, if its `config` names none."""
_CLUSTER_LABELS = tuple(f"{group}/cluster" for group in ("strimzi.io", *IBM_GROUPS))


@dataclass(frozen=True, slots=True)
class ConnectorResource:
    """One of MM2's three connectors, with the mapping that holds its `config`.

    `name` is what Connect calls it. `worker` is the KafkaConnect that it belongs to, empty if unknown.
    """

    kind: ConnectorName
    part: Part
    name: str
    worker: str = ""
    is_strimzi: bool = False
    settings: Mapping[str, ConfigSetting] = field(default_factory=dict, repr=False)

    def text(self, key: str) -> str:
        return self.settings[key].value.strip() if key in self.settings else ""

    def place(self, key: str) -> Placed:
        """Return the place of a setting, or the place where it is missing."""
        return self.settings.get(key) or Place(self.part.in_config(key), self.part.line)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The source's and the target's alias; `source` and `target`, as in MM2, if it has none."""
        return tuple(
            self.text(key) if key in self.settings else side for side, key in zip(SIDES, ALIAS_KEYS, strict=True)
        )

    @property
    def shown(self) -> str:
        called = f" {self.name!r}" if self.name else ""
        return f"the {CLASSES[self.kind]}{called} in line {self.part.line}"


def recognise_connector(root: Part) -> ConnectorResource | None:
    """Return the connector of a mapping, in any of its forms; None if it is no connector of MM2."""
    spec, config = root.part("spec"), root.part("config")
    if root.text("kind") == "KafkaConnector" and spec is not None:
        worker = next(filter(None, (root.text("metadata", "labels", label) for label in _CLUSTER_LABELS)), "")
        return _made(spec, spec.text("class"), root.text("metadata", "name"), worker, is_strimzi=True)
    if config is not None and config.has("connector.class"):
        return _made(root, config.text("connector.class"), root.text("name") or config.text("name"))
    if root.has("connector.class"):
        items: Mapping[str, Node] = {"config": root.node}
        flat = replace(root, node=MapNode(items, {"config": root.line}, root.line), config_at=root.path)
        return _made(flat, root.text("connector.class"), root.text("name"))
    return None


def connectors_by_name(root: Part) -> Iterator[Part]:
    """Yield the connectors of `GET /connectors?expand=info`, a map by their names; nothing for any other map."""
    infos = [info for name in root.node.items if (part := root.part(name)) and (info := part.part("info"))]
    if len(infos) == len(root.node.items):
        yield from infos


def nearest_class(java: str) -> str:
    """Return the class of MM2 that somebody has misspelt; empty if it is another class."""
    package, _, simple = java.strip().rpartition(".")
    if f"{package}." not in (MIRROR, ".") or simple in CLASSES.values():
        return ""
    return next(iter(difflib.get_close_matches(simple, list(CLASSES.values()), 1, 0.9)), "")


def is_worker(root: Part) -> bool:
    return root.text("kind") == "KafkaConnect"


def _made(part: Part, java: str, name: str, worker: str = "", *, is_strimzi: bool = False) -> ConnectorResource | None:
    simple = java.strip().removeprefix(MIRROR).removesuffix("Connector") + "Connector"
    kind = next((kind for kind, name_in_package in CLASSES.items() if name_in_package == simple), None)
    if kind is None:
        return None
    settings = {setting.key: setting for setting in part.settings()}
    return ConnectorResource(kind, part, name.strip(), worker, is_strimzi, settings)


def add_connect(connectors: Sequence[ConnectorResource], workers: Sequence[Part], lines: Lines) -> None:
    """Add all lines of connectors, and of the workers that they belong to."""
    flows: dict[Flow, dict[ConnectorName, ConnectorResource]] = {}
    for connector in connectors:
        flow = _flow(connector, lines)
        if flow is None:
            continue
        present = flows.setdefault(flow, {})
        earlier = present.setdefault(connector.kind, connector)
        alike = next(iter(present.values()))
        if alike.aliases != connector.aliases:
            message = (
                f"is another one than of {alike.shown}, and neither can name a cluster: give each flow its own file"
            )
            lines.problem(connector.place(ALIAS_KEYS[0]), message)
        elif earlier is not connector:
            message = f"is a second {CLASSES[connector.kind]} of {flow}, after {earlier.shown}: a flow has one of each"
            lines.problem(connector.place("connector.class"), message)
    aliases = dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target))
    if not flows:
        return
    lines.add_line("clusters", ", ".join(aliases), connectors[0].part)
    for flow, present in flows.items():
        for kind in CLASSES:
            if kind in present:
                _add_clusters(present[kind], flow, lines)
                _add_aliases(present[kind], flow, lines)
        _add_flow(flow, present, workers, lines)
    # Without this line every pair of clusters would have heartbeats, as in an mm2.properties file.
    lines.add_line("emit.heartbeats.enabled", "false", connectors[0].part)


def _flow(connector: ConnectorResource, lines: Lines) -> Flow | None:
    """Return the flow of a connector, named by its aliases.

    If an alias cannot name a cluster of a file, the side names it, and the alias is the flow's.
    """
    named: dict[str, str] = {}
    for side, key, alias in zip(SIDES, ALIAS_KEYS, connector.aliases, strict=True):
        if not TOPIC_CHARACTERS.issuperset(alias):
            message = f"is {alias!r}: an alias may hold letters, digits, '.', '_' and '-' only"
            lines.problem(connector.place(key), message)
            return None
        named[side] = alias if ALIAS.fullmatch(alias) and alias not in named.values() else side
    flow = Flow(named["source"], named["target"])
    if flow.source == flow.target:
        message = f"is {flow.target!r}, as source.cluster.alias is: give them different names"
        lines.problem(connector.place(ALIAS_KEYS[1]), message)
        return None
    return flow


def _add_flow(
    flow: Flow, present: Mapping[ConnectorName, ConnectorResource], workers: Sequence[Part], lines: Lines
) -> None:
    source = present.get("source")
    if source is not None:
        if not source.name:
            message = "is missing: Kafka Connect keeps the connector's progress under its name"
            lines.problem(source.place("name"), message)
        else:
            lines.add_line(f"{flow}.lockstep.progress.connector", source.name, source.place("name"))
        _add_worker(source, flow, workers, lines)
    parts = {}
    for kind in CLASSES:
        if kind not in present:
            continue
        connector = present[kind]
        own = f"{flow}.{connector_prefix(kind)}"
        if "tasks.max" in connector.settings and kind != "heartbeat" and not connector.is_strimzi:
            lines.add_line(f"{own}tasks.max", connector.text("tasks.max"), connector.place("tasks.max"))
        if "clusters" in connector.settings:
            lines.without_effect(connector.place("clusters"), "source.cluster.alias and target.cluster.alias name them")
        state = connector.part.text("initial_state").lower()
        if state in KEYS[STATE].choices and state != "running":
            lines.add_line(f"{own}{STATE}", state, connector.part.place("initial_state"))
        parts[kind] = _without_placing_keys(connector)
    line = next(iter(parts.values())).line
    add_flow(Connectors(parts, CLASSES, CLASSES, line), flow, lines)


def _without_placing_keys(connector: ConnectorResource) -> Part:
    """Return the connector without the settings that name it and its clusters. Those about its work remain."""
    config = connector.part.node.items.get("config")
    if not isinstance(config, MapNode):
        return connector.part
    placing_keys = _OF_CONNECTOR - {"tasks.max"} if connector.is_strimzi else _OF_CONNECTOR
    work_settings = {
        key: value
        for key, value in config.items.items()
        if key not in placing_keys
        and not key.startswith(("source.cluster.", "target.cluster."))
        and key not in ("source.bootstrap.servers", "target.bootstrap.servers")
    }
    items = {**connector.part.node.items, "config": replace(config, items=work_settings)}
    return replace(connector.part, node=replace(connector.part.node, items=items))


def _add_clusters(connector: ConnectorResource, flow: Flow, lines: Lines) -> None:
    """Add the connections of a connector's clusters.

    The first connector that states one states it for all. If another connector's connection differs, the difference
    goes to its own clients.
    """
    for side, alias in zip(SIDES, (flow.source, flow.target), strict=True):
        _add_misnamed_address(connector, side, alias, lines)
        of_clients: dict[ClientKind, list[ConfigSetting]] = {}
        for key, setting in connector.settings.items():
            name = key.removeprefix(f"{side}.cluster.")
            if name in (ALIAS_OF_CLUSTER, key):
                continue
            if (client := client_kind(name)) is not None:
                of_clients.setdefault(client[0], []).append(setting)
            elif name in CONNECTION:
                _add_connection(connector, side, flow, setting, lines)
            elif any(name in names for names in CLIENT.values()):
                instead = f"write {side}.consumer.{name}, {side}.producer.{name} or {side}.admin.{name}"
                lines.without_effect(setting, f"MirrorMaker reads only the connection there: {instead}")
            else:
                lines.add_line(f"{flow}.{side}.cluster.{name}", setting.value, setting)
        for kind, settings in of_clients.items():
            _report_clients(side, kind, settings, lines)


def _add_connection(connector: ConnectorResource, side: Side, flow: Flow, setting: ConfigSetting, lines: Lines) -> None:
    alias = flow.source if side == "source" else flow.target
    name, value = setting.key.removeprefix(f"{side}.cluster."), setting.value
    cluster = lines.entries.get(f"{alias}.{name}")
    if cluster is None:
        lines.add_line(f"{alias}.{name}", value, setting)
    elif name == "bootstrap.servers":
        if set(split_list(value)).isdisjoint(split_list(cluster.value)):
            message = f"is another cluster than {cluster.shown} in line {cluster.line}, but both are {alias!r}"
            lines.problem(setting, f"{message}: give each cluster an alias of its own")
    elif value.strip() != cluster.value.strip():
        own = f"{flow}." if connector.kind == "source" else f"{flow}.{connector_prefix(connector.kind)}"
        for client in CLIENT:
            lines.add_line(f"{own}{side}.{client}.{name}", value, setting)


def _add_misnamed_address(connector: ConnectorResource, side: Side, alias: str, lines: Lines) -> None:
    """Report `source.bootstrap.servers` in place of `source.cluster.bootstrap.servers`.

    It is a mistake: without an address no connector starts in Kafka Connect either.
    """
    setting, right = connector.settings.get(f"{side}.bootstrap.servers"), f"{side}.cluster.bootstrap.servers"
    if setting is not None and right not in connector.settings:
        lines.problem(setting, f"is no key of a connector, and {right} is missing: write {right}")
        lines.add_line(f"{alias}.bootstrap.servers", setting.value, setting)


def _report_clients(side: Side, kind: ClientKind, settings: Sequence[ConfigSetting], lines: Lines) -> None:
    """Say once what to write for the properties of one client behind `source.cluster.` or `target.cluster.`."""
    first_setting, *more = settings
    prefix = f"{side}.cluster.{kind}."
    name = first_setting.key.removeprefix(prefix)
    also = f", as {len(more)} more that begin with {prefix}" if more else ""
    lines.without_effect(first_setting, only_connection(side, kind, name), f"has no effect{also}")


def _add_aliases(connector: ConnectorResource, flow: Flow, lines: Lines) -> None:
    """Add the aliases that are no names of clusters here."""
    for key, alias, cluster in zip(ALIAS_KEYS, connector.aliases, (flow.source, flow.target), strict=True):
        if alias != cluster:
            lines.add_line(f"{flow}.{key}", alias, connector.place(key))


def _add_worker(source: ConnectorResource, flow: Flow, workers: Sequence[Part], lines: Lines) -> None:
    """Add the topic in which Connect's workers keep progress.

    The connector's own topic counts before theirs (KIP-618).
    """
    key = f"{flow.target}.{OFFSETS}"
    if own := source.text("offsets.storage.topic"):
        lines.add_line(key, own, source.place("offsets.storage.topic"))
    spec = next((part.part("spec") for part in workers if part.text("metadata", "name") == source.worker), None)
    if spec is not None:
        for setting in spec.settings():
            if setting.key in _OF_WORKER or setting.key.startswith("producer."):
                lines.add_line(f"{flow.target}.{setting.key}", setting.value, setting)
        named = spec.text("offsetStorageTopic") or _WORKER_DEFAULT
        lines.add_line(key, named, Place(spec.in_config(OFFSETS), spec.line))
    if key not in lines.entries:
        lines.lacks(
            key,
            f"is missing: name the topic in which Kafka Connect's workers keep the progress of {source.name or 'it'}, "
            f"their {OFFSETS}. Pass a file with the line {key} = TOPIC by --settings",
        )
    _check_records_go_there(source, flow, lines)


def _check_records_go_there(source: ConnectorResource, flow: Flow, lines: Lines) -> None:
    """Check that the connector's records go to the flow's target.

    A worker writes records to the cluster that has its own topics, unless the connector sends them elsewhere. Then
    its progress is not on the target.
    """
    key = "producer.override.bootstrap.servers"
    servers, target = source.text(key), source.text("target.cluster.bootstrap.servers")
    if not servers:
        return
    if target and set(split_list(servers)).isdisjoint(split_list(target)):
        message = f"is another cluster than target.cluster.bootstrap.servers, {target}: which is it?"
        lines.problem(source.place(key), message)
        return
    lines.note(
        source.place(key),
        f"says that Kafka Connect's workers are on another cluster than {flow.target}. Progress is found only if their "
        f"{OFFSETS} is on {flow.target}. Otherwise `lockstep offsets alter` writes it there",
    )
