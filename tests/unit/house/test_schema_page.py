"""`docs/reference/schemas.md` has the rows, events and commands as they are declared."""

from tools.docs.schema_page import PAGE, filled
from tools.docs.schemas import generated


def test_schema_page_matches_the_schemas() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "docs/reference/schemas.md is stale: python -m tools.docs.schema_page"
    assert page.count("/schemas/") == len(generated())
