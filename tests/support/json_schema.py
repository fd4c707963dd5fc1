"""JSON Schema, as much of it as ours use."""

from collections.abc import Iterator
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
    "object": dict,
    "boolean": bool,
    "null": type(None),
}
KNOWN = {"$schema", "title", "description", "type", "const", "required", "properties", "items", "prefixItems"} | {
    *("default", "minimum", "maximum", "minItems", "maxItems", "additionalProperties")
}


def faults(value: Any, schema: dict[str, Any], where: str = "row") -> Iterator[str]:
    """Yield what of `value` breaks `schema`, for the words of JSON Schema that ours use; any other word is a fault
    too."""
    if unknown := schema.keys() - KNOWN:
        yield f"{where}: this test does not know {unknown}"
    if "const" in schema and value != schema["const"]:
        yield f"{where} is {value!r}"
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{where} is no {schema['type']}"
    elif isinstance(value, int):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where} is {value}"
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{where} has {len(value)} items"
        each = schema.get("prefixItems", [schema.get("items", {})] * len(value))
        for index, (item, meant) in enumerate(zip(value, each, strict=False)):
            yield from faults(item, meant, f"{where}[{index}]")
    elif isinstance(value, dict):
        yield from (f"{where} lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            other = schema.get("additionalProperties", {})
            yield from faults(item, schema.get("properties", {}).get(name, other), f"{where}.{name}")


def _is(value: Any, kind: str | list[str]) -> bool:
    if isinstance(kind, list):
        return any(_is(value, alternative) for alternative in kind)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
