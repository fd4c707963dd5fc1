"""Pieces of JSON Schemas that routes share. Pure."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
NUMBERS: Schema = {"type": "array", "items": {"type": ["integer", "null"]}}
OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
PERHAPS_TEXT: Schema = {"type": ["string", "null"]}
PERHAPS_NUMBER: Schema = {"type": ["integer", "null"]}


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object that has all of these members. It may have others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def perhaps(schema: Schema, **optional: Schema) -> Schema:
    """Return the schema of an object with members that it may lack."""
    return {**schema, "properties": {**schema["properties"], **optional}}
