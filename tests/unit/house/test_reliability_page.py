"""The page on reliability has a row for each fault that there is, and no other, under the columns that are printed."""

from itertools import chain
from pathlib import Path

from tests.faults.striking import FAULTS, IN_TRANSACTIONS, THREE_BROKERS
from tests.faults.suite import COLUMNS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "reliability.md"


def tables_of(title: str) -> list[list[list[str]]]:
    """The cells of each table of a section, its head first."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    tables: list[list[list[str]]] = []
    rows: list[list[str]] = []
    for line in [*section.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            tables.append([rows[0], *rows[2:]])
            rows = []
    return tables


def test_each_fault_has_a_row_in_the_last_run_and_no_other_has() -> None:
    plain, in_transactions = tables_of("The last run")
    assert sorted(row[0] for row in plain[1:]) == sorted(fault.name for fault in (*FAULTS, *THREE_BROKERS))
    assert [row[0] for row in in_transactions[1:]] == [fault.name for fault in IN_TRANSACTIONS]


def test_reliability_page_has_the_printed_columns_with_a_figure_each() -> None:
    for head, *rows in tables_of("The last run"):
        assert tuple(head) == COLUMNS
        for row in rows:
            assert all(cell.replace(",", "").replace(".", "", 1).isdecimal() for cell in row[1:]), row
            assert len(row) == len(COLUMNS)


def test_every_fault_has_a_name_of_its_own() -> None:
    names = [fault.name for fault in chain(FAULTS, THREE_BROKERS, IN_TRANSACTIONS)]
    assert len(set(names)) == len(names)
