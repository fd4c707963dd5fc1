"""The parser of a `sasl.jaas.config` line, as Kafka's own `JaasConfig`: `MODULE FLAG name="value" ...;`.

No message repeats the text: it holds passwords.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

JAAS = "sasl.jaas.config"
MARKS = (("=", False), (";", False))
FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

# Java's StreamTokenizer: quoted text ends at its quote (a line end there is an error), comments are as in Java. Bare
# words may hold more than Java's, which end at `/` and are no numbers: nothing that Java takes is read differently.
_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<mark>[=;])
    | (?P<word>(?:(?!/[/*])[^\s=;"'])+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


_TYPOGRAPHIC = re.compile("[\u2018-\u201f\u00ab\u00bb\u2039\u203a\x91-\x94]")
"""Quotes that word processors set, also those of Windows' code page read as ISO-8859-1."""


class NotJaas(ValueError):
    """The text is no JAAS entry. The message says where it stops being one, and what to write."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module's class and its options. If an option is written twice, the last counts."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def typographic(text: str) -> str:
    """Return what is wrong with the quotes of a text; empty if nothing is."""
    marks = dict.fromkeys(_TYPOGRAPHIC.findall(text))
    if not marks:
        return ""
    shown = " ".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in marks)
    return f"it has typographic quotes ({shown}), as word processors set them: write straight ones, or none"


def parse_jaas(text: str) -> JaasEntry:
    """Return the one entry of the text.

    Raises:
        NotJaas: The text is no JAAS entry, or has several.
    """
    # Within straight quotes other quotes are part of a value. Elsewhere straight quotes were meant.
    outside = "".join(part for part in _TOKEN.split(text) if part and not part.startswith(("'", '"')))
    if wrong := typographic(outside):
        raise NotJaas(f"cannot be read: {wrong}")
    tokens = list(_tokens(text))
    if not tokens:
        raise NotJaas('is empty: write MODULE required name="value" ;')
    if len(tokens) == 1 and tokens[0][1]:
        raise NotJaas("is in quotes as a whole: write it without them")
    if re.search(r";\s*#", outside):
        raise NotJaas("has # behind its semicolon, which begins a comment only at the start of a line: remove it")
    if tokens[-1] != (";", False):
        raise NotJaas("does not end with a semicolon: add one")
    if len(tokens) < 3 or tokens[1][0].lower() not in FLAGS:
        raise NotJaas('is no JAAS line: write MODULE required name="value" ;')
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for position in range(0, len(rest), 3):
        match rest[position : position + 3]:
            case [(name, _) as key, ("=", False), (value, _) as token] if key not in MARKS and token not in MARKS:
                options[name] = value
            case [(";", False), *_] | [_, (";", False), *_] | [_, _, (";", False)]:
                raise NotJaas("names more than one login module: Kafka takes one")
            case _:
                raise NotJaas(f'has something behind option {len(options)} that is no name="value": check its quotes')
    return JaasEntry(tokens[0][0], options)


def misspelt_option(name: str, known_options: Iterable[str]) -> str | None:
    """Return the known option that an unknown one is a misspelling of; None if there is none."""
    by_lower_case = {option.lower(): option for option in known_options}
    near = difflib.get_close_matches(name.lower(), by_lower_case, 1, 0.85)
    return by_lower_case[near[0]] if near and name not in by_lower_case.values() else None


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each token, and whether it was in quotes."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotJaas("has a quote that is not closed: check its quotes")
        position = match.end()
        if match["quoted"] is not None:
            yield _ESCAPE.sub(_unescaped, match["quoted"][1:-1]), True
        elif match["mark"] or match["word"]:
            yield match["mark"] or match["word"], False


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPES.get(escape, escape)
