"""`docs/reference/batches.md` shows the judge's cases as they are."""

from lockstep_data_plane.record_batch.classify import BatchAction, BatchCase
from tests.support.source_modules import REPOSITORY

PAGE = (REPOSITORY / "docs" / "reference" / "batches.md").read_text()
WORDS = {
    BatchAction.PASS: "passes as it is",
    BatchAction.REBUILD: "rebuilt",
    BatchAction.SKIP: "passed over",
    BatchAction.REFUSE: "refused",
}


def rows(title: str) -> list[list[str]]:
    """The cells of the table below a title, without its head."""
    (section,) = (part for part in PAGE.split("\n## ") if part.startswith(title))
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_has_each_case_in_its_place_with_its_fate() -> None:
    shown = [(case, fate) for case, fate, _ in rows("What the judge decides")]
    assert shown == [(reason or "any other", WORDS[action]) for action, reason in (case.value for case in BatchCase)]
