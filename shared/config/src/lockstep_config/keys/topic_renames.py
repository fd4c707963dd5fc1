"""The value of `lockstep.rename`: `PATTERN -> REPLACEMENT`, several between semicolons. This module is pure."""

from lockstep_config.text.values import BadValue
from lockstep_rules.renames import BadReplacement, Rename

ARROW, SEPARATOR = "->", ";"


def parse_renames(text: str) -> tuple[Rename, ...]:
    """Return the renames of a text, in its order.

    Raises:
        BadValue: An element is no rename, or its replacement does not fit its pattern.
        UntranslatablePattern: A pattern cannot be used.
    """
    elements = [element.strip() for element in text.split(SEPARATOR)]
    return tuple(_parse_rename(element) for element in elements if element)


def _parse_rename(element: str) -> Rename:
    pattern, arrow, replacement = (part.strip() for part in element.partition(ARROW))
    if not (pattern and arrow and replacement):
        raise BadValue(
            f"has {element!r}, which is no rename: write PATTERN {ARROW} NAME, such as orders-(.*) -> eu.orders.$1"
        )
    return build_rename(pattern, replacement)


def build_rename(pattern: str, replacement: str) -> Rename:
    """Return a rename.

    Raises:
        BadValue: The replacement does not fit the pattern.
        UntranslatablePattern: The pattern cannot be used.
    """
    try:
        return Rename(pattern, replacement)
    except BadReplacement as exc:
        raise BadValue(f"renames {pattern!r} to {replacement!r}: {exc}") from exc
