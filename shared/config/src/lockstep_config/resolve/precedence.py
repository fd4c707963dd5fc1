"""MM2's layering of a file, which decides the line that counts (`mm2-behaviour.md` §5.4 and §5.5).

Each kind of value is layered differently; the first that is set wins:

    of a connector      S->T.lockstep.connector.NAME.x, S->T.x   x
    of its aliases      S->T.source.cluster.alias   S.alias   source.cluster.alias
    of the worker on T  x for the storage prefixes     T.x
    of a client         S->T.lockstep.connector.NAME.source.consumer.x
                        S->T.lockstep.connector.NAME.consumer.x
                        S->T.source.consumer.x   S.consumer.x   K only: S.x   K only: x
                        S->T.consumer.x          K only: S->T.source.cluster.x
    of the producer of  S->T.producer.override.x   T.producer.x   K only: T.x   K only: x
    mirrored records

K are the connection properties. So `consumer.x` at the top of a file counts for nothing, and `S->T.source.cluster.x`
only if neither `S.x` nor `x` is set. A cluster's `S.consumer.x` beats the flow's `S->T.consumer.x`. These are MM2's own
rules, to the letter. The functions are pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from lockstep_config.keys.client_keys import CONNECTION, ClientKind
from lockstep_config.keys.connector_keys import ConnectorName, connector_prefix
from lockstep_config.keys.key_types import ALIAS_KEYS, ALIAS_OF_CLUSTER
from lockstep_config.resolve.cells import Cell
from lockstep_state.names import Flow

Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = ("source", "target")

STORAGE_PREFIXES = ("offset.storage", "config.storage", "status.storage")
"""Worker settings that count at the top of the file, even above the target's own."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The lines of a file by where they belong, then by key without prefix."""

    top: Mapping[str, Cell]
    clusters: Mapping[str, Mapping[str, Cell]]
    flows: Mapping[Flow, Mapping[str, Cell]]

    def cluster_lines(self, alias: str) -> Mapping[str, Cell]:
        return self.clusters.get(alias, {})

    def flow_lines(self, flow: Flow) -> Mapping[str, Cell]:
        return self.flows.get(flow, {})


def sort_layers(cells: Iterable[Cell]) -> Layers:
    """Sort the lines of a file by where they belong."""
    top: dict[str, Cell] = {}
    clusters: dict[str, dict[str, Cell]] = {}
    flows: dict[Flow, dict[str, Cell]] = {}
    for cell in cells:
        scope = cell.scope
        if scope.flow is not None:
            flows.setdefault(scope.flow, {})[scope.key] = cell
        elif scope.alias is not None:
            clusters.setdefault(scope.alias, {})[scope.key] = cell
        else:
            top[scope.key] = cell
    return Layers(top, clusters, flows)


def connector(layers: Layers, flow: Flow, key: str, name: ConnectorName | None = None) -> Cell | None:
    """Return the line of a setting of the flow's connectors: the flow's own, else the one at the top.

    With `name` the line for that connector alone goes before both. `A.alias` is the same line as
    `source.cluster.alias` of the flows from A, and as `target.cluster.alias` of those to it. It goes before the top.
    """
    own = _first(connector_prefix(name) + key, layers.flow_lines(flow)) if name else None
    own = own or _first(key, layers.flow_lines(flow))
    if own is None and key in ALIAS_KEYS:
        own = _first(ALIAS_OF_CLUSTER, layers.cluster_lines(flow.source if key == ALIAS_KEYS[0] else flow.target))
    return own or _first(key, layers.top)


def aliases(layers: Layers, flow: Flow) -> Flow:
    """Return the flow by the aliases that make names of topics, heartbeats and progress. Either may be empty."""
    source, target = (connector(layers, flow, key) for key in ALIAS_KEYS)
    return Flow(_text(source, flow.source), _text(target, flow.target))


def _text(cell: Cell | None, default: str) -> str:
    return default if cell is None else cell.entry.value.strip()


def every_alias(layers: Layers, flow: Flow) -> frozenset[str]:
    """Return the aliases that names of topics may have: of all clusters of the file, and of the flow as in names."""
    named_flow = aliases(layers, flow)
    flow_aliases = {alias for pair in layers.flows for alias in (pair.source, pair.target)}
    return frozenset(
        {*flow_aliases, *layers.clusters, flow.source, flow.target, named_flow.source, named_flow.target} - {""}
    )


def worker(layers: Layers, flow: Flow, key: str) -> Cell | None:
    """Return the line of a setting of the Connect worker on the target: the target's own.

    For storage topics the top of the file goes first.
    """
    if key.startswith(STORAGE_PREFIXES):
        return _first(key, layers.top, layers.cluster_lines(flow.target))
    return _first(key, layers.cluster_lines(flow.target))


def connection(layers: Layers, alias: str, flow: Flow | None = None) -> dict[str, Cell]:
    """Return the connection properties (K) of a cluster; with `flow`, of the cluster as a side of that flow."""
    lines = _matching(layers.top, "", CONNECTION) | _matching(layers.cluster_lines(alias), "", CONNECTION)
    if flow is None:
        return lines
    side: Side = "source" if alias == flow.source else "target"
    return _matching(layers.flow_lines(flow), f"{side}.cluster.", CONNECTION) | lines


def client(layers: Layers, flow: Flow, side: Side, kind: ClientKind, name: ConnectorName = "source") -> dict[str, Cell]:
    """Return all properties of one of the clients of a connector of the flow, under Java's names.

    Checkpoints and heartbeats are written as by Kafka Connect: the connector's own `producer.override.*` goes above
    all.
    """
    alias = flow.source if side == "source" else flow.target
    of_flow, own = layers.flow_lines(flow), connector_prefix(name)
    writes_facts = name != "source" and (side, kind) == ("target", "producer")
    overrides = _matching(of_flow, f"{own}producer.override.") if writes_facts else {}
    return (
        _matching(of_flow, f"{side}.cluster.", CONNECTION)
        | _matching(of_flow, f"{kind}.")
        | connection(layers, alias)
        | _matching(layers.cluster_lines(alias), f"{kind}.")
        | _matching(of_flow, f"{side}.{kind}.")
        | _matching(of_flow, f"{own}{kind}.")
        | _matching(of_flow, f"{own}{side}.{kind}.")
        | overrides
    )


def record_producer(layers: Layers, flow: Flow) -> dict[str, Cell]:
    """Return the properties of the producer of the mirrored records: the worker's, with the flow's overrides."""
    return (
        connection(layers, flow.target)
        | _matching(layers.cluster_lines(flow.target), "producer.")
        | _matching(layers.flow_lines(flow), "producer.override.")
        | _matching(layers.flow_lines(flow), f"{connector_prefix('source')}producer.override.")
    )


def _first(key: str, *layers: Mapping[str, Cell]) -> Cell | None:
    return next((layer[key] for layer in layers if key in layer), None)


def _matching(layer: Mapping[str, Cell], prefix: str, keys: frozenset[str] | None = None) -> dict[str, Cell]:
    """Return the lines of a layer whose keys begin with `prefix`, without it; with `keys`, only those."""
    matching: dict[str, Cell] = {}
    for key, cell in layer.items():
        name = key.removeprefix(prefix)
        # `producer.override.` is a prefix of its own: the producer has no property `override.x`.
        if key.startswith(prefix) and not name.startswith("override.") and (keys is None or name in keys):
            matching[name] = cell
    return matching
