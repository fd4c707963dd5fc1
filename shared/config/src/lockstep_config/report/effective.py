"""The effective settings of a flow, and the line of each. Secrets are masked. This module is pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep_config.flow.mm1_flow import legacy_defaults
from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.flow.record_transforms import transform_lines
from lockstep_config.keys.client_keys import CLIENT
from lockstep_config.keys.key_types import Key, KeyLevel, KeyStatus
from lockstep_config.keys.mm2_keys import KEYS, find_key
from lockstep_config.keys.spark_settings import CONF_PREFIX
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import Cell
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.properties import Entry, PropertiesText
from lockstep_config.text.secrets import mask_value
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """One effective value, with its place.

    `file`, `line` and `stated` (the whole key as its author wrote it) are None, 0 and "" for a default. A secret is
    `MASK`, and a value of a config provider is shown as the reference to it.
    """

    key: str
    value: str
    file: Path | None = None
    line: int = 0
    stated: str = ""


@dataclass(frozen=True, slots=True)
class FlowView:
    """A flow's settings in the order of their keys, and those of each of its clients.

    `clients` has the names `source consumer`, ..., and `mirrored records` for the producer of the mirrored records.
    """

    flow: Flow
    enabled: bool
    settings: tuple[Setting, ...]
    clients: Mapping[str, tuple[Setting, ...]]


@dataclass(frozen=True, slots=True)
class View:
    """The effective settings of a whole file: its own, its clusters' connections, its flows."""

    file: tuple[Setting, ...]
    clusters: Mapping[str, tuple[Setting, ...]]
    flows: tuple[FlowView, ...]


def view(text: PropertiesText, layers: Layers, path: Path, flows: Iterable[FlowSettings]) -> View:
    """Return the effective settings of a file.

    Args:
        text: The lines as in the file.
        layers: The same lines with references resolved.
        path: The file.
        flows: Its flows.
    """
    raw = {entry.key: entry for entry in text.entries}
    masker = _Masker(raw, path)
    flows = tuple(flows)
    aliases = dict.fromkeys(alias for settings in flows for alias in (settings.flow.source, settings.flow.target))
    top_lines = (
        cell.entry
        for key, cell in layers.top.items()
        if (key in KEYS and KEYS[key].levels == {KeyLevel.TOP} and KEYS[key].status is KeyStatus.USED)
        or key.startswith((CONF_PREFIX, "config.providers."))
    )
    return View(
        file=tuple(sorted(masker.line(entry.key, entry) for entry in top_lines)),
        clusters={alias: masker.all(precedence.connection(layers, alias)) for alias in aliases},
        flows=tuple(_flow(layers, settings, masker) for settings in flows),
    )


@dataclass(frozen=True, slots=True)
class _Masker:
    raw: Mapping[str, Entry]
    path: Path

    def line(self, key: str, entry: Entry) -> Setting:
        value = mask_value(entry.key, self.raw[entry.key].value.strip())
        return Setting(key, value, entry.file or self.path, entry.line, entry.shown)

    def all(self, cells: Mapping[str, Cell]) -> tuple[Setting, ...]:
        return tuple(sorted(self.line(key, cell.entry) for key, cell in cells.items()))


def _flow(layers: Layers, settings: FlowSettings, masker: _Masker) -> FlowView:
    flow = settings.flow
    connector, worker = Reader(layers, flow), Reader(layers, flow, of_worker=True)
    lines, defaults = [], legacy_defaults(layers, flow)
    for name, key in KEYS.items():
        if not _counts(key) or key.renamed_to or key.levels == {KeyLevel.TOP}:
            continue
        if (lockstep_key := f"lockstep.{name}") in KEYS and connector.cell(lockstep_key):
            continue  # a Python class replaces it
        entry = (connector if KeyLevel.FLOW in key.levels else worker).entry(name)
        lines.append(masker.line(name, entry) if entry else Setting(name, defaults.get(name, _default(name, settings))))
    lines += [masker.line(key, cell.entry) for key, cell in transform_lines(layers, flow).items()]
    own = {key for key in layers.flow_lines(flow) if find_key(key) is None and not _is_client_key(key)}
    lines += [masker.line(key, layers.flow_lines(flow)[key].entry) for key in own]
    clients = {
        f"{side} {kind}": masker.all(precedence.client(layers, flow, side, kind))
        for side in precedence.SIDES
        for kind in CLIENT
    }
    clients["mirrored records"] = masker.all(precedence.record_producer(layers, flow))
    return FlowView(flow, settings.enabled, tuple(sorted(lines)), clients)


def _counts(key: Key) -> bool:
    """Return whether a key counts. A key that is refused for other values than its choices counts with those."""
    return key.status is KeyStatus.USED or (key.status is KeyStatus.REFUSED and bool(key.choices))


def _is_client_key(key: str) -> bool:
    sides = ("", "source.", "target.")
    return key.startswith(tuple(f"{side}{kind}." for side in sides for kind in (*CLIENT, "cluster")))


def _default(name: str, settings: FlowSettings) -> str:
    """Return the default of a key for the flow: some defaults are other settings, or depend on the version."""
    by_version = {
        "topics.exclude": settings.rules.topics_exclude,
        "config.properties.exclude": settings.rules.config_properties_exclude,
        "offset.storage.topic": settings.control.offset_storage_topic,
        "group.id": f"{settings.flow.source}-mm2",
        "source.cluster.alias": settings.aliases.source,
        "target.cluster.alias": settings.aliases.target,
        "lockstep.control.replication.factor": str(settings.control.replication_factor),
        "lockstep.provenance": settings.data_plane.provenance or "",
        "lockstep.checkpoint.opposite": settings.checkpoint.opposite or "",
    }
    return by_version.get(name, KEYS[name].default or "")
