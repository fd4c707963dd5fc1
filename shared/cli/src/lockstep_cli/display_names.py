"""Names as a terminal can show them: groups may be called anything. Pure."""

from __future__ import annotations

import unicodedata

LONGEST = 60
"""Letters of a name in a table; a topic's may have 249, a group's thousands. JSON has all of them."""

_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode's categories of what moves the cursor, turns the line round, or shows nothing."""


def visible(text: str) -> str:
    """The text with each character that would break a line or hide something written as Python writes it (`\\t`)."""
    return "".join(
        one.encode("unicode_escape").decode() if unicodedata.category(one) in _UNSEEN else one for one in text
    )


def in_a_cell(name: str) -> str:
    """`visible`, in one piece: of a long name the beginning and the end, by which names usually differ."""
    shown = visible(name)
    if len(shown) <= LONGEST:
        return shown
    half = (LONGEST - 1) // 2
    return f"{shown[: LONGEST - 1 - half]}…{shown[-half:]}"


def without_name(why: str, kind: str, name: str) -> str:
    """A reason without the prefix that is shown anyhow: the name of its subject."""
    for before in (f"{kind} {name}: ", f"{name}: "):
        if why.startswith(before):
            return why.removeprefix(before)
    return why
