"""Every decision has a title, the date of its first commit and a status, and the index lists all of them."""

import re
from datetime import date
from pathlib import Path

import pytest

DECISIONS = Path(__file__).resolve().parents[3] / "docs" / "decisions"
PAGES = {page.name[:4]: page for page in sorted(DECISIONS.glob("[0-9]*.md"))}
HEAD = re.compile(r"# (\d{4}): (.+)\n\nDate: (\d{4}-\d\d-\d\d)\n\nStatus: (.+)\n\n## Situation\n")
STATUS = re.compile(r"accepted|(?:accepted, amended|superseded) by \[(\d{4})\]\((\S+)\)")
ROW = re.compile(r"^\| (?:\[(\d{4})\]\((\S+)\)|(\d{4})) \| (.+?) \| (.*?) ?\| .*\|$", re.MULTILINE)


def head(page: Path) -> tuple[str, str, str, str]:
    """Number, title, date and status of a page."""
    found = HEAD.match(page.read_text("utf-8"))
    assert found, "the page begins with `# NNNN: title`, `Date: YYYY-MM-DD`, `Status: ...` and `## Situation`"
    number, title, day, status = found.groups()
    return number, title, day, status


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_decision_head_has_number_date_and_status(page: Path) -> None:
    number, title, day, status = head(page)
    assert page.name.startswith(f"{number}-")
    assert not title.endswith(".")
    assert date.fromisoformat(day)
    later = STATUS.fullmatch(status)
    assert later, status
    if later[1]:
        assert later[1] > number
        assert PAGES[later[1]].name == later[2]


def test_decision_index_lists_number_title_and_status() -> None:
    """A number between the first and the last that no page has is listed as not used."""
    listed = ROW.findall((DECISIONS / "README.md").read_text("utf-8"))
    numbers = [linked or plain for linked, _, plain, _, _ in listed]
    assert numbers == [f"{number:04d}" for number in range(1, int(max(PAGES)) + 1)]
    for linked, file, plain, title, status in listed:
        if plain:
            assert (plain in PAGES, title) == (False, "not used")
        else:
            assert (PAGES[linked].name, head(PAGES[linked])[1::2]) == (file, (title, status))


def test_each_decision_has_a_number_of_its_own() -> None:
    assert len(PAGES) == len(list(DECISIONS.glob("*.md"))) - 1
