"""The short form of a transform that masks: paths and maskings become a SELECT.

`$.customer.name: hash_salted, $.iban: truncate(4)` is one.
"""

import re

_ENTRY = re.compile(
    r"""\s*(?P<path>\$(?:\.[^\s.\[\]'":,()]+|\[\d+\]|\[\*\]|\['(?:[^'\\]|\\.)+'\])+)
        \s*:\s*(?P<how>[a-z_]+(?:\(\s*[\w.-]+\s*\))?)\s*(?P<end>,|$)""",
    re.VERBOSE,
)


class MaskInvalid(ValueError):
    """The error of a short form that cannot be read. The message names the place."""


def mask_statement(masks: str) -> str:
    """Return the SELECT that masks the value of each record at these paths, in their order.

    Which maskings there are is checked when the statement is compiled.

    Raises:
        MaskInvalid: An entry is no `PATH: HOW`, or a path is there twice.
    """
    entries: list[tuple[str, str]] = []
    position = 0
    while position < len(masks) or not entries:
        entry = _ENTRY.match(masks, position)
        if entry is None or (entry["end"] == "," and entry.end() == len(masks)):
            wrong = masks[position:].strip() or "nothing"
            raise MaskInvalid(f"a path and how it is masked is expected, as in $.iban: truncate(4), but not {wrong}")
        path, how = entry["path"], re.sub(r"\s", "", entry["how"])
        if any(path == earlier for earlier, _ in entries):
            raise MaskInvalid(f"{path} is there twice")
        entries.append((path, how))
        position = entry.end()
    value = "value"
    for path, how in entries:
        value = f"json_mask({value}, {_quoted(path)}, {_quoted(how)})"
    return f"SELECT {value} AS value FROM records"  # noqa: S608  # Spark has no data here, and the texts are quoted


def _quoted(text: str) -> str:
    """Return the text as a string of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
