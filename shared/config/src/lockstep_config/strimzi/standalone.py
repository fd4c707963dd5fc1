"""The properties file of one connector, as `connect-standalone` takes it, as lines of an mm2.properties file. Pure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lockstep_config.strimzi.lines import Lines
from lockstep_config.strimzi.resource import add_documents
from lockstep_config.text.default_providers import with_usual_providers
from lockstep_config.text.properties import PropertiesText
from lockstep_config.text.yaml_nodes import Leaf, MapNode, Node

__all__ = ["read_connector"]


def read_connector(text: PropertiesText, file: Path) -> PropertiesText:
    """The lines of one connector; `text` is what the file says."""
    items: dict[str, Node] = {entry.key: Leaf(entry.value, entry.value, entry.line) for entry in text.entries}
    lines = Lines(file, problems=list(text.problems), notes=list(text.notes))
    add_documents([MapNode(items, {entry.key: entry.line for entry in text.entries}, 1)], lines, "a connector")
    return replace(lines.text(), entries=tuple(with_usual_providers(lines.entries).values()))
