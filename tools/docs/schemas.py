"""JSON Schemas of rows, events and commands, from their dataclasses.

Types and defaults come from the fields, words from their docstrings or metrics; what no type can say is in `LIMITS`."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import lockstep_state.schemas
from lockstep_state.commands.command import Command
from lockstep_state.events import Event
from lockstep_state.metric import row_metrics
from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.state_rows import ROWS, Row

FOLDER = Path(lockstep_state.schemas.__file__).parent

TYPES: Mapping[object, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}
OTHER_FIELDS = " Fields that are not listed here are to be ignored."

REASON: Mapping[str, Any] = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string"},
        "details": {"type": "object", "additionalProperties": {"type": ["string", "integer"]}},
    },
}
"""How a `Reason` is written."""

NOT_NEGATIVE = {"minimum": 0}
LIMITS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "runs": {
        "at_ms": NOT_NEGATIVE,
        "term": NOT_NEGATIVE,
        "partition": NOT_NEGATIVE,
        "chunk": {"minimum": 0, "maximum": 15},
        "edition": NOT_NEGATIVE,
        "generation": {"minimum": 0, "maximum": 32_767},
        "producer_id": NOT_NEGATIVE,
        "upstream": NOT_NEGATIVE,
        "downstream": NOT_NEGATIVE,
        "runs": {
            "minItems": 1,
            "maxItems": 256,
            "items": {
                "type": "array",
                "prefixItems": [
                    {"type": "integer", "minimum": 0},
                    {"type": "integer", "minimum": 0},
                    {"type": "integer", "minimum": 1},
                ],
                "minItems": 3,
                "maxItems": 3,
            },
        },
    }
}
"""By kind and field. A kind that stands here says what the writer keeps to, not only what a reader can take in; then
all its fields are required, but those that every row has."""

OF_ALL = {
    "at_ms": "The writer's wall clock, Unix milliseconds.",
    "term": "The writer's term of leadership; 0: none is needed.",
}


def generated() -> dict[str, dict[str, Any]]:
    """Return every schema of this release, by `NAME.vVERSION`."""
    made = {f"{kind}.v{cls.version}": _of_row(kind, cls) for kind, cls in sorted(ROWS.items())}
    made[f"event.v{Event.version}"] = _schema(
        Event, Event.version, "a record of mm2-lockstep-events.<source>.internal, key <subject>"
    )
    made[f"command.v{Command.version}"] = _schema(
        Command, Command.version, "a record of mm2-lockstep-commands.<source>.internal, key <id>"
    )
    return made


def text_of(schema: Mapping[str, Any]) -> str:
    """Return a schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _of_row(kind: str, cls: type[Row]) -> dict[str, Any]:
    return _schema(cls, cls.version, f"{_key(cls)} in mm2-lockstep-state.<source>.internal", LIMITS.get(kind, {}))


def _key(cls: type[Row]) -> str:
    """Return the key with names of fields in place of their values."""
    hints = get_type_hints(cls)
    marks = {str(10**6 + n): f.name for n, f in enumerate(fields(cls)) if f.init and hints[f.name] is int}
    values: dict[str, Any] = {name: int(mark) for mark, name in marks.items()}
    values |= {f.name: f"<{f.name}>" for f in fields(cls) if f.init and hints[f.name] is str}
    key = cls(**values).key()
    for mark, name in marks.items():
        key = key.replace(mark, f"<{name}>")
    return key


def _schema(
    cls: type[Any], version: int, title: str, limits: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    limits = limits or {}
    inherited = dict(field_words(ReasonedRow)) if issubclass(cls, ReasonedRow) else {}
    hints, words = get_type_hints(cls), OF_ALL | inherited | _of_metrics(cls) | dict(field_words(cls))
    needed = [f.name for f in fields(cls) if (limits and f.name not in OF_ALL) or _has_no_default(f)]
    properties: dict[str, Any] = {}
    for field in fields(cls):
        default = {} if field.name in needed else {"default": _default(field)}
        described = {"description": words[field.name]} if field.name in words else {}
        properties[field.name] = {**_type(hints[field.name]), **limits.get(field.name, {}), **default, **described}
    return document(title, joined_text(cls.__doc__ or "") + OTHER_FIELDS, version, needed, properties)


def document(
    title: str, description: str, version: int, required: Sequence[str], properties: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of a whole document, which has a version."""
    stops = {"const": version, "description": "A reader stops at a version that it was not built for."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "type": "object",
        "required": ["version", *required],
        "properties": {"version": stops, **properties},
    }


def object_schema(cls: type[Any]) -> dict[str, Any]:
    """Return the schema of a dataclass that is nested in a document, written out where it is.

    Every field is written. One with a default may be absent in a later version.
    """
    hints, words = get_type_hints(cls), dict(field_words(cls))
    described = {name: {"description": text} for name, text in words.items()}
    return {
        "type": "object",
        "description": joined_text(cls.__doc__ or ""),
        "required": [field.name for field in fields(cls) if _has_no_default(field)],
        "properties": {each.name: {**_type(hints[each.name]), **described.get(each.name, {})} for each in fields(cls)},
    }


def _has_no_default(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _default(field: Field[Any]) -> Any:
    """Return it as JSON has it."""
    value = field.default if field.default_factory is MISSING else field.default_factory()
    return value.to_json() if isinstance(value, Reason) else value


def _type(hint: Any) -> dict[str, Any]:
    if hint in TYPES:
        return {"type": TYPES[hint]}
    if hint is Reason:
        return dict(REASON)
    args = get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return object_schema(hint)
    if isinstance(hint, UnionType):
        (member,) = (arg for arg in args if arg is not NoneType)
        return {"type": [TYPES[member], "null"]}
    if get_origin(hint) is dict:
        return {"type": "object", **({} if args[1] is Any else {"additionalProperties": _type(args[1])})}
    assert get_origin(hint) is tuple, hint
    if args[-1] is Ellipsis:
        return {"type": "array", "items": _type(args[0])}
    each = [_type(arg) for arg in args]
    return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}


def _of_metrics(cls: type[Any]) -> dict[str, str]:
    return {name: f"{field.metric.meaning}." for name, field in row_metrics(cls).items() if field.metric is not None}


def field_words(cls: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield what stands below each field in the source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        docstring = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and below.value.value
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(docstring, str):
            yield field.target.id, joined_text(docstring)


def joined_text(text: str) -> str:
    return " ".join(text.split())
