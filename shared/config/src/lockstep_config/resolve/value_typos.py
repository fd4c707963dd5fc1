"""Mistakes of writing in a value: a comment behind it, typographic quotes, an unfilled placeholder.

Each function returns the end of a sentence about the value, or an empty text. This module is pure.
"""

import re
from collections.abc import Iterator

from lockstep_config.keys.key_types import Key, ValueKind
from lockstep_config.text.jaas import JAAS, NotJaas, parse_jaas, typographic
from lockstep_config.text.secrets import is_secret
from lockstep_config.text.values import split_list
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.unmatchable_patterns import needed_but_illegal

_UNFILLED = "a placeholder that nobody filled"
_TEMPLATE = "part of a template to be rendered first"
_PLACEHOLDERS = (
    (re.compile(r"\{\{(?:.*?\}\})?|\{%(?:.*?%\})?|<%(?:.*?%>)?"), _TEMPLATE),
    (re.compile(r"\$\{[A-Za-z_][\w.-]*(?::?[-=?+][^}]*)?\}|\$\([\w.-]+\)"), _UNFILLED),
    (re.compile(r"(?<![\w\\$])\$[A-Za-z_]\w*"), _UNFILLED),
    (re.compile(r"(?<![?k\\\w])<[A-Za-z][\w .:/-]*>"), _UNFILLED),
    (re.compile(r"(?<![\w\\$#.*+?)\]}])\{[A-Za-z][\w .-]*\}"), _UNFILLED),
    (re.compile(r"%%[\w.-]+%%|(?<![\w%])%[A-Z][A-Z0-9_]*%"), _UNFILLED),
    (re.compile(r"(?<![\w@])@@?[A-Za-z_][\w.-]*@@?(?!\w)|#\{[^}]*\}"), _UNFILLED),
)
_COMMENT = re.compile(r"(?:^|\s)#")
_QUOTES = "\"'"
_GLOB = re.compile(r"(?:[\w.-]*[\w-]\*)+[\w.-]*", re.ASCII)
_LIST = re.compile(r"\[[^][]*\]")


EVENT_HUBS_USER = "$ConnectionString"
"""The user of every login with a connection string of Azure Event Hubs."""


def find_placeholder(text: str) -> str:
    """Return what in a text a shell, a template or a build should have filled in; empty if there is nothing."""
    for form, fault in _PLACEHOLDERS:
        if match := form.search(text):
            return f"{match[0]} is {fault}"
    return ""


def find_unfilled(text: str) -> str:
    """Return a remark if the whole of a secret is a placeholder, without repeating it; else an empty text."""
    bare = text.strip().strip(_QUOTES).strip()
    return next((f"it looks like {fault}" for form, fault in _PLACEHOLDERS if form.fullmatch(bare)), "")


def find_typo(text: str) -> str:
    """Return the first mistake of writing that a value has; empty if it has none."""
    commented = "# begins a comment only at the start of a line" if _COMMENT.search(text) else ""
    return find_placeholder(text) or commented or typographic(text) or _quoted(text.strip())


def in_connection(name: str, text: str) -> Iterator[str]:
    """Yield remarks on the value of a connection property. No secret is repeated."""
    if name == JAAS:
        try:
            options = parse_jaas(text).options
        except NotJaas:
            return  # the connection that needs the line reports it
        if options.get("username") == EVENT_HUBS_USER and not options.get("password", "").startswith("Endpoint="):
            yield f"has the username {EVENT_HUBS_USER}, whose password is Event Hubs' whole connection string: Endpoint=sb://..."
        for option, value in options.items():
            if value != EVENT_HUBS_USER and (fault := find_unfilled(value)):
                yield f"has a {option} that {fault.removeprefix('it ')}"
    elif is_secret(name):
        if fault := find_unfilled(text):
            yield fault.removeprefix("it ")
    elif fault := find_typo(text):
        yield f"is {text.strip()!r}: {fault}"


def remark_patterns(text: str, key: Key) -> Iterator[str]:
    """Yield remarks on patterns that select nothing, or not what they seem to select.

    A group may have any name, so of its patterns only mistakes of writing are reported.
    """
    if _LIST.fullmatch(text.strip()) and not key.per_topic and key.kind is ValueKind.PATTERNS:
        yield (
            f"is {_shown(text.strip())}, which as a regular expression matches one character: write the names without "
            "brackets and quotes, separated by commas"
        )
        return
    for element in split_list(text):
        pattern = element
        if key.per_topic:
            pattern, equals, _ = map(str.strip, element.rpartition("="))
            if not equals:
                continue
        elif key.kind is not ValueKind.PATTERNS:
            continue
        if not pattern.strip(_QUOTES):
            noun = key.name.partition(".")[0]
            instead = f"to name no {noun}, write nothing behind = ({key.name} =)"
            yield f"has {pattern}, which matches none of the {noun}: quotes belong to the value; {instead}"
        elif meant := _glob_meant(pattern):
            yield (
                f"has {_shown(pattern)}, in which * repeats the character before it only: for any text there, write "
                f"{meant}"
            )
        elif key.name.startswith("groups"):
            if fault := find_typo(pattern):
                yield f"has {_shown(pattern)}: {fault}"
        elif needed := _needed(pattern):
            yield _selects_none(pattern, needed, key)
        elif (fault := find_placeholder(pattern)) and "$" in fault:
            yield f"has {_shown(pattern)}: {fault}, and as a pattern it matches nothing"


def _selects_none(pattern: str, needed: tuple[str, ...], key: Key) -> str:
    kind = "config" if key.name.startswith("config.") else "topic"
    does = "leaves out" if key.name.endswith(("exclude", "blacklist")) else "selects"
    characters = " and ".join("a blank" if char == " " else repr(char) for char in needed[:3] if char)
    fault = find_typo(pattern) or ("patterns are separated by commas" if " " in pattern else "")
    return (
        f"has {_shown(pattern)}, which {does} no {kind}: a {kind}'s name has only letters, digits, '.', '_' and '-', "
        f"and this needs {characters or 'something else'}" + (f"; {fault}" if fault else "")
    )


def _glob_meant(pattern: str) -> str:
    """Return the regular expression of what was written as names of files are: `orders-.*` for `orders-*`.

    Empty if there is anything else in it that only a regular expression has.
    """
    return pattern.replace("*", ".*") if _GLOB.fullmatch(pattern) else ""


def _needed(pattern: str) -> tuple[str, ...]:
    try:
        return needed_but_illegal(pattern)
    except UntranslatablePattern:
        return ()  # a part of a pattern that has a comma: `(a,b)` is `(a|b)`


def _quoted(text: str) -> str:
    quoted = text.startswith(tuple(_QUOTES)) or text.endswith(tuple(_QUOTES))
    return "quotes belong to the value: write it without" if quoted else ""


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:79] + "…")
