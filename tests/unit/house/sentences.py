"""The sentences of a Markdown page with their lines: of paragraphs, items and table cells, not of blocks of code. The
docstrings and comments of a module are such pages too."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

FENCE = re.compile(r"^([ >]*)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FROZEN = re.compile(r"^<!-- metrics of [^>]*-->$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
"""Tables of metrics: their words are the HELP texts of a public format."""

ITEM = re.compile(r"(?:[*+-]|\d+\.)\s+(.*)")
RULE = re.compile(r"[|:\- ]+")
CELL = re.compile(r"(?<!\\)\|")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
TAG = re.compile(r"<[^>]+>")
VERBATIM = re.compile(r"^ *\x08\n(?:.+\n)*|^ {4,}.*$", re.MULTILINE)
"""What click prints unwrapped, and what is indented as code in a docstring."""

END = re.compile(r"(?<=[.!?])[)*_\"]*\s+|\n")

VERB = re.compile(
    r"\b(?:bears?|bore|lies|lay|stood|tells|told|rests|rested|looks(?! (?:for|like|up))"
    r"|stands?(?! (?:for|by|down|still|out))"
    r"|(?:can|cannot|can't|not|nobody can|to be) tell"
    r"|looked (?:at|anew|again)"
    r"|(?:for|of) (?:who|whoever))\b",
    re.IGNORECASE,
)
"""Little verbs where Kafka has its own: is stored, has, shows, reports, checks, waits."""


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _blocks(page: str) -> Iterator[tuple[int, str]]:
    """Each paragraph, list item, heading and table cell, with the line in which it begins; code as the word CODE."""
    for pattern in (FENCE, FROZEN, COMMENT):
        page = pattern.sub(_blank, page)
    page = CODE.sub(lambda found: "CODE" + _blank(found), page)
    first, gathered = 0, list[str]()
    for number, line in enumerate([*page.split("\n"), ""], 1):
        text = line.lstrip(" >").rstrip()
        item = ITEM.match(text)
        if gathered and (not text or item or text[0] in "|#"):
            yield first, " ".join(gathered)
            gathered = []
        if text.startswith(("|", "#")):
            cells = CELL.split(text) if text[0] == "|" and not RULE.fullmatch(text) else [text.lstrip("#|:- ")]
            yield from ((number, cell.strip()) for cell in cells if cell.strip())
        elif text:
            first = first if gathered else number
            gathered.append(item[1] if item else text)


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the line in which its paragraph begins."""
    for line, block in _blocks(page):
        shown = TAG.sub(" ", LINK.sub(r"\1", block).replace("<br>", "\n"))
        yield from ((line, sentence) for sentence in END.split(shown) if sentence)


def long_sentences(page: str, most: int = 25) -> list[str]:
    """Sentences of more than `most` words, with their line and their length."""
    found = []
    for line, sentence in sentences(page):
        words = sum(any(letter.isalnum() for letter in word) for word in sentence.split())
        if words > most:
            found.append(f"line {line}: {words} words: {sentence}")
    return found


def misused_verbs(page: str) -> list[str]:
    return [
        f"line {line}: {found[0]}: {sentence}"
        for line, sentence in sentences(page)
        for found in VERB.finditer(sentence)
    ]


def source_texts(source: str) -> Iterator[str]:
    """Each docstring and comment of a module as a page, with as many empty lines before it as the module has lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield "\n" * (node.lineno - 1) + _unindented(node.value.value, node.col_offset)
    yield from _comments(source)


def _unindented(docstring: str, columns: int) -> str:
    lines = (line.removeprefix(" " * columns) for line in docstring.split("\n"))
    return VERBATIM.sub(_blank, "\n".join(lines))


def _comments(source: str) -> Iterator[str]:
    gathered, last = "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("# ")
            alone = not token.line[: token.start[1]].strip()
            if gathered and (line != last + 1 or not alone):
                yield gathered
                gathered = ""
            gathered = f"{gathered}\n{text}" if gathered else "\n" * (line - 1) + text
            last = line
    if gathered:
        yield gathered
