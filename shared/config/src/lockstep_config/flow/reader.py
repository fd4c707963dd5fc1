"""Look-up of the effective settings of one flow: of its connectors, or of the Connect worker on its target."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from lockstep_config.keys.connector_keys import ConnectorName
from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.keys.key_values import field_keys
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import Cell, parse_used
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.properties import Entry
from lockstep_state.names import Flow

V = TypeVar("V")

_FORMER_NAMES = {key.renamed_to: name for name, key in KEYS.items() if key.renamed_to}


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of one flow's effective settings. The table's defaults hold if no line does.

    Its methods raise KeyError for a key that is not in the table.
    """

    layers: Layers
    flow: Flow
    of_worker: bool = False
    connector: ConnectorName | None = None
    """The connector whose own lines count before those of the flow."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Defaults of this flow, in place of the table's."""

    def cell(self, key: str) -> Cell | None:
        """Return the line that counts. For a key that Kafka renamed, the old key counts if the new one is not set."""
        if self.of_worker:
            return precedence.worker(self.layers, self.flow, key)
        # MirrorMaker drops these keys at the top of a file, so they do not count at the top.
        layers = self.layers if KeyLevel.TOP in KEYS[key].levels else replace(self.layers, top={})
        cell = precedence.connector(layers, self.flow, key, self.connector)
        if cell is None and (old := _FORMER_NAMES.get(key)):
            cell = precedence.connector(self.layers, self.flow, old)
        return cell

    def entry(self, key: str) -> Entry | None:
        """Return the line that counts, for a message about it."""
        cell = self.cell(key)
        return None if cell is None else cell.entry

    def value(self, key: str) -> Any:
        """Return the value as the key declares it: a number, a time, a choice, a `PerTopic`, a `NameFilter`.

        It is None if no line has it and it has no default.
        """
        cell = self.cell(key)
        return _parse_default(key, self.defaults.get(key, KEYS[key].default)) if cell is None else cell.value

    def settings(self, kind: type[V], **more: Any) -> V:
        """Return settings of this class: `more`, and each other field that is a key."""
        read = {name: self.value(key.name) for name, key in field_keys(kind).items() if name not in more}
        return kind(**read, **more)


@cache
def _parse_default(key: str, text: str | None) -> Any:
    return None if text is None and not KEYS[key].per_topic else parse_used(KEYS[key], text or "")


def cell_texts(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Return the values as the file has them."""
    return {key: cell.entry.value for key, cell in cells.items()}
