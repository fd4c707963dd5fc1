"""What pages with generated blocks share: a block is between the line `<!-- NAME -->` and the next `<!-- end -->`."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
CODE = re.compile(r"`[^`]*`")
BLOCK = re.compile(r"^<!-- (?!end )(.+) -->\n(?s:.*?)(?=^<!-- end -->)", re.MULTILINE)


def filled(page: str, blocks: Mapping[str, str]) -> str:
    """Return the text of a page with these blocks in it. The text around them is written by hand.

    Raises:
        ValueError: The page has other blocks.
    """
    if sorted(BLOCK.findall(page)) != sorted(blocks):
        raise ValueError(f"the page has the blocks {BLOCK.findall(page)}, and not {sorted(blocks)}")
    return BLOCK.sub(lambda block: f"<!-- {block[1]} -->\n\n{blocks[block[1]].strip()}\n\n", page)


def table(head: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown. `head` has the names of the columns with ` | ` between them."""
    lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([f"| {head} |", "|---" * (head.count(" | ") + 1) + "|", *lines])


def code(names: Iterable[str]) -> str:
    """Return the names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key. Keys and values are in the order in which they come first."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def wrapped(text: str, width: int) -> str:
    """Return the text in lines. No code is on two of them, so that a command can be copied."""
    text = CODE.sub(lambda code: code[0].replace(" ", "\0"), text)
    return "\n".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)).replace("\0", " ")
