"""Pages have the plain sentences that CONTRIBUTING.md asks for, as far as a pattern can tell."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
CHART = REPOSITORY / "deploy" / "helm" / "lockstep" / "README.md"
PAGES = [*sorted(REPOSITORY.glob("*.md")), CHART, *sorted((REPOSITORY / "docs").rglob("*.md"))]

WHO_FIRST = re.compile(r"(?:^|[.:;|*]) *Who(?:ever)?\b", re.MULTILINE)
RIDDLE = re.compile(r"\bfor who\b|\bwhoever\b|\bbears?\b|\b(?:is|are) told of\b", re.IGNORECASE)


def faults(text: str) -> list[str]:
    """The lines with a sentence that begins with "Who", or with a word that a plainer one replaces."""
    found = (match for pattern in (WHO_FIRST, RIDDLE) for match in pattern.finditer(text))
    return [f"line {text.count(chr(10), 0, match.end()) + 1}: {match[0].strip()}" for match in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_page_has_plain_sentences(page: Path) -> None:
    assert not faults(page.read_text("utf-8"))


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
