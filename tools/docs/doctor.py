"""The tables of checks in `doctor.md`, from the registry: `python -m tools.docs.doctor` writes them anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from pathlib import Path

from lockstep_ops.doctor.checks.check import Category, DoctorCheck
from lockstep_ops.doctor.checks.registry import checks_in

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "doctor.md"
BLOCK = re.compile(r"(<!-- checks of ([a-z]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the registry is now. Raises ValueError for a table of no category."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{_table(Category(block[2]))}\n", page)


def _table(category: Category) -> str:
    head = "| check | what it means | if it is not ok |\n|---|---|---|\n"
    return head + "".join(map(_row, checks_in(category)))


def _row(check: DoctorCheck) -> str:
    anchor = f'<a id="{check.code.lower()}"></a>{check.code}'
    return f"| {anchor} {check.title} | {check.meaning} | {check.fix} |\n"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
