"""The value of `lockstep.rename`: `PATTERN -> REPLACEMENT`, several between semicolons. This module is pure."""

from lockstep_config.text.values import BadValue
from lockstep_rules.patterns.unmatchable_patterns import needed_but_illegal
from lockstep_rules.renames import BadReplacement, Rename
from lockstep_state.names import LONGEST_TOPIC, TOPIC_CHARACTERS, is_topic_name

ARROW, SEPARATOR = "->", ";"
LEGAL = "a topic's name has only letters, digits, '.', '_' and '-'"


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
    rename = build_rename(pattern, replacement)
    if needed_but_illegal(pattern):
        raise BadValue(f"has {pattern!r}, which matches no topic: {LEGAL}")
    return rename


def build_rename(pattern: str, replacement: str) -> Rename:
    """Return a rename.

    Raises:
        BadValue: The replacement does not fit the pattern, or makes names that no topic may have.
        UntranslatablePattern: The pattern cannot be used.
    """
    start = f"renames {pattern!r} to {replacement!r}"
    try:
        rename = Rename(pattern, replacement)
    except BadReplacement as exc:
        raise BadValue(f"{start}: {exc}") from exc
    is_possible = is_topic_name(rename.literals) if rename.is_constant else TOPIC_CHARACTERS.issuperset(rename.literals)
    if not is_possible:
        instead = f". Write {SEPARATOR} between two renames" if ARROW in replacement else ""
        raise BadValue(f"{start}, which no topic may be called: {LEGAL}{instead}")
    if (length := len(rename.literals)) > LONGEST_TOPIC:
        raise BadValue(f"{start}, which has {length} characters, and {LONGEST_TOPIC} are allowed")
    return rename
