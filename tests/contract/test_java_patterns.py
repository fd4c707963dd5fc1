"""Patterns mean here what java.util.regex says they mean: made up by the thousand, and Java is asked."""

import random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from lockstep_rules.filters import NameFilter
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.renames import BadReplacement, Rename

LEAVES = [
    *("a", "b", "Z", "0", "-", "_", r"\.", ".", r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\h", r"\H", r"\v", r"\V"),
    *(r"\R", r"\x41", r"\u0061", r"\0101", r"\x{1F600}", r"\cA", r"\t", r"\e", r"\a", r"\-", r"\Qa.b\E", r"\Q*", r"\E"),
    *(
        "[abc]",
        "[^abc]",
        "[a-z]",
        "[a-z&&[^b]]",
        "[a-z&&b]",
        "[a-c[x-z]]",
        "[^a[b]]",
        r"[\w&&[^\d]]",
        "[a-z&&[a-m]&&[^c]]",
    ),
    *(
        r"[\p{Alpha}-]",
        "[]a]",
        "[a-]",
        "[-a]",
        "[a^]",
        r"[\]]",
        r"[\Q^-]\E]",
        "[&a]",
        "[a&&&b]",
        "[[a]&&[a]]",
        "[.$]",
        "[a--]",
    ),
    *(
        r"\p{Alpha}",
        r"\p{L}",
        r"\P{L}",
        r"\pL",
        r"\p{Lu}",
        r"\p{IsL}",
        r"\p{Punct}",
        r"\p{Space}",
        r"\p{XDigit}",
        r"\p{Nd}",
    ),
    *(
        r"\p{IsAlphabetic}",
        r"\p{javaLowerCase}",
        r"\p{InGreek}",
        r"\X",
        r"\G",
        r"\N{DIGIT ONE}",
        r"\b",
        r"\B",
        r"\A",
        r"\Z",
    ),
    *(
        r"\z",
        "^",
        "$",
        r"\1",
        r"\k<n>",
        "(?i)",
        "(?s)",
        "(?-i)",
        "(?x)",
        "(?m)",
        "(?u)",
        "(?d)",
        "(?U)",
        "(?is)",
        "",
        "}",
        "]",
    ),
    *("é", "É", "😀", "\n", "\r\n", "\u2028", " ", "ſ", "K"),
]
QUANTIFIERS = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "*+", "++", "?+", "{2}+", "{,2}", "{2,1}", "**"]
OPENINGS = [
    "(",
    "(?:",
    "(?i:",
    "(?s:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?>",
    "(?<n>",
    "(?-i:",
    "(?is-:",
    "(?P<n>",
    "(?#",
]
LETTERS = [
    "a",
    "b",
    "B",
    "A",
    "Z",
    "0",
    "1",
    "-",
    "_",
    ".",
    " ",
    "\t",
    "\n",
    "\r",
    "\u2028",
    "\x85",
    "é",
    "É",
    "😀",
    "\x01",
]
LETTERS += ["*", "^", "&", "]", "K", "\u212a", "ſ", "s", "x", "z", "\xa0", "\x1b", "٣"]
SEED = 6


def made(dice: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(dice.randint(1, 4 - min(depth, 2))):
        if depth < 3 and dice.random() < 0.3:
            part = dice.choice(OPENINGS) + made(dice, depth + 1) + ")"
        else:
            part = dice.choice(LEAVES)
        if dice.random() < 0.3:
            part += dice.choice(QUANTIFIERS)
        parts.append(part)
        if dice.random() < 0.12:
            parts.append("|")
    return "".join(parts)


def near(pattern: str, dice: random.Random) -> list[str]:
    """Names that may match: a few of nothing in particular, and what the pattern has of letters."""
    own = [c for c in pattern if c.isalnum()] or ["a"]
    names = ["", "a", "aa", "ab", "a.b", "A"]
    for _ in range(8):
        letters = own if dice.random() < 0.5 else LETTERS
        names.append("".join(dice.choice(letters) for _ in range(dice.randint(1, 5))))
    return names


def javas(java: Any, pattern: str, names: list[str]) -> list[bool] | None:
    """What Java says of each name; None where it refuses the pattern."""
    try:
        compiled = java.jvm.java.util.regex.Pattern.compile(pattern)
    except Py4JJavaError:
        return None
    return [bool(compiled.matcher(name).matches()) for name in names]


def ours(pattern: str, names: list[str]) -> list[bool] | None:
    try:
        compiled = NameFilter((pattern,))
    except UntranslatablePattern:
        return None
    return [compiled.matches(name) for name in names]


def compare(java: Any, count: int) -> None:
    wrong: list[str] = []
    both = 0
    for number in range(count):
        dice = random.Random(f"{SEED}-{number}")
        pattern = made(dice)
        names = near(pattern, dice)
        if "\\b" in pattern.lower():
            names = [name for name in names if name.isascii()]  # Java 17 still knows letters of all scripts there
        mine = ours(pattern, names)
        if mine is None:
            continue  # what cannot be said is refused, whatever Java makes of it
        theirs = javas(java, pattern, names)
        both += theirs is not None
        if theirs is None:
            wrong.append(f"{pattern!r}: Java refuses it")
        elif mine != theirs:
            differ = [name for name, one, other in zip(names, mine, theirs, strict=True) if one != other]
            wrong.append(
                f"{pattern!r}: {differ[:3]}, matched by {'Java' if theirs[names.index(differ[0])] else 'us'} alone"
            )
    assert not wrong, f"{len(wrong)} of {both}:\n" + "\n".join(wrong[:30])
    assert both > count / 4


def test_a_few_hundred_patterns(java: Any) -> None:
    compare(java, 300)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_very_many_patterns(java: Any) -> None:
    compare(java, 20_000)


PARTS = ("a", "b", "-", ".", "[ab]", "a?", "b*", "(?:a|b)", "[^-]+", r"\.")
NAMES = ("", "a", "ab", "ba-b", "a-b.a", "aab", "abab-", "b.a-b", "aaa", "a.b-a.b")


def grouped(dice: random.Random, depth: int = 0) -> str:
    """Return a pattern with groups, some of them repeated, or in a branch that does not match."""
    parts = []
    for _ in range(dice.randint(1, 3)):
        is_group = depth < 3 and dice.random() < 0.5
        part = f"({grouped(dice, depth + 1)})" if is_group else dice.choice(PARTS)
        if is_group and dice.random() < 0.5:
            part += dice.choice(("*", "+", "?", "{2}", "*?", "+?", "??"))
        parts.append(part)
        if dice.random() < 0.15:
            parts.append("|")
    return "".join(parts)


def routed(java: Any, pattern: str, replacement: str) -> list[str | None]:
    """Return what a RegexRouter makes of each name; None: it leaves it as it is."""
    matchers = [java.jvm.java.util.regex.Pattern.compile(pattern).matcher(name) for name in NAMES]
    return [str(matcher.replaceFirst(replacement)) if matcher.matches() else None for matcher in matchers]


def is_taken(pattern: str, replacement: str) -> bool:
    try:
        Rename(pattern, replacement)
    except (UntranslatablePattern, BadReplacement):
        return False
    return True


@pytest.mark.timeout(300)
def test_renames_hold_in_their_groups_what_java_holds(java: Any) -> None:
    wrong, renamed = [], 0
    for number in range(600):
        pattern = grouped(random.Random(f"{SEED}-{number}"))
        groups = range(min(pattern.count("(") - pattern.count("(?:"), 9) + 1)
        replacement = "/".join(f"${group}" for group in groups if is_taken(pattern, f"${group}"))
        if not replacement:
            continue  # what differs is refused
        rename = Rename(pattern, replacement)
        mine, theirs = [rename.rename(name) for name in NAMES], routed(java, pattern, replacement)
        renamed += sum(name is not None for name in theirs)
        rows = zip(NAMES, mine, theirs, strict=True)
        wrong += [f"{pattern!r}: {name!r} is {own!r}, in Java {other!r}" for name, own, other in rows if own != other]
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:30])
    assert renamed > 300
