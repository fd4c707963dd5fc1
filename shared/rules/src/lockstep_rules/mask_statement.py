"""The short form of a transform that masks: paths and maskings become a SELECT.

`$.customer.name: hash_salted, $.iban: truncate(4)` is one. This module is pure.
"""

import re
from collections.abc import Iterator

_ENTRY = re.compile(
    r"""\s*(?P<path>\$(?:\.[^\s.\[\]'":,()]+|\[\d+\]|\[\*\]|\['(?:[^'\\]|\\.)+'\])+)
        \s*:\s*(?P<how>[a-z_]+(?:\(\s*[\w.-]+\s*\))?)\s*(?P<end>,|$)""",
    re.VERBOSE,
)
_WITH_SECRET = re.compile(r"(?:hash_salted|tokenise)(?:\((?P<secret>.*)\))?")

SALT = "salt"
"""The name of the secret of a masking that names none."""


class MaskInvalid(ValueError):
    """The error of a short form that cannot be read. The message names the place."""


def mask_statement(masks: str) -> str:
    """Return the SELECT that masks the value of each record at these paths, in their order.

    Which maskings there are is checked when the statement is compiled.

    Raises:
        MaskInvalid: An entry is no `PATH: HOW`, or a path is there twice.
    """
    value = "value"
    for path, how in _entries(masks):
        value = f"json_mask({value}, {_quoted(path)}, {_quoted(how)})"
    return f"SELECT {value} AS value FROM records"  # noqa: S608  # Spark has no data here, and the texts are quoted


def mask_secrets(masks: str) -> tuple[str, ...]:
    """Return the names of the secrets that these maskings take, each once. Raises MaskInvalid."""
    matches = (_WITH_SECRET.fullmatch(how) for _, how in _entries(masks))
    return tuple(dict.fromkeys(match["secret"] or SALT for match in matches if match is not None))


def _entries(masks: str) -> Iterator[tuple[str, str]]:
    """Yield each path and how it is masked, without blanks. Raises MaskInvalid."""
    paths: set[str] = set()
    position = 0
    while position < len(masks) or not paths:
        entry = _ENTRY.match(masks, position)
        if entry is None or (entry["end"] == "," and entry.end() == len(masks)):
            wrong = masks[position:].strip() or "nothing"
            raise MaskInvalid(f"a path and how it is masked is expected, as in $.iban: truncate(4), but not {wrong}")
        path = entry["path"]
        if path in paths:
            raise MaskInvalid(f"{path} is there twice")
        paths.add(path)
        position = entry.end()
        yield path, re.sub(r"\s", "", entry["how"])


def _quoted(text: str) -> str:
    """Return the text as a string of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
