"""JSON Schemas of what `lockstep plan` prints, from its dataclasses: `python -m tools.docs.plan_schema` writes them
anew.

They are beside those of the records. Nested values are written out where they are, so that a reader needs one file."""

from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from lockstep_ops.plan.rules.comparison import PlanComparison
from lockstep_ops.plan.rules.flow_plan import VERSION, Plan
from tools.docs.schemas import FOLDER, field_words, joined_text, text_of

DOCUMENTS = {
    "plan": (Plan, "what lockstep plan prints with --output json, and writes with -o"),
    "plan-comparison": (PlanComparison, "what lockstep plan prints with --against and --output json"),
}
TYPES: dict[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}


def generated() -> dict[str, dict[str, Any]]:
    """Every schema of this release, by `NAME.vVERSION`."""
    return {f"{name}.v{VERSION}": _document(cls, title) for name, (cls, title) in DOCUMENTS.items()}


def _document(cls: type[Any], title: str) -> dict[str, Any]:
    made = _object(cls)
    version = {"const": VERSION, "description": "A reader stops at a version that it was not built for."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": f"{made['description']} Fields that are not listed here are to be ignored.",
        "type": "object",
        "required": ["version", *made["required"]],
        "properties": {"version": version, **made["properties"]},
    }


def _object(cls: type[Any]) -> dict[str, Any]:
    hints, words = get_type_hints(cls), dict(field_words(cls))
    properties = {
        one.name: {**_type(hints[one.name]), **({"description": words[one.name]} if one.name in words else {})}
        for one in fields(cls)
    }
    return {
        "type": "object",
        "description": joined_text(cls.__doc__ or ""),
        "required": [one.name for one in fields(cls) if _is_always_there(one)],
        "properties": properties,
    }


def _is_always_there(field: Field[Any]) -> bool:
    """Every field is written; one with a default may be absent in a later version."""
    return field.default is MISSING and field.default_factory is MISSING


def _type(hint: Any) -> dict[str, Any]:
    if hint in TYPES:
        return {"type": TYPES[hint]}
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    if isinstance(hint, UnionType):
        (known,) = (arg for arg in get_args(hint) if arg is not NoneType)
        return {"type": [TYPES[known], "null"]}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": _type(get_args(hint)[1])}
    assert get_origin(hint) is tuple, hint
    return {"type": "array", "items": _type(get_args(hint)[0])}


if __name__ == "__main__":
    for name, schema in generated().items():
        (FOLDER / f"{name}.json").write_text(text_of(schema), encoding="utf-8")
