"""The short form of a transform that masks: paths and maskings become a SELECT.

`$.customer.name: hash_salted, $.iban: truncate(4)` is one. This module is pure.
"""

import re
from collections.abc import Iterator

_ENTRY = re.compile(
    r"""\s*(?P<path>\$(?:\.[^\s.\[\]'":,()*]+|\[[0-9]{1,9}\]|\[\*\]|\['(?:[^'\\]|\\.)+'\]){1,64})
        \s*:\s*(?P<how>[\w-]+(?:\(\s*[\w.-]+\s*\))?)\s*(?P<end>,|$)""",
    re.VERBOSE,
)
_MASKING = re.compile(
    r"remove|mask|truncate\([0-9]{1,6}\)|(?P<keyed>hash_salted|tokenise)(?:\((?P<secret>[\w.-]{1,64})\))?", re.ASCII
)
"""The maskings that `json_mask` has (`JsonMasking.java`). It takes each path of an entry too (`JsonPath.java`)."""
MASKINGS = (
    "remove, mask, truncate(4), hash_salted and tokenise. Only the last two take a secret by its name: tokenise(key)"
)

SALT = "salt"
"""The name of the secret of a masking that names none."""


class MaskInvalid(ValueError):
    """The error of a short form that cannot be read. The message names the place."""


def mask_statement(masks: str) -> str:
    """Return the SELECT that masks the value of each record at these paths, in their order.

    Raises:
        MaskInvalid: An entry is no `PATH: HOW`, there is no such masking, or a path is there twice.
    """
    value = "value"
    for path, masking in _entries(masks):
        value = f"json_mask({value}, {_quoted(path)}, {_quoted(masking[0])})"
    return f"SELECT {value} AS value FROM records"  # noqa: S608  # Spark has no data here, and the texts are quoted


def mask_secrets(masks: str) -> tuple[str, ...]:
    """Return the names of the secrets that these maskings take, each once. Raises MaskInvalid."""
    keyed = (masking for _, masking in _entries(masks) if masking["keyed"])
    return tuple(dict.fromkeys(masking["secret"] or SALT for masking in keyed))


def _entries(masks: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield each path and how it is masked, without blanks. Raises MaskInvalid."""
    paths: set[str] = set()
    position = 0
    while position < len(masks) or not paths:
        entry = _ENTRY.match(masks, position)
        if entry is None or (entry["end"] == "," and entry.end() == len(masks)):
            wrong = masks[position:].strip() or "nothing"
            raise MaskInvalid(
                "PATH: MASKING is expected, several between commas. A path begins with $, as in "
                f"$.iban: truncate(4). But it says {wrong}"
            )
        path, stated = entry["path"], re.sub(r"\s", "", entry["how"])
        masking = _MASKING.fullmatch(stated)
        if masking is None:
            raise MaskInvalid(f"{path} cannot be masked by {stated}. The maskings are {MASKINGS}")
        if path in paths:
            raise MaskInvalid(f"{path} is there twice")
        paths.add(path)
        position = entry.end()
        yield path, masking


def _quoted(text: str) -> str:
    """Return the text as a string of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
