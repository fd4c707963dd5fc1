"""What a resource may hold, as the part of the chart's `values.schema.json` that is about it: made of the declared
fields by which the services judge it.

Each kind in each API version has its fields, and no other. Of a connector's settings the types are held too. What no
schema can tell (what connectors must agree on, regular expressions, references) is left to `lockstep config check`.
"""

import json
from typing import Any

from lockstep_config.keys.connector_keys import CONNECTORS, connectors_reading
from lockstep_config.keys.key_types import Key, KeyLevel, KeyStatus, ValueKind
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.strimzi.api_versions import API_VERSIONS
from lockstep_config.strimzi.connectors import CONNECTOR_FIELDS
from lockstep_config.strimzi.fields import Field, Fields, Form, Use
from lockstep_config.strimzi.schema import KINDS
from tools.docs.pages import REPOSITORY

SCHEMA = REPOSITORY / "deploy" / "helm" / "lockstep" / "values.schema.json"
PREFIX = "resource-"
OURS = "resource-and-values"
"""All that may stand at the top, unless the file begins with somebody else's resource: the chart says so itself."""
RULES, DEFINITIONS = '  "allOf": ', '  "$defs": {\n'
TOLD_BY_THE_CHART = frozenset({"alias", "mirrors", "consumer", "producer", "spec"})
"""What is missing there, the chart says in a sentence of its own."""
TRUE_OR_FALSE = "^\\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])\\s*$"
REFERENCE = "\\$\\{"
NO_PATTERN = {"not": {"type": "string", "pattern": "(^|,)\\s*[*+?]"}}
"""An element of a list is no regular expression."""


def whole() -> str:
    """Return the text of the file, with what it has by hand, and the rest as it follows from the fields."""
    made = _Made()
    rules = []
    for kind, versions in API_VERSIONS.items():
        for version in dict.fromkeys(versions.values()):
            names = [name for name, each in versions.items() if each == version]
            spec = made.reference(f"{kind}-{version}", KINDS[kind]["spec"].fields, version)
            rules.append(
                {
                    "if": {"properties": {"kind": {"const": kind}, "apiVersion": {"enum": names}}},
                    "then": {"properties": {"spec": spec}},
                }
            )
    text = _by_hand(SCHEMA.read_text(encoding="utf-8"))
    top: dict[str, Any] = {name: {} for name in json.loads(text)["properties"]}
    made.defs[OURS] = {"properties": top, "additionalProperties": False}
    kinds = {"properties": {"kind": {"enum": ["", *API_VERSIONS]}}}
    rules.append({"if": kinds, "then": {"$ref": f"#/$defs/{OURS}"}})
    before, begin, after = text.partition(DEFINITIONS)
    defs = (f'    "{name}": {json.dumps(definition)},\n' for name, definition in made.defs.items())
    return "".join((before, f"{RULES}{json.dumps(rules)},\n", begin, *defs, after))


def _by_hand(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith((RULES, f'    "{PREFIX}')))


class _Made:
    """The definitions made so far. Mappings with the same fields are one, whatever their version."""

    def __init__(self) -> None:
        self.defs: dict[str, Any] = {}

    def reference(self, name: str, fields: Fields, version: str) -> dict[str, Any]:
        return self._shared(name, version, self._mapping(fields, version))

    def _shared(self, name: str, version: str, made: dict[str, Any]) -> dict[str, Any]:
        """Return a reference to this definition, or to the same one that another mapping has."""
        same = next((shared for shared, definition in self.defs.items() if definition == made), None)
        if same is None:
            same = f"{PREFIX}{name}"
            while same in self.defs:
                same = f"{PREFIX}{name}-{version}" if not same.endswith(version) else f"{same}-2"
            self.defs[same] = made
        return {"$ref": f"#/$defs/{same}"}

    def _mapping(self, fields: Fields, version: str) -> dict[str, Any]:
        taken = {name: field for name, field in fields.items() if not field.versions or version in field.versions}
        made: dict[str, Any] = {
            "type": ["object", "null"],
            "properties": {name: self._field(name, field, version) for name, field in taken.items()},
            "additionalProperties": False,
        }
        required = [name for name, field in taken.items() if field.required and name not in TOLD_BY_THE_CHART]
        return {**made, "required": required} if required else made

    def _field(self, name: str, field: Field, version: str) -> dict[str, Any]:
        if field.use is Use.CHART:
            return {}  # the chart's own part of the schema has it
        match field.form:
            case Form.ANY:
                return {}
            case Form.TEXT:
                return _text(name, field)
            case Form.NAME:
                return {"type": ["string", "null"]}
            case Form.NUMBER:
                least = {} if field.minimum is None else {"minimum": field.minimum}
                return {"type": ["integer", "null"], **least}
            case Form.FLAG:
                return {"type": ["boolean", "string", "null"], "pattern": TRUE_OR_FALSE.replace("\\s*", "")}
            case Form.CONFIG:
                return {"type": ["object", "null"], "additionalProperties": {"type": ["string", "number", "boolean"]}}
            case Form.LIST:
                items = {"items": self.reference(name, field.fields, version)} if field.fields else {}
                return {"type": ["array", "null"], **items}
            case Form.MAP:
                if not field.fields:
                    return {"type": ["object", "null"]}
                if name in CONNECTOR_FIELDS.values():
                    return self._connector(name, field.fields, version)
                return self.reference(name, field.fields, version)

    def _connector(self, name: str, fields: Fields, version: str) -> dict[str, Any]:
        (connector,) = (each for each in CONNECTORS if CONNECTOR_FIELDS[each] == name)
        made = self._mapping(fields, version)
        typed = {
            key: of_key
            for key, declared in KEYS.items()
            if connector in connectors_reading(key) and (of_key := _of_key(declared)) is not None
        }
        self.defs[f"{PREFIX}settings-{connector}"] = {"type": ["object", "null"], "properties": typed}
        settings = {"allOf": [made["properties"]["config"], {"$ref": f"#/$defs/{PREFIX}settings-{connector}"}]}
        made["properties"]["config"] = settings
        return self._shared(f"{name}-{version}", version, made)


def _text(name: str, field: Field) -> dict[str, Any]:
    if field.choices:
        return {"enum": [*field.choices, None]}
    return {"type": ["string", "number", "null"], **(NO_PATTERN if name.endswith("sPattern") else {})}


def _of_key(key: Key) -> dict[str, Any] | None:
    """Return what a setting takes, as far as a schema can say it: a text may be a reference."""
    if KeyLevel.FLOW not in key.levels or key.status is not KeyStatus.USED or key.per_topic:
        return None
    if key.kind is ValueKind.BOOLEAN:
        return {"type": ["boolean", "string"], "pattern": f"{TRUE_OR_FALSE}|{REFERENCE}"}
    if key.kind is ValueKind.INTEGER:
        limits = {"minimum": key.minimum, "maximum": key.maximum}
        return {
            "type": ["integer", "string"],
            "pattern": f"^\\s*[+-]?[0-9]+\\s*$|{REFERENCE}",
            **{name: limit for name, limit in limits.items() if limit is not None},
        }
    if key.kind is ValueKind.PATTERNS:
        return {"type": ["string", "number", "boolean"], **NO_PATTERN}
    return None
