"""What the text of a transform's statement shows: whether it filters, and which columns it makes anew.

Only Spark's parser knows for certain. This outline is for a plan, which has no Spark. In doubt a column is made anew.
"""

import re
from collections.abc import Iterator, Sequence

_TOKENS = re.compile(
    r"""(?P<nothing>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | `(?P<quoted>(?:[^`]|``)*)`
      | (?P<word>\w+)
      | (?P<sign>\|>|.)""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_TEXT = "''"
"""The token of every text."""

_PIPE = "|>"
_STRUCTS = frozenset({"named_struct", "struct", "from_json", "from_csv"})
_EACH_FIELD = (".", "*")

COLUMNS = frozenset({"key", "value", "headers", "timestamp"})
"""The columns of a record that a transform may make anew."""


def filters_records(statement: str) -> bool:
    """Return whether the statement has a condition, so that it may leave records out."""
    return "where" in _tokens(statement)


def assigned_columns(statement: str) -> frozenset[str]:
    """Return the columns of a record to which the statement gives a name, with or without `AS`.

    A column that is selected as it is does not count, also under its own name.
    """
    tokens = tuple(_tokens(statement))
    if _PIPE in tokens:
        return COLUMNS.intersection(tokens)
    items = tuple(_select_items(tokens))
    if _STRUCTS.intersection(tokens) and any(item[-2:] == _EACH_FIELD for item in items):
        return COLUMNS
    return frozenset(name for name in map(_made_column, items) if name)


def _tokens(statement: str) -> Iterator[str]:
    """Yield the words of a statement in small letters, names in quotes without them, and each sign."""
    for match in _TOKENS.finditer(statement):
        if match["text"] is not None:
            yield _TEXT
        elif match["nothing"] is None:
            yield (match["quoted"] or match["word"] or match["sign"] or "").lower()


def _select_items(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield what stands between SELECT, the commas of its list, and FROM, of each SELECT."""
    for start, word in enumerate(tokens):
        if word != "select":
            continue
        item: list[str] = []
        depth = 0
        for each in tokens[start + 1 :]:
            depth += (each in "([{") - (each in ")]}")
            if depth < 0 or (depth == 0 and each in ("from", "where", ",")):
                yield tuple(item)
                item = []
                if each != ",":
                    break
            else:
                item.append(each)
        else:
            yield tuple(item)


def _made_column(item: Sequence[str]) -> str:
    """Return the column of a record that an item of a list makes anew; "": it makes none."""
    name = item[-1] if item else ""
    before = [each for each in item[:-1] if each != "as"]
    source = before[2:] if before[1:2] == ["."] else before
    return "" if name not in COLUMNS or source in ([], [name]) else name
