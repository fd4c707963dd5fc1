"""The tables of checks in `doctor.md`, from their registry."""

from collections.abc import Mapping

from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.registry import checks_in
from tools.docs.pages import DOCS, table

PAGE = DOCS / "reference" / "doctor.md"


def blocks() -> Mapping[str, str]:
    """Return the table of each category."""
    return {f"checks of {category}": _table(category) for category in Category}


def _table(category: Category) -> str:
    rows = (
        (f'<a id="{check.code.lower()}"></a>{check.code} {check.title}', check.meaning, check.fix)
        for check in checks_in(category)
    )
    return table("check | what it means | if it is not ok", rows)
