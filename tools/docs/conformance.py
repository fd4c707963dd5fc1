"""`docs/reference/conformance.md`, from the names of the tests and `conformance.toml`.

A test named `test_mm2_017_...` proves behaviour 17; one that is named `test_mm2_002_003_...` proves both.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tools.docs.pages import DOCS, REPOSITORY, table

PAGE = DOCS / "reference" / "conformance.md"

NUMBERED = re.compile(r"test_mm2_((?:\d{3}_)+)[a-z]")
TEST = re.compile(r"^(?: {4})?(?:async )?def (test_mm2_\w*)", re.MULTILINE)
"""A function of a module or of a class."""


class Standing(StrEnum):
    """What is known of a behaviour."""

    TESTED = "tested"
    PARTLY = "partly"
    NOT_YET = "not yet"
    JAVA = "Java's own"


MEANING = {
    Standing.TESTED: "each has a test",
    Standing.PARTLY: "a part is shown, or Lockstep differs on purpose: see below",
    Standing.NOT_YET: "no test has the number",
    Standing.JAVA: "about Java or Connect themselves: see below",
}


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

    def standing(self, number: int, tested: Container[int]) -> tuple[Standing, str]:
        """Return how a behaviour stands, and why. What is partly shown does not count as tested."""
        if number in self.java:
            return Standing.JAVA, self.java[number]
        if number in self.partly:
            return Standing.PARTLY, self.partly[number]
        return (Standing.TESTED if number in tested else Standing.NOT_YET), ""


def read_table() -> Table:
    """Return the table of this checkout."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    sections = {title: by_number(lines) for title, lines in tables["behaviours"].items()}
    return Table(sections, by_number(tables["java"]), by_number(tables["partly"]))


def by_number(lines: Mapping[str, str]) -> dict[int, str]:
    """Return the sentences by number. A key is a number, or the first and the last of several.

    Raises ValueError where two keys have one in common.
    """
    numbered: dict[int, str] = {}
    for key, sentence in lines.items():
        first, _, last = key.partition("-")
        for number in range(int(first), int(last or first) + 1):
            if number in numbered:
                raise ValueError(f"conformance.toml: {key} says something of {number}, as another key does")
            numbered[number] = sentence
    return numbered


def named_tests(root: Path = REPOSITORY) -> list[NamedTest]:
    """Return all under `tests`, by path and line. Nothing is imported for it."""
    return [
        NamedTest(name, path.relative_to(root).as_posix(), numbers_of(name))
        for path in sorted((root / "tests").rglob("test_*.py"))
        for name in TEST.findall(path.read_text())
    ]


def numbers_of(name: str) -> tuple[int, ...]:
    """Return the behaviours that a test of this name proves."""
    matched = NUMBERED.match(name)
    return tuple(int(digits) for digits in matched[1].split("_")[:-1]) if matched else ()


def page(sentences: Table, tests: Sequence[NamedTest]) -> str:
    """Return the whole page, from nothing but what is given."""
    tested = {number for test in tests for number in test.numbers}
    counts: Counter[Standing] = Counter()
    rows, java = list[tuple[str, str, str]](), dict[str, list[int]]()
    for number, sentence in (numbered for section in sentences.sections.values() for numbered in section.items()):
        standing, reason = sentences.standing(number, tested)
        counts[standing] += 1
        if standing is Standing.JAVA:
            java.setdefault(reason, []).append(number)
        elif standing is not Standing.TESTED:
            rows.append((str(number), sentence, f"**{standing}**{reason and f': {reason}'}"))
    parts = (
        "# Conformance",
        f"""\
MirrorMaker 2's test suites state {counts.total()} behaviours.
`tools/docs/conformance.toml` has a sentence for each. A test that proves one has its number in its name:
`grep -rn test_mm2_017 tests` finds those of number 17. This page is made from both by `make docs`.
[How MirrorMaker 2 behaves](../internals/mm2-behaviour.md) has its formats, rules and defaults.""",
        table(" | behaviours | ", ((standing, str(counts[standing]), words) for standing, words in MEANING.items())),
        table("no. | what MirrorMaker 2 does | here", rows),
        table(f"nos. | {Standing.JAVA}", ((", ".join(map(str, numbers)), reason) for reason, numbers in java.items())),
    )
    return "\n\n".join(parts) + "\n"
