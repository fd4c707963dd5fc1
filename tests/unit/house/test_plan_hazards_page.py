"""`plan-hazards.md` has every hazard as it is declared."""

from lockstep_cli.plan.hazards import HAZARDS
from tests.unit.house.test_docs_index import anchors
from tools.docs.plan_hazards import PAGE, filled


def test_plan_hazards_page_matches_the_catalogue() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "docs/reference/plan-hazards.md is stale: python -m tools.docs.plan_hazards"


def test_each_hazard_leads_to_its_section() -> None:
    assert {one.page.partition("#")[2] for one in HAZARDS} <= anchors(PAGE)
