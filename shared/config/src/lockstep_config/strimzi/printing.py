"""A resource as YAML of its own, which Helm reads as it is read here. This module is pure."""

import re
from typing import Any

import yaml

from lockstep_config.text.yaml_nodes import Leaf, ListNode, MapNode, Node

_EXACT = 2**53
"""The number from which on Helm does not keep a number: its numbers are 64-bit floats."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])


def as_yaml(resource: MapNode) -> str:
    """Return the text of a resource. Numbers that Helm would change, as fractions and very large ones, are texts."""
    return plain_yaml(_plain(resource))


def plain_yaml(body: Any) -> str:
    """Return plain values as YAML: what JSON has, with the same keys in the same order."""
    text: str = yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return text


def _plain(node: Node) -> Any:
    if isinstance(node, MapNode):
        return {key: _plain(value) for key, value in node.items.items()}
    if isinstance(node, ListNode):
        return [_plain(item) for item in node.items]
    return _value(node)


def _value(leaf: Leaf) -> str | int | bool | None:
    value = leaf.value
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= _EXACT):
        return leaf.text
    return value


def _text(dumper: yaml.representer.BaseRepresenter, text: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


class _Dumper(yaml.SafeDumper):
    """A writer that quotes each text that a reader of YAML might take for something else, and writes no anchors."""

    yaml_representers = {**yaml.SafeDumper.yaml_representers, str: _text}  # noqa: RUF012 - as PyYAML declares it

    def ignore_aliases(self, data: Any) -> bool:
        return True
