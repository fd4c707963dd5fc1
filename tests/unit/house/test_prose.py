"""Pages, docstrings and comments have the plain sentences that CONTRIBUTING.md asks for, as far as a pattern finds."""

import re
from pathlib import Path

import pytest

from tests.unit.house.sentences import long_sentences, misused_verbs, source_texts

REPOSITORY = Path(__file__).resolve().parents[3]
CHART = REPOSITORY / "deploy" / "helm" / "lockstep" / "README.md"
PAGES = [*sorted(REPOSITORY.glob("*.md")), CHART, *sorted((REPOSITORY / "docs").rglob("*.md"))]

SOURCES = sorted(REPOSITORY.glob("s[eh]*/*/src/**/*.py"))
"""The modules of `services/` and `shared/`."""

WHO_FIRST = re.compile(r"(?:^|[.:;|*]) *Who(?:ever)?\b", re.MULTILINE)
RIDDLE = re.compile(r"\bfor who\b|\bwhoever\b|\bbears?\b|\b(?:is|are) told of\b", re.IGNORECASE)


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def faults(text: str) -> list[str]:
    """The lines with a sentence that begins with "Who", or with a word that a plainer one replaces."""
    found = (match for pattern in (WHO_FIRST, RIDDLE) for match in pattern.finditer(text))
    return [f"line {text.count(chr(10), 0, match.end()) + 1}: {match[0].strip()}" for match in found]


VAGUE = re.compile(r"\b(?:nobody|whatever)\b", re.IGNORECASE)
"""In code: name the actor, or say which."""


def vague_words(text: str) -> list[str]:
    return [f"line {text.count(chr(10), 0, match.end()) + 1}: {match[0]}" for match in VAGUE.finditer(text)]


CHECKS = (faults, long_sentences, misused_verbs, vague_words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_has_plain_sentences(page: Path) -> None:
    assert not faults(page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_has_no_sentence_over_25_words(page: Path) -> None:
    assert not long_sentences(page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_has_the_verbs_of_the_field(page: Path) -> None:
    assert not misused_verbs(page.read_text("utf-8"))


@pytest.mark.parametrize("source", SOURCES, ids=name_of)
def test_docstrings_and_comments_have_plain_sentences(source: Path) -> None:
    texts = list(source_texts(source.read_text("utf-8")))
    assert [found for text in texts for check in CHECKS for found in check(text)] == []


def test_source_texts_are_docstrings_and_comments_on_their_lines() -> None:
    source = '''"""One.

    code of any length
Two."""
x = 1  # three
"""Four."""


def f() -> None:
    """Five

    \\b
      as printed

    six."""
    # seven
    # eight
    x = "nine"
'''
    numbered = [
        (number, line)
        for text in source_texts(source)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    ]
    assert sorted(numbered) == [
        (1, "One."),
        (4, "Two."),
        (5, "three"),
        (6, "Four."),
        (10, "Five"),
        (15, "six."),
        (16, "seven"),
        (17, "eight"),
    ]


def test_faults_are_found_with_their_lines() -> None:
    text = 'Plain.\n\n* Who asks is told of it.\n| a | Whoever reads |\nIt bears a mark for who asks. Say "Who" here.\n'
    assert faults(text) == [
        "line 3: * Who",
        "line 4: | Whoever",
        "line 3: is told of",
        "line 4: Whoever",
        "line 5: bears",
        "line 5: for who",
    ]


def test_long_sentences_are_counted_in_paragraphs_items_and_cells() -> None:
    five = "one two three four five"
    text = (
        f"# {five}\n\n{five}\n`a b c d e f g` {five}. {five}!\n\n* {five} six\n  seven eight nine ten eleven\n"
        f"* {five}\n\n| {five} | {five} six [seven](eight.md) - nine ten eleven |\n|---|---|\n\n"
        f"```text\n{five} {five} {five}\n```\n\n<!-- metrics of all -->\n| {five} {five} {five} |\n<!-- end -->\n"
    )
    assert [found[:16] for found in long_sentences(text, most=10)] == [
        "line 3: 11 words",
        "line 6: 11 words",
    ]
    assert [found[:16] for found in long_sentences(text, most=9)] == [
        "line 3: 11 words",
        "line 6: 11 words",
        "line 10: 10 word",
    ]


def test_misused_verbs_are_found_and_proper_ones_are_not() -> None:
    text = (
        "The row stands in a topic. A stands for B, and stands by. It looks for a key, and looks\nat it. "
        "`tells` is code. Nothing tells it.\n\n| the offset lies there | nobody cannot tell | look at it |\n"
    )
    assert [found.split(": ")[:2] for found in misused_verbs(text)] == [
        ["line 1", "stands"],
        ["line 1", "looks"],
        ["line 1", "tells"],
        ["line 4", "lies"],
        ["line 4", "cannot tell"],
    ]
