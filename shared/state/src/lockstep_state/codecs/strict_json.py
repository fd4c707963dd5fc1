"""A JSON parser for records that any client may have written: the values can be written again, and are UTF-8."""

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

DEEPEST = 32
"""Levels of a value of any type. Each reader goes through it by recursion."""

DEEPEST_RECORD = DEEPEST + 1
"""Levels of a record: one of its fields may be a value of any type."""


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: The bytes are no JSON in UTF-8. Or Python's `json` accepts them, and other readers may not. Such are
            NaN and infinity, half of a surrogate pair, an integer of thousands of digits, and nesting without end.
    """
    text = data.decode()
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # an escape is the only way to half of a pair
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def require_shallow(value: Any, levels: int = DEEPEST_RECORD) -> None:
    """Raise ValueError if a value of JSON has more than so many levels, so that to go through it may not end well."""
    level = [value]
    for _ in range(levels):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise ValueError(f"it is nested deeper than {levels} levels")


def _inner(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return tuple(value.values())
    return value if isinstance(value, list) else ()


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the members of a JSON object. Raises ValueError as `parse_json`, and for any other value."""
    value = parse_json(data)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond every number of 64 bits")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_read_float)
