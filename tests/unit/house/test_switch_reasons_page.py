"""The table of reasons in the reference is what the declarations make of it."""

from tools.docs.switch_reasons import BLOCK, PAGE, filled


def test_switch_page_matches_the_declared_reasons() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert BLOCK.search(page)
    assert filled(page) == page, "docs/reference/switch.md is stale: python -m tools.docs.switch_reasons"
