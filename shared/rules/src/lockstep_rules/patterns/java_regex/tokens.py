"""A Java pattern as a stream of characters, some quoted; `java_regex` parses it."""

from typing import NamedTuple, NoReturn


class UntranslatablePattern(ValueError):
    """The pattern is no regular expression, or means in Java what Python cannot express; `why` says which and where."""

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(pattern, why)
        self.pattern = pattern
        self.why = why

    def __str__(self) -> str:
        return f"regular expression {self.pattern!r}: {self.why}"


class PatternToken(NamedTuple):
    """One character of the pattern; between `\\Q` and `\\E` it is `quoted` and stands for itself."""

    char: str
    quoted: bool
    at: int


class Tokens:
    """The tokens of a pattern and how far they are read. Every missing or wrong token raises UntranslatablePattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.tokens = _tokens(pattern)
        self.next = 0

    def special(self, ahead: int = 0) -> str:
        """The character to come, if it is there and not quoted; else the empty text."""
        index = self.next + ahead
        if index >= len(self.tokens) or self.tokens[index].quoted:
            return ""
        return self.tokens[index].char

    def pop(self, missing: str) -> PatternToken:
        """The next token, or a refusal with the sentence `missing` where there is none."""
        if self.next >= len(self.tokens):
            self.refuse(missing)
        self.next += 1
        return self.tokens[self.next - 1]

    def pop_if(self, chars: str) -> str:
        """The next character, taken, if it is unquoted and among `chars`; else the empty text."""
        char = self.special()
        if not char or char not in chars:
            return ""
        self.next += 1
        return char

    def pop_until(self, end: str, missing: str) -> str:
        """The text before the next `end`, which is consumed too."""
        collected = ""
        while not self.pop_if(end):
            collected += self.pop(missing).char
        return collected

    def refuse(self, why: str) -> NoReturn:
        """Raise UntranslatablePattern with the present position."""
        at = self.tokens[min(self.next, len(self.tokens)) - 1].at if self.tokens and self.next else 0
        raise UntranslatablePattern(self.pattern, f"{why}, at character {at + 1}")


def _tokens(pattern: str) -> list[PatternToken]:
    tokens: list[PatternToken] = []
    at, quoted = 0, False
    while at < len(pattern):
        pair = pattern[at : at + 2]
        if pair == ("\\E" if quoted else "\\Q"):
            quoted = not quoted
            at += 2
            continue
        # An escaped backslash must not begin a \Q.
        width = 2 if not quoted and pair.startswith("\\") else 1
        tokens.extend(PatternToken(char, quoted, at + i) for i, char in enumerate(pair[:width]))
        at += width
    return tokens
