"""Java's named character sets, as the inside of a Python character class, for `java_regex`."""

import functools
import sys
import unicodedata

LINE_ENDS = r"\n\r\x85\u2028\u2029"
"""The characters that `.` does not match in Java. Python's `.` excludes the line feed only."""

BLANKS = {"h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000", "v": r"\n\x0b\x0c\r\x85\u2028\u2029"}
r"""The sets of `\h` and `\v`."""

POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\x0c\r",
}
r"""The sets `\p{Name}` of java.util.regex, which are ASCII only."""

CASED_CATEGORIES = frozenset({"Lu", "Ll", "Lt"})

UNICODE_CATEGORIES = frozenset(
    {"L", "M", "N", "P", "S", "Z", "C", *CASED_CATEGORIES, "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No"}
    | {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cn", "Co", "Cs"}
)
r"""The general categories, as in `\p{L}`, `\p{Lu}`, `\pL`, `\p{IsL}`, by the Unicode version that this Python knows.
"""


@functools.cache
def category_ranges(category: str) -> str:
    """Return the code points of a general category.

    The first call for a category goes through all of Unicode (about 0.1 s).
    """
    ranges: list[str] = []
    begin: int | None = None
    for point in range(sys.maxunicode + 2):
        belongs = point <= sys.maxunicode and unicodedata.category(chr(point)).startswith(category)
        if belongs and begin is None:
            begin = point
        elif not belongs and begin is not None:
            ranges.append(f"\\U{begin:08x}" if begin == point - 1 else f"\\U{begin:08x}-\\U{point - 1:08x}")
            begin = None
    return "".join(ranges)
