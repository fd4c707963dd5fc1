"""`docs/reference/conformance.md` from the names of the tests and `conformance.toml`.

`python -m tools.docs.conformance` writes it anew.

A test named `test_mm2_017_...` proves behaviour 17; one that is named `test_mm2_002_003_...` proves both.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "reference" / "conformance.md"
BEHAVIOURS = 188

NUMBERED = re.compile(r"test_mm2_((?:\d{3}_)+)[a-z]")


class Standing(StrEnum):
    """What is known of a behaviour."""

    TESTED = "tested"
    PARTLY = "partly"
    NOT_YET = "not yet"
    JAVA = "Java's own"


@dataclass(frozen=True)
class NamedTest:
    """A test whose name begins with `test_mm2_`. It has no numbers where its name is malformed."""

    name: str
    path: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """`conformance.toml`: sections of sentences by number, and what is said of some numbers besides."""

    sections: Mapping[str, Mapping[int, str]]
    java: Mapping[int, str]
    partly: Mapping[int, str]


@dataclass(frozen=True)
class Behaviour:
    """One line of the page."""

    number: int
    sentence: str
    tests: tuple[NamedTest, ...]
    java: str = ""
    partly: str = ""

    @property
    def standing(self) -> Standing:
        """What is partly shown does not count as tested, whatever tests bear its number."""
        if self.java:
            return Standing.JAVA
        if self.partly:
            return Standing.PARTLY
        return Standing.TESTED if self.tests else Standing.NOT_YET


def read_table() -> Table:
    """The table of this checkout."""
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return Table(
        {title: by_number(lines) for title, lines in found["behaviours"].items()},
        by_number(found["java"]),
        by_number(found["partly"]),
    )


def by_number(lines: Mapping[str, str]) -> dict[int, str]:
    """A key is a number, or the first and the last of several. Raises ValueError where two keys have one in common."""
    numbered: dict[int, str] = {}
    for key, sentence in lines.items():
        first, _, last = key.partition("-")
        for number in range(int(first), int(last or first) + 1):
            if number in numbered:
                raise ValueError(
                    f"conformance.toml: {key} says something of {number}, of which something is said already"
                )
            numbered[number] = sentence
    return numbered


def named_tests(root: Path = REPOSITORY) -> list[NamedTest]:
    """All under `tests`, by path and line. Nothing is imported for it."""
    return [
        NamedTest(name, path.relative_to(root).as_posix(), numbers_of(name))
        for path in sorted((root / "tests").rglob("test_*.py"))
        for name in _functions(ast.parse(path.read_text(), path).body)
        if name.startswith("test_mm2_")
    ]


def numbers_of(name: str) -> tuple[int, ...]:
    """The behaviours that a test of this name proves."""
    matched = NUMBERED.match(name)
    return tuple(int(digits) for digits in matched[1].split("_")[:-1]) if matched else ()


def _functions(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Of a module and its classes; a function within a function is no test."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def behaviours(table: Table, tests: list[NamedTest]) -> Iterator[tuple[str, list[Behaviour]]]:
    """The sections with their lines."""
    for title, sentences in table.sections.items():
        yield (
            title,
            [
                Behaviour(
                    number,
                    sentence,
                    tuple(test for test in tests if number in test.numbers),
                    table.java.get(number, ""),
                    table.partly.get(number, ""),
                )
                for number, sentence in sentences.items()
            ],
        )


def page(table: Table, tests: list[NamedTest]) -> str:
    """The whole page, from nothing but what is given."""
    lines = [one for _, section in behaviours(table, tests) for one in section]
    counts = Counter(one.standing for one in lines)
    meaning = {
        Standing.TESTED: "each has a test",
        Standing.PARTLY: "a part is shown, or Lockstep differs on purpose: see below",
        Standing.NOT_YET: "no test has the number",
        Standing.JAVA: "about Java or Connect themselves: see below",
    }
    out = [
        "# Conformance",
        "",
        f"MirrorMaker 2's test suites state {len(lines)} behaviours.",
        "`tools/docs/conformance.toml` has a sentence for each. A test that proves one has its number in its name:",
        "`grep -rn test_mm2_017 tests` finds those of number 17. This page is made from both by `make docs`.",
        "[How MirrorMaker 2 behaves](../internals/mm2-behaviour.md) has its formats, rules and defaults.",
        "",
        "| | behaviours | |",
        "|---|---|---|",
        *(f"| {standing} | {counts[standing]} | {words} |" for standing, words in meaning.items()),
        "",
        "| no. | what MirrorMaker 2 does | here |",
        "|---|---|---|",
        *(
            f"| {one.number} | {one.sentence} | **{one.standing}**{one.partly and f': {one.partly}'} |"
            for one in lines
            if one.standing in (Standing.PARTLY, Standing.NOT_YET)
        ),
        "",
        f"| nos. | {Standing.JAVA} |",
        "|---|---|",
        *(f"| {', '.join(map(str, numbers))} | {reason} |" for reason, numbers in _java(lines).items()),
    ]
    return "\n".join([*out, ""])


def _java(lines: Iterable[Behaviour]) -> Mapping[str, list[int]]:
    """The numbers by the reason why they have no counterpart here."""
    numbers: dict[str, list[int]] = {}
    for one in lines:
        if one.java:
            numbers.setdefault(one.java, []).append(one.number)
    return numbers


if __name__ == "__main__":
    PAGE.write_text(page(read_table(), named_tests()))
