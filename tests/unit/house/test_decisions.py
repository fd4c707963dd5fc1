"""Every decision has a title, the date on which it was accepted and the same sections. The index lists all pages."""

import re
from datetime import date
from pathlib import Path

import pytest

DECISIONS = Path(__file__).resolve().parents[3] / "docs" / "decisions"
PAGES = {page.name[:4]: page for page in sorted(DECISIONS.glob("[0-9]*.md"))}
HEAD = re.compile(r"# (\d{4}): (.+)\n\nAccepted on (\d{4}-\d\d-\d\d)\.\n\n(?=[^#\s])")
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
SECTIONS = ["Decision", "Alternatives", "What follows"]
"""The last one is left out if other pages say it."""
ENTRY = re.compile(r"^- \[(\d{4}): (.+)\]\((\S+)\)$", re.MULTILINE)


def head(page: Path) -> tuple[str, str, str]:
    """Number, title and date of a page."""
    head = HEAD.match(page.read_text("utf-8"))
    assert head, "the page begins with `# NNNN: title`, `Accepted on YYYY-MM-DD.` and a paragraph with the question"
    number, title, day = head.groups()
    return number, title, day


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_decision_has_number_date_and_sections(page: Path) -> None:
    number, title, day = head(page)
    assert page.name.startswith(f"{number}-")
    assert not title.endswith(".")
    assert date.fromisoformat(day)
    assert SECTION.findall(page.read_text("utf-8")) in (SECTIONS, SECTIONS[:-1])


def test_decision_index_lists_each_page_once_with_its_title() -> None:
    listed = ENTRY.findall((DECISIONS / "README.md").read_text("utf-8"))
    assert sorted(listed) == [(*head(page)[:2], page.name) for page in PAGES.values()]


def test_each_decision_has_a_number_of_its_own() -> None:
    assert len(PAGES) == len(list(DECISIONS.glob("*.md"))) - 1
