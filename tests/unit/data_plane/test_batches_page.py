"""`docs/reference/batches.md` shows the judge's cases as they are, and each test that it names exists."""

import re
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch.classify import BatchAction, BatchCase

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "reference" / "batches.md").read_text()
WORDS = {
    BatchAction.PASS: "passes as it is",
    BatchAction.REBUILD: "rebuilt",
    BatchAction.SKIP: "passed over",
    BatchAction.REFUSE: "refused",
}
NAMED = sorted(set(re.findall(r"`(test_\w+\.py)::(\w+)(?:\[([^\]]+)\])?`", PAGE)))


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a title, without its head."""
    (section,) = (part for part in PAGE.split("\n## ") if part.startswith(title))
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_has_each_case_in_its_place_with_its_fate() -> None:
    found = [(case, fate) for case, fate, _, _ in rows("What the judge decides")]
    assert found == [(why or "any other", WORDS[action]) for action, why in (case.value for case in BatchCase)]


@pytest.mark.parametrize(
    "title",
    ["What the judge decides", "What a batch that passes keeps, and what it loses", "When the target does not take it"],
)
def test_each_row_names_a_test(title: str) -> None:
    table = rows(title)
    assert len(table) >= 7
    for cells in table:
        assert re.search(r"`test_\w+\.py::\w+", cells[-1]), cells[0]


@pytest.mark.parametrize(("file", "name", "example"), NAMED)
def test_each_test_that_is_named_exists(file: str, name: str, example: str) -> None:
    (found,) = REPOSITORY.glob(f"tests/**/{file}")
    text = found.read_text()
    assert re.search(rf"^\s*(?:async )?def {name}\(", text, re.MULTILINE)
    assert f'id="{example}"' in text or not example
