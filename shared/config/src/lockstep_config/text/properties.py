r"""The reader of `java.util.Properties` text into entries that know their line.

The syntax is Java's. There are `#` and `!` comments, and keys end at the first unescaped `=`, `:` or blank. A
backslash is an escape (so `a\.b` in the file is `a.b`, and `a\\.b` is the regular expression `a\.b`). A trailing
backslash continues a line.

Java reads ISO-8859-1, with `\uXXXX` for other characters, but editors write UTF-8. So bytes that are valid UTF-8 are
read as UTF-8, which is what their author saw. A key or value in which that makes a difference is noted; all other
bytes are ISO-8859-1.
"""

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import javaproperties

from lockstep_config.text.config_errors import Problem

UTF8_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value, unescaped, and the line (from 1) on which the key begins.

    If `referenced` is True a config provider brought the value or a part of it, so it is not shown to people. `read`
    are the files that it was brought from. `file` and `written` are for inputs other than one mm2.properties file:
    `file` is the one of several that has the line, `written` is its key there.
    """

    key: str
    value: str = field(repr=False)
    line: int = 0
    referenced: bool = False
    file: Path | None = None
    written: str = ""
    read: tuple[Path, ...] = ()

    @property
    def shown(self) -> str:
        """The key as its author knows it."""
        return self.written or self.key


@dataclass(frozen=True, slots=True)
class PropertiesText:
    """The content of a file.

    `entries` are the entries that count, in the order of the file, each key once. `problems` are mistakes, and
    `notes` deserve a warning. Inputs that know it before their lines are checked also have `unused`, the lines
    without effect. `lacking` are problems unless a line with that key comes from elsewhere.
    """

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    unused: tuple[Problem, ...] = ()
    lacking: tuple[Problem, ...] = ()


class _CountedLines:
    """A text by its logical lines, which counts the lines that were read from it.

    javaproperties reads exactly the lines of one entry before it yields, but joins continued lines in a time that
    grows with their square.
    """

    def __init__(self, text: str) -> None:
        self._lines = io.StringIO(text, newline="")
        self.lines_read = 0

    def readline(self) -> str:
        line = self._natural()
        if line.lstrip(" \t\f").startswith(("#", "!")):
            return line
        parts = []
        while _is_continued(line) and (following := self._natural()):
            parts.append(line.rstrip("\r\n")[:-1])
            line = following.lstrip(" \t\f")
        return "".join((*parts, line))

    def _natural(self) -> str:
        line = self._lines.readline()
        self.lines_read += bool(line)
        return line


def _is_continued(line: str) -> bool:
    text = line.rstrip("\r\n")
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def read_properties(data: bytes, file: Path) -> PropertiesText:
    r"""Read the bytes of a properties file; `file` is only named in problems and notes.

    A key written twice counts with its last value, as in Java, and is noted. A malformed `\uXXXX` is a problem of its
    line and reading goes on behind it.
    """
    text, is_utf8 = _decoded(data.removeprefix(UTF8_BYTE_ORDER_MARK))
    entries: dict[str, Entry] = {}
    problems: list[Problem] = []
    notes: list[Problem] = []
    lines = _CountedLines(text)
    while True:
        begins = lines.lines_read + 1
        try:
            # Each element has its own generator, so that a bad escape ends that one and not the reading.
            element = next(javaproperties.parse(cast(IO[str], lines)), None)
        except javaproperties.InvalidUEscapeError as exc:
            message = f"{exc.escape!r} is no Unicode escape: write \\uXXXX with hexadecimal digits, or \\\\u for \\u"
            problems.append(Problem(file, begins, "", message))
            continue
        if element is None:
            return PropertiesText(tuple(entries.values()), tuple(problems), tuple(notes))
        if not isinstance(element, javaproperties.KeyValue):
            continue
        key, value = element.key, element.value
        # Escapes alone mean the same in both encodings.
        if is_utf8 and not (key + value).isascii() and not element.source.isascii():
            message = (
                "has characters beyond ASCII, read here as UTF-8; MirrorMaker would read them as ISO-8859-1: "
                "\\uXXXX means the same in both"
            )
            notes.append(Problem(file, begins, key, message))
        if (earlier := entries.pop(key, None)) is not None:
            message = f"is set twice, first in line {earlier.line}: the last one counts"
            notes.append(Problem(file, begins, key, message))
        entries[key] = Entry(key, value, begins)


def _decoded(data: bytes) -> tuple[str, bool]:
    try:
        return data.decode("utf-8"), True
    except UnicodeDecodeError:
        return data.decode("iso-8859-1"), False
