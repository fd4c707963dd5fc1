"""Pieces of JSON Schemas that routes share. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from lockstep_state.reasons.reason import Reason

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": TEXT}
NUMBERS: Schema = {"type": "array", "items": {"type": ["integer", "null"]}}
PERHAPS_TEXT: Schema = {"type": ["string", "null"]}
PERHAPS_NUMBER: Schema = {"type": ["integer", "null"]}


def nullable(schema: Schema) -> Schema:
    """Return the schema of such a value, or null."""
    return {"anyOf": [{"type": "null"}, schema]}


def list_of(item: Schema) -> Schema:
    """Return the schema of a list of these."""
    return {"type": "array", "items": item}


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object that has all of these members. It may have others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def perhaps(schema: Schema, **optional: Schema) -> Schema:
    """Return the schema of an object with members that it may lack."""
    return {**schema, "properties": {**schema["properties"], **optional}}


def with_members(schema: Schema, **more: Schema) -> Schema:
    """Return the schema of an object with more members that it always has."""
    return {**perhaps(schema, **more), "required": list(dict.fromkeys([*schema["required"], *more]))}


CAUSE: Schema = object_of(code=TEXT, details=OBJECT)
"""The schema of a reason."""

_PLAIN: Mapping[object, Schema] = {
    int: NUMBER,
    float: {"type": "number"},
    str: TEXT,
    bool: FLAG,
    Any: {},
    Reason: CAUSE,
}


@cache
def schema_of(kind: Any) -> Schema:
    """Return the schema of a value as `asdict` has it, from the types of a dataclass.

    Raises:
        TypeError: A type has no schema.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return object_of(**{field.name: schema_of(hints[field.name]) for field in fields(kind)})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return {"anyOf": [{"type": "null"} if each is NoneType else schema_of(each) for each in arguments]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [schema_of(each) for each in arguments]}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list_of(schema_of(arguments[0]))
    raise TypeError(f"{kind} has no schema")


@cache
def line_schema(kind: Any) -> Schema:
    """Return the schema of a line of a report (`line_as_json`)."""
    return with_members(schema_of(kind), trouble=TEXT, cause=CAUSE)
