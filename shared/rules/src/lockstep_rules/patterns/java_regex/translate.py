r"""Java's regular expressions in Python: the same names match in full, or the pattern is refused with a sentence.

MM2's `topics`, `groups` and excludes are `java.util.regex` patterns. A construct that means something else in Python
is spelled out (`.`, `$`, `\Z`, `\h`, POSIX classes, unions and intersections of classes, inline flags, `\Q..\E`). A
construct without a counterpart raises UntranslatablePattern. Defaults are Java's. `\w`, `\d`, `\s` and `(?i)` are
about ASCII, and `\b` is as in Java 19 and later. (Before, it knew letters of all scripts; no topic name holds such a
letter.)
"""

import re
from typing import NamedTuple

from lockstep_rules.patterns.java_regex.character_classes import (
    BLANKS,
    CASED_CATEGORIES,
    LINE_ENDS,
    POSIX,
    UNICODE_CATEGORIES,
    category_ranges,
)
from lockstep_rules.patterns.java_regex.tokens import Tokens, UntranslatablePattern

ANY = r"[\s\S]"
NO_LINE_END = f"[^{LINE_ENDS}]"
AT_LAST_LINE_END = rf"(?:(?!(?<=\r)\n)(?=(?:\r\n|[{LINE_ENDS}])?\Z))"
r"""The translation of `$` and `\Z`: the end, or before the line end that ends the text, but not inside CR LF."""

OUTSIDE_CLASSES = {
    "b": r"\b",
    "B": r"(?!\b)",
    "A": r"\A",
    "z": r"\Z",
    "Z": AT_LAST_LINE_END,
    "R": rf"(?:\r\n|[{LINE_ENDS}\x0b\x0c])",
}
SHORTHANDS = frozenset("dDwWsS")
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
FLAGS_REFUSED = {
    "d": "UNIX_LINES",
    "m": "MULTILINE",
    "u": "UNICODE_CASE",
    "x": "COMMENTS",
    "U": "UNICODE_CHARACTER_CLASS",
}


def to_python(pattern: str) -> str:
    """Return a pattern for `re.fullmatch` that accepts what Java's `Matcher.matches` accepts of `pattern`.

    Raises:
        UntranslatablePattern: There is no such pattern. Characters are counted from 1 in its message.
    """
    try:
        text = _Parser(pattern).translate()
        re.compile(text)
    except re.error as exc:
        raise UntranslatablePattern(pattern, f"Python's regular expressions refuse it: {exc.msg}") from exc
    except (OverflowError, RecursionError) as exc:
        raise UntranslatablePattern(pattern, f"too large: {exc}") from exc
    return text


class _Flags(NamedTuple):
    ignore_case: bool = False
    dot_all: bool = False


class _Parser(Tokens):
    """A recursive-descent parser over the tokens.

    Case-insensitivity is written round each run of leaves, so that flags may change anywhere.
    """

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.groups = 0
        self.names: set[str] = set()

    def translate(self) -> str:
        text = self._alternatives(_Flags(), line_end=r"\Z")
        if self.peek_special():
            self.refuse("a ) without its (")
        return "(?a)" + text

    def _alternatives(self, flags: _Flags, line_end: str = AT_LAST_LINE_END) -> str:
        """Translate up to the group's end. A flag set in one alternative holds in the later ones.

        `line_end` replaces a `$` that ends an alternative. If nothing follows the alternatives, `$` is the end of the
        name.
        """
        branches = []
        while True:
            text, flags = self._branch(flags)
            branches.append(text.removesuffix(AT_LAST_LINE_END) + line_end if text.endswith(AT_LAST_LINE_END) else text)
            if not self.pop_if("|"):
                return "|".join(branches)

    def _branch(self, flags: _Flags) -> tuple[str, _Flags]:
        text = ""
        folded = ""
        while self.next < len(self.tokens) and self.peek_special() not in ("|", ")"):
            if self.peek_special() == "(" and self.peek_special(1) == "?" and self.peek_special(2) in (*"idmsuxU-",):
                grouped, flags = self._flag_group(flags)
                folds = False
            else:
                grouped, folds = self._atom(flags)
                grouped += self._quantifier()
            if folds and flags.ignore_case:
                folded += grouped
            elif grouped:
                text += (f"(?i:{folded})" if folded else "") + grouped
                folded = ""
        return text + (f"(?i:{folded})" if folded else ""), flags

    def _quantifier(self) -> str:
        text = self.pop_if("*+?")
        if not text and self.pop_if("{"):
            inside = self.pop_until("}", "a { without its }")
            bounds = re.fullmatch(r"([0-9]+)(?:,([0-9]*))?", inside)
            if bounds is None:
                self.refuse(f"illegal repetition {{{inside}}}")
            if bounds[2] and int(bounds[2]) < int(bounds[1]):
                self.refuse(f"illegal repetition {{{inside}}}: the upper bound is below the lower one")
            text = f"{{{inside}}}"
        return text + self.pop_if("?+") if text else ""

    def _atom(self, flags: _Flags) -> tuple[str, bool]:
        """Return one thing to repeat, and whether it is a leaf whose letters the flag `i` concerns."""
        token = self.pop("")
        if token.quoted:
            return re.escape(token.char), True
        match token.char:
            case "(":
                return self._group(flags), False
            case "[":
                return self._class(flags), True
            case "\\":
                return self._escape(flags)
            case ".":
                return (ANY if flags.dot_all else NO_LINE_END), False
            case "^":
                return r"\A", False
            case "$":
                return AT_LAST_LINE_END, False
            case "*" | "+" | "?" | "{":
                self.refuse(f"{token.char} has nothing to repeat" + (" (.* is any text)" if token.char == "*" else ""))
        return re.escape(token.char), True

    def _group(self, flags: _Flags) -> str:
        opening = "(" + self._group_kind()
        text = opening + self._alternatives(flags)
        if not self.pop_if(")"):
            self.refuse("a ( without its )")
        return text + ")"

    def _group_kind(self) -> str:
        if not self.pop_if("?"):
            self.groups += 1
            return ""
        if kind := self.pop_if(":=!>"):
            return "?" + kind
        if not self.pop_if("<"):
            self.refuse("unknown kind of group")
        if kind := self.pop_if("=!"):
            return "?<" + kind
        name = self.pop_until(">", "a group's name without its >")
        if not re.fullmatch("[a-zA-Z][a-zA-Z0-9]*", name):
            self.refuse(f"{name!r} is no name for a group: ASCII letters and digits, a letter first")
        if name in self.names:
            self.refuse(f"there is a group named {name!r} already")
        self.names.add(name)
        self.groups += 1
        return f"?P<{name}>"

    def _flag_group(self, flags: _Flags) -> tuple[str, _Flags]:
        """Translate `(?i)`, which changes the flags from here on, or `(?i:...)`, which changes them inside."""
        self.next += 2
        inside, on = flags, True
        while not (end := self.pop_if("):")):
            match self.pop("flags without their )").char:
                case "-" if on:
                    on = False
                case "i":
                    inside = inside._replace(ignore_case=on)
                case "s":
                    inside = inside._replace(dot_all=on)
                case char if char in FLAGS_REFUSED and on:
                    self.refuse(f"the flag {char} ({FLAGS_REFUSED[char]}) has no counterpart here")
                case char if char not in FLAGS_REFUSED:
                    self.refuse(f"unknown flag {char!r}")
        if end == ")":
            return "", inside
        text = "(?:" + self._alternatives(inside)
        if not self.pop_if(")"):
            self.refuse("a ( without its )")
        return text + ")" + self._quantifier(), flags

    def _escape(self, flags: _Flags) -> tuple[str, bool]:
        char = self.pop("a \\ at the end escapes nothing").char
        if char in "123456789":
            return self._back_reference(char), True
        if char == "k":
            if not self.pop_if("<") or (name := self.pop_until(">", "a name without its >")) not in self.names:
                self.refuse("\\k must name a group that precedes it")
            return f"(?P={name})", True
        if char == "b" and self.peek_special() == "{":
            self.refuse("\\b{g} (grapheme cluster boundary) has no counterpart here")
        if char in OUTSIDE_CLASSES:
            return OUTSIDE_CLASSES[char], False
        if (members := self._set_escape(char, flags)) is not None:
            return f"[{members}]", True
        return re.escape(self._char_escape(char)), True

    def _back_reference(self, number: str) -> str:
        while (digit := self.peek_special()) and digit in "0123456789" and int(number + digit) <= self.groups:
            number += digit
            self.next += 1
        if int(number) > self.groups:
            self.refuse(f"\\{number} refers to a group that does not precede it")
        return f"(?:\\{number})"

    def _set_escape(self, char: str, flags: _Flags) -> str | None:
        r"""Return the members of a set such as `\d`, `\H` or `\p{L}` as the inside of a class.

        It is None if `char` begins no set.
        """
        if char in SHORTHANDS:
            return "\\" + char
        if char.lower() in BLANKS:
            return ("^" if char.isupper() else "") + BLANKS[char.lower()]
        if char not in ("p", "P"):
            return None
        name = self.pop("\\p without a name").char
        if name == "{":
            name = self.pop_until("}", "\\p{ without its }")
        return ("^" if char == "P" else "") + self._property(name, flags)

    def _property(self, name: str, flags: _Flags) -> str:
        if name in POSIX:
            return POSIX[name]
        category = name.removeprefix("Is")
        if category not in UNICODE_CATEGORIES:
            supported = ", ".join(POSIX)
            self.refuse(
                f"\\p{{{name}}} is not supported: use a general category such as L, Lu or Nd, or one of {supported}"
            )
        if category in CASED_CATEGORIES and flags.ignore_case:
            self.refuse(f"\\p{{{name}}} under the flag i has no counterpart here")
        return category_ranges(category)

    def _char_escape(self, char: str) -> str:
        match char:
            case "0":
                return chr(int(self._digits("[0-3][0-7]{0,2}|[0-7]{1,2}", "\\0 needs octal digits"), 8))
            case "x" if self.pop_if("{"):
                digits = self.pop_until("}", "\\x{ without its }")
                if not re.fullmatch("[0-9a-fA-F]{1,8}", digits) or int(digits, 16) > 0x10FFFF:
                    self.refuse(f"\\x{{{digits}}} is no character")
                return chr(int(digits, 16))
            case "x":
                return chr(int(self._digits("[0-9a-fA-F]{2}", "\\x needs two hexadecimal digits"), 16))
            case "u":
                point = int(self._digits("[0-9a-fA-F]{4}", "\\u needs four hexadecimal digits"), 16)
                if 0xD800 <= point <= 0xDFFF:
                    self.refuse("half of a surrogate pair: write the character itself or \\x{...}")
                return chr(point)
            case "c":
                return chr(ord(self.pop("\\c without a character").char) ^ 64)
        if char in CONTROLS:
            return CONTROLS[char]
        if char.isascii() and char.isalpha():
            self.refuse(f"\\{char} is not supported")
        return char

    def _digits(self, digits: str, missing: str) -> str:
        upcoming = "".join(token.char for token in self.tokens[self.next : self.next + 4] if not token.quoted)
        match = re.match(digits, upcoming)
        if match is None:
            self.refuse(missing)
        self.next += match.end()
        return match[0]

    def _class(self, flags: _Flags) -> str:
        """Translate a class after its `[`, with unions and intersections.

        A negation concerns all of it, as in Java 9 and later.
        """
        negated = bool(self.pop_if("^"))
        operands = [self._operand(flags, first=True)]
        while not self.pop_if("]"):
            self.next += 2  # the && at which an operand ended
            operands.append(self._operand(flags, first=False))
        if any(len(operand) > 1 for operand in operands[1:-1]):
            self.refuse("a class with several && must have a single class between each two of them")
        if negated and len(operands) == 1 and len(operands[0]) == 1 and operands[0][0].startswith("["):
            only = operands[0][0]
            return "[" + only[2:] if only.startswith("[^") else "[^" + only[1:]
        *lookaheads, consumed = (parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})" for parts in operands)
        text = "".join(f"(?={operand})" for operand in lookaheads) + consumed
        if negated:
            return f"(?:(?!{text}){ANY})"
        return f"(?:{text})" if lookaheads else text

    def _operand(self, flags: _Flags, *, first: bool) -> list[str]:
        """Return the parts of a union, each a class of its own, up to `]` or `&&`."""
        members = ""
        parts: list[str] = []
        while True:
            if self.peek_special() == "&" and self.peek_special(1) == "&":
                if not (members or parts) or self.peek_special(2) in ("&", "]"):
                    self.refuse("&& needs a class on either side")
                break
            if self.peek_special() == "]" and (members or parts or not first):
                break
            token = self.pop("a [ without its ]")
            if not token.quoted and token.char == "[":
                parts.append(self._class(flags))
                continue
            char = token.char
            if not token.quoted and char == "\\":
                char = self.pop("a \\ at the end escapes nothing").char
                if (members_text := self._set_escape(char, flags)) is not None:
                    if members_text.startswith("^"):
                        parts.append(f"[{members_text}]")
                    else:
                        members += members_text
                    continue
                char = self._char_escape(char)
            members += self._range_from(char)
        return [*([f"[{members}]"] if members else []), *parts]

    def _range_from(self, begin: str) -> str:
        if self.peek_special() != "-" or self.peek_special(1) in ("[", "]") or self.next + 1 >= len(self.tokens):
            return re.escape(begin)
        self.next += 1
        token = self.pop("")
        end = token.char
        if not token.quoted and end == "\\":
            end = self._char_escape(self.pop("a \\ at the end escapes nothing").char)
        if end < begin:
            self.refuse(f"illegal range {begin}-{end}: its end comes before its beginning")
        return f"{re.escape(begin)}-{re.escape(end)}"
