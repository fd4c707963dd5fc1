"""A JSON parser for records that any client may have written: the values can be written again, and are UTF-8."""

import json
import math
from typing import Any, NoReturn


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
