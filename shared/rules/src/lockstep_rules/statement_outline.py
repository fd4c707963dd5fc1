"""What the text of a transform's statement shows: whether it filters, and which columns it makes anew.

Only Spark's parser knows for certain. This outline is for a plan, which has no Spark.
"""

import re

_TEXTS = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""",
    re.DOTALL,
)
_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
_ALIAS = re.compile(r"\bas\s+`?(key|value|headers|timestamp)\b`?", re.IGNORECASE)


def filters_records(statement: str) -> bool:
    """Return whether the statement has a condition, so that it may leave records out."""
    return _WHERE.search(_TEXTS.sub(" ", statement)) is not None


def assigned_columns(statement: str) -> frozenset[str]:
    """Return the columns of a record that the statement gives to an expression by `AS`."""
    return frozenset(name.lower() for name in _ALIAS.findall(_TEXTS.sub(" ", statement)))
