"""A Java pattern as a sequence of characters, some of them quoted, which `java_regex` parses."""

from typing import NamedTuple, NoReturn


class UntranslatablePattern(ValueError):
    """An error for a pattern that is no regular expression, or that means in Java what Python cannot express.

    `reason` says which, and where in the pattern.
    """

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(pattern, reason)
        self.pattern = pattern
        self.reason = reason

    def __str__(self) -> str:
        return f"regular expression {self.pattern!r}: {self.reason}"


class PatternToken(NamedTuple):
    r"""One character of the pattern. Between `\Q` and `\E` it is `quoted` and stands for itself."""

    char: str
    quoted: bool
    position: int


class Tokens:
    """The tokens of a pattern, and the position up to which they are read.

    Every missing or wrong token raises UntranslatablePattern.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.tokens = _tokens(pattern)
        self.next = 0

    def peek_special(self, ahead: int = 0) -> str:
        """Return the coming character if it is unquoted, else ""."""
        index = self.next + ahead
        if index >= len(self.tokens) or self.tokens[index].quoted:
            return ""
        return self.tokens[index].char

    def pop(self, missing: str) -> PatternToken:
        """Return the next token.

        Raises:
            UntranslatablePattern: There is none. `missing` is the sentence of the error.
        """
        if self.next >= len(self.tokens):
            self.refuse(missing)
        self.next += 1
        return self.tokens[self.next - 1]

    def pop_if(self, chars: str) -> str:
        """Consume and return the next character if it is unquoted and among `chars`, else return ""."""
        char = self.peek_special()
        if not char or char not in chars:
            return ""
        self.next += 1
        return char

    def pop_until(self, end: str, missing: str) -> str:
        """Return the text before the next `end`, and consume both."""
        collected = ""
        while not self.pop_if(end):
            collected += self.pop(missing).char
        return collected

    def refuse(self, reason: str) -> NoReturn:
        """Raise UntranslatablePattern with the present position."""
        position = self.tokens[min(self.next, len(self.tokens)) - 1].position if self.tokens and self.next else 0
        raise UntranslatablePattern(self.pattern, f"{reason}, at character {position + 1}")


def _tokens(pattern: str) -> list[PatternToken]:
    tokens: list[PatternToken] = []
    position, quoted = 0, False
    while position < len(pattern):
        pair = pattern[position : position + 2]
        if pair == ("\\E" if quoted else "\\Q"):
            quoted = not quoted
            position += 2
            continue
        # An escaped backslash must not begin a \Q.
        width = 2 if not quoted and pair.startswith("\\") else 1
        tokens.extend(PatternToken(char, quoted, position + i) for i, char in enumerate(pair[:width]))
        position += width
    return tokens
