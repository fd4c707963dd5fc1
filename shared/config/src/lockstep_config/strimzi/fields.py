"""The fields that a resource may hold, and the check of a resource by them.

All its mistakes are reported, each with its YAML path. This module is pure.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lockstep_config.strimzi.lines import Lines, Part, Place
from lockstep_config.text.values import alternatives
from lockstep_config.text.yaml_nodes import Leaf, ListNode, MapNode, Node, join_path

LIKENESS = 0.6
"""difflib's ratio from which on a known field is named beside an unknown one."""


class Use(Enum):
    """The use that Lockstep makes of a field."""

    USED = "used"
    CHART = "the Helm chart's"
    WITHOUT_EFFECT = "without effect"


class Form(Enum):
    """The form of a field's value. The enum's value is the words for people."""

    TEXT = "a text"
    NAME = "a name, in quotes where it has only digits"
    NUMBER = "a whole number"
    FLAG = "true or false"
    ANY = "anything"
    CONFIG = "a mapping of settings"
    MAP = "a mapping"
    LIST = "a list"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a resource.

    `becomes` says for people what it turns into. If `versions` is empty every API version has it. `fields` are those
    of a mapping, or of each element of a list; a list without them holds anything. A field that is not `USED` is
    reported once, with its `reason`. `choices` are the only values; limits are inclusive. `option` is the option of
    Strimzi's OAuth login that takes the field's value, or the value of the secret that it names.
    """

    form: Form
    becomes: str = ""
    fields: "Mapping[str, Field]" = field(default_factory=dict)
    required: bool = False
    versions: frozenset[str] = frozenset()
    use: Use = Use.USED
    reason: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    option: str = ""


Fields = Mapping[str, Field]


def check_fields(part: Part, fields: Fields, version: str, lines: Lines) -> list[Place]:
    """Judge a mapping of a resource of an API `version`.

    Returns:
        The places of the fields that only the Helm chart uses, and that have no reason of their own.
    """
    chart = []
    for name, value in part.node.items.items():
        place, schema = part.place(name), fields.get(name)
        if schema is None:
            lines.problem(place, _unknown(name, fields, version, part.path))
        elif schema.versions and version not in schema.versions:
            lines.problem(place, _version_remark(schema, version))
        else:
            chart += _check_field(value, schema, place, version, lines)
    for name, schema in fields.items():
        missing = not part.has(name) or _is_empty(part.node.items[name])
        if schema.required and missing and (not schema.versions or version in schema.versions):
            lines.problem(Place(part.path_of(name), part.node.line), f"is missing: {schema.becomes}")
    return chart


def _check_field(node: Node, schema: Field, place: Place, version: str, lines: Lines) -> list[Place]:
    if _is_empty(node):
        return []
    chart = []
    if schema.use is Use.CHART and schema.reason == "":
        chart.append(place)
    elif schema.use is not Use.USED:
        fate = "is the Helm chart's" if schema.use is Use.CHART else "has no effect"
        lines.without_effect(place, schema.reason, fate)
    if wrong := _wrong_form(node, schema):
        lines.problem(place, wrong)
    elif isinstance(node, MapNode) and schema.form is Form.CONFIG:
        check_config(Part(node, *place), lines)
    elif isinstance(node, MapNode) and schema.fields:
        chart += check_fields(Part(node, *place), schema.fields, version, lines)
    elif isinstance(node, ListNode) and schema.fields:
        for index, item in enumerate(node.items):
            item_place = Place(f"{place.path}[{index}]", item.line)
            if isinstance(item, MapNode):
                chart += check_fields(Part(item, *item_place), schema.fields, version, lines)
            else:
                lines.problem(item_place, f"is {_named(item)}, but takes a mapping")
    return chart


def check_config(config: Part, lines: Lines) -> None:
    """Judge a mapping of settings, whose values are all texts, numbers, true or false."""
    for key, value in config.node.items.items():
        if isinstance(value, ListNode):
            lines.problem(config.place(key), "is a list: write its elements between commas, as one text")
        elif isinstance(value, MapNode):
            names = ", ".join(f"{key}.{name}" for name in list(value.items)[:3])
            fault = _placeholder(value) or f"is a mapping: write its keys whole ({names or key})"
            lines.problem(config.place(key), fault)
        elif value.value is None:
            lines.problem(config.place(key), 'has no value: write one ("" for the empty text)')


def _placeholder(node: Node) -> str:
    """Return what is wrong with a mapping that was meant for a text, or an empty text.

    YAML reads `{NAME}` as a mapping, and `{{ NAME }}` as one within one.
    """
    if not isinstance(node, MapNode) or len(node.items) != 1:
        return ""
    ((name, value),) = node.items.items()
    if not isinstance(value, Leaf) or value.value is not None:
        return ""
    return f"is {{{name}}}, a placeholder that was not filled in: write the value, in quotes if it begins with a brace"


def _wrong_form(node: Node, schema: Field) -> str:
    if schema.form in (Form.TEXT, Form.NAME, Form.NUMBER, Form.FLAG) and (placeholder_text := _placeholder(node)):
        return placeholder_text
    match schema.form:
        case Form.ANY:
            return ""
        case Form.MAP | Form.CONFIG:
            right = isinstance(node, MapNode)
        case Form.LIST:
            right = isinstance(node, ListNode)
        case Form.FLAG:
            # Kubernetes wants true or false; a quoted word is taken too.
            right = isinstance(node, Leaf) and (isinstance(node.value, bool) or node.text.lower() in ("true", "false"))
        case Form.NUMBER:
            right = isinstance(node, Leaf) and isinstance(node.value, int) and not isinstance(node.value, bool)
        case Form.TEXT:
            # YAML reads a version such as 3.8 as a number, but the text is meant.
            right = isinstance(node, Leaf) and not isinstance(node.value, bool)
        case Form.NAME:  # Kubernetes takes no resource with a number there
            right = isinstance(node, Leaf) and isinstance(node.value, str)
    if not right:
        return f"is {_named(node)}, but takes {schema.form.value}"
    if isinstance(node, Leaf) and schema.choices and node.text not in schema.choices:
        return f"is {node.text!r}: it takes {', '.join(schema.choices)}{_nearest(node.text, schema.choices)}"
    if schema.minimum is not None and isinstance(node, Leaf) and isinstance(node.value, int):
        return f"is {node.value}: the least it may be is {schema.minimum}" if node.value < schema.minimum else ""
    return ""


def _is_empty(node: Node) -> bool:
    return isinstance(node, Leaf) and node.value is None


def _named(node: Node) -> str:
    """Return the kind of value, never its content: a password may be there instead of a reference to one."""
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node.value, bool):
        return "true or false"
    return "a number" if isinstance(node.value, int | float) else "a text"


def _unknown(name: str, fields: Fields, version: str, path: str) -> str:
    candidates = [field for field, schema in fields.items() if not schema.versions or version in schema.versions]
    nearest = difflib.get_close_matches(name, candidates, 1, LIKENESS)
    if not nearest:
        # Capitals and dashes are usual mistakes, and lower difflib's ratio too much.
        nearest = [field for field in candidates if _plain(field) == _plain(name)]
    below = [field for field in candidates if name in fields[field].fields]
    if nearest:
        instead = f"did you mean {join_path(path, nearest[0])}?"
    elif below:
        instead = f"write it into {alternatives([join_path(path, field) for field in below])}"
    else:
        instead = f"known here are {', '.join(candidates)}"
    return f"is no field that Strimzi has there; {instead}"


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def _version_remark(schema: Field, version: str) -> str:
    instead = f": {schema.reason}" if schema.reason != "" else ""
    return f"is a field of {' and '.join(sorted(schema.versions))}, not of {version}{instead}"


def _nearest(text: str, choices: tuple[str, ...]) -> str:
    nearest = difflib.get_close_matches(text, choices, 1, LIKENESS)
    return f"; did you mean {nearest[0]}?" if nearest else ""
