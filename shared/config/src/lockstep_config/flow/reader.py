"""The effective settings of one flow: of its connectors, or of the Connect worker on its target, as typed values.

A value that does not parse is a programmer's error here: each line has been judged on its own before (`check`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lockstep_config.keys.connector_keys import ConnectorName
from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.keys.key_values import field_keys, parse_value
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.resolve import precedence
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text import values
from lockstep_config.text.properties import Entry
from lockstep_state.names import Flow

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Reader:
    """The table's defaults hold where no line does. Raises KeyError for a key that is not in the table."""

    layers: Layers
    flow: Flow
    of_worker: bool = False
    connector: ConnectorName | None = None
    """Whose own lines count before those of the flow."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Of this flow, in place of the table's."""

    def found(self, key: str) -> Entry | None:
        """The line that counts; for a key that Kafka renamed, the old one's where the new one is not set."""
        if self.of_worker:
            return precedence.worker(self.layers, self.flow, key)
        # What MirrorMaker drops at the top of a file does not count there.
        layers = self.layers if KeyLevel.TOP in KEYS[key].scopes else replace(self.layers, top={})
        found = precedence.connector(layers, self.flow, key, self.connector)
        if found is None:
            old = next((name for name, known in KEYS.items() if known.renamed_to == key), None)
            found = precedence.connector(self.layers, self.flow, old) if old else None
        return found

    def text(self, key: str) -> str:
        found = self.found(key)
        return values.string(found.value if found else self.defaults.get(key, KEYS[key].default or ""))

    def boolean(self, key: str) -> bool:
        return values.boolean(self.text(key))

    def value(self, key: str) -> Any:
        """As the key declares it: a number, a time, a choice, a `PerTopic`. None: no line has it, nor has it a
        default."""
        found = self.found(key)
        text = found.value if found else self.defaults.get(key, KEYS[key].default)
        return None if text is None and not KEYS[key].per_topic else parse_value(KEYS[key], text or "")

    def settings(self, kind: type[V], **more: Any) -> V:
        """Settings of this class: each field that is a key, unless `more` has it, and `more`."""
        read = {name: self.value(key.name) for name, key in field_keys(kind).items() if name not in more}
        return kind(**read, **more)

    def choice(self, key: str) -> str:
        return values.choice(self.text(key), KEYS[key].choices)

    def elements(self, key: str, default: str | None = None) -> tuple[str, ...]:
        """`default` instead of the table's."""
        stated = default is None or self.found(key) or key in self.defaults
        return values.split_list(self.text(key) if stated else default or "")


def texts(found: Mapping[str, Entry]) -> dict[str, str]:
    """The values alone."""
    return {key: effective.value for key, effective in found.items()}
